package proc

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// self is this very program, also when its file was replaced meanwhile.
const self = "/proc/self/exe"

// spawn starts the supervisor for s. The files are the caller's to close.
func spawn(s *spec, stdin *os.File, extra []*os.File) (*supervisor, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	unix.SetNonblock(ends[0], true)
	control, theirs := os.NewFile(uintptr(ends[0]), "control"), os.NewFile(uintptr(ends[1]), "control")
	defer theirs.Close()
	output, write, err := os.Pipe()
	if err != nil {
		closeAll(control)
		return nil, err
	}
	defer write.Close()
	if raw, err := output.SyscallConn(); err == nil { // only makes it faster
		raw.Control(func(fd uintptr) { unix.FcntlInt(fd, unix.F_SETPIPE_SZ, 1<<20) })
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		closeAll(control, output)
		return nil, err
	}
	defer null.Close()
	files := append([]*os.File{null, null, null, theirs, stdin, write}, extra...)
	process, err := os.StartProcess(self, []string{os.Args[0], roleArg, "supervise"}, &os.ProcAttr{
		Dir: "/", Env: []string{"GOMAXPROCS=2"}, Files: files, Sys: supervisorAttr(s),
	})
	if err != nil {
		closeAll(control, output)
		return nil, err
	}
	return &supervisor{process: process, control: control, output: output}, nil
}

// supervisorAttr clones the supervisor straight into the name spaces of its
// level. It leads a session of its own, so that a terminal's signals to the
// server do not reach it.
func supervisorAttr(s *spec) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if s.Level == L2 {
		isolate(attr, s.Network)
	}
	return attr
}

func (p *Process) exited(wait int) {
	status := syscall.WaitStatus(wait)
	p.result.ExitCode = status.ExitStatus()
	if status.Signaled() {
		p.result.Signal = status.Signal()
		p.result.ExitCode = 128 + int(status.Signal())
	}
}
