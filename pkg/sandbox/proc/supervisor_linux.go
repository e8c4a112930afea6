package proc

import (
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// startSupervisor starts a supervisor, which waits for its spec. If expected is
// not nil, the supervisor prepares for a similar spec.
func startSupervisor(level Level, network bool, expected *supervise.Spec) (*supervisor, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
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
	args, files := []string{os.Args[0], supervise.RoleArg, supervise.Role}, []*os.File{null, null, null, supervisorEnd}
	if text := expectedSpecFile(expected); text != nil {
		defer text.Close()
		args, files = append(args, supervise.ExpectArg), append(files, text)
	} else {
		expected = nil
	}
	process, err := os.StartProcess(supervise.Self, args, &os.ProcAttr{
		Dir: "/", Env: []string{"GOMAXPROCS=2"}, Files: files, Sys: supervisorProcAttr(level, network),
	})
	if err != nil {
		closeAll(control)
		return nil, err
	}
	return &supervisor{process: process, pid: process.Pid, control: control, level: level, preparedSpec: expected, mounts: readMountTable(level)}, nil
}

// expectedSpecFile returns a file with the encoded spec. It returns nil if s is
// nil or on an error, since the preparation only makes the next command faster.
func expectedSpecFile(s *supervise.Spec) *os.File {
	if s == nil {
		return nil
	}
	fd, err := unix.MemfdCreate("expected", unix.MFD_CLOEXEC)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), "expected")
	if _, err := f.Write(supervise.AppendMessage(nil, s)); err == nil {
		if _, err = f.Seek(0, io.SeekStart); err == nil {
			return f
		}
	}
	f.Close()
	return nil
}

// supervisorProcAttr makes the clone start the supervisor directly in the namespaces of
// its level. The supervisor leads a new session, so that a terminal's signals to the
// server do not reach it. network is as in supervise.Isolate.
func supervisorProcAttr(level Level, network bool) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if level == L2 {
		supervise.Isolate(attr, network)
	}
	return attr
}

// readMountTable returns the current mounts at L2, else "". A waiting
// supervisor at L2 has the mounts of the time when it was started.
func readMountTable(level Level) string {
	if level != L2 {
		return ""
	}
	text, _ := os.ReadFile("/proc/self/mountinfo")
	return string(text)
}

// noSignal keeps the end of a supervisor from signalling the server that writes to it.
const noSignal = unix.MSG_NOSIGNAL

// selfPath is the path of the running program, even if its file was replaced.
func selfPath() (string, error) { return supervise.Self, nil }
