package proc

import (
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// noSignal is 0: the Go runtime does not end a program that writes to a closed socket.
const noSignal = 0

// selfPath is the path of the running program.
func selfPath() (string, error) { return os.Executable() }

// startSupervisor starts a supervisor, which waits for its spec. Supervisors of this system
// prepare nothing.
func startSupervisor(level Level, _ bool, _ *supervise.Spec) (*supervisor, error) {
	self, err := selfPath()
	if err != nil {
		return nil, err
	}
	syscall.ForkLock.RLock()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(ends[0])
		unix.CloseOnExec(ends[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	unix.SetNonblock(ends[0], true)
	control, supervisorEnd := os.NewFile(uintptr(ends[0]), "control"), os.NewFile(uintptr(ends[1]), "control")
	defer supervisorEnd.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		closeAll(control)
		return nil, err
	}
	defer null.Close()
	process, err := os.StartProcess(self, []string{os.Args[0], supervise.RoleArg, supervise.Role}, &os.ProcAttr{
		Dir: "/", Env: []string{"GOMAXPROCS=2"}, Files: []*os.File{null, null, null, supervisorEnd}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		closeAll(control)
		return nil, err
	}
	return &supervisor{process: process, pid: process.Pid, control: control, level: level}, nil
}

// readMountTable returns "": there are no mounts of a command.
func readMountTable(Level) string { return "" }

// outputPipe returns a pipe of the system's own size.
func outputPipe() (read, write *os.File, err error) { return os.Pipe() }

// pipeSize bounds what drain reads. Pipes of this system have at most 64 KiB.
const pipeSize = 64 << 10

// prologuePath returns the path at which bash finds the prologue, its descriptor fd.
func prologuePath(fd int) string { return "/dev/fd/" + strconv.Itoa(fd) }
