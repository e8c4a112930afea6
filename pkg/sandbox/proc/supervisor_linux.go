package proc

import (
	"errors"
	"io"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// spawn starts a supervisor, which waits for its spec. If expected is not nil,
// the supervisor prepares for a similar spec.
func spawn(level Level, network bool, expected *supervise.Spec) (*supervisor, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	unix.SetNonblock(ends[0], true)
	control, theirs := os.NewFile(uintptr(ends[0]), "control"), os.NewFile(uintptr(ends[1]), "control")
	defer theirs.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		closeAll(control)
		return nil, err
	}
	defer null.Close()
	args, files := []string{os.Args[0], supervise.RoleArg, supervise.Role}, []*os.File{null, null, null, theirs}
	if text := expectation(expected); text != nil {
		defer text.Close()
		args, files = append(args, supervise.ExpectArg), append(files, text)
	} else {
		expected = nil
	}
	process, err := os.StartProcess(supervise.Self, args, &os.ProcAttr{
		Dir: "/", Env: []string{"GOMAXPROCS=2"}, Files: files, Sys: supervisorAttr(level, network),
	})
	if err != nil {
		closeAll(control)
		return nil, err
	}
	return &supervisor{process: process, control: control, level: level, expected: expected, mounts: mountTable(level)}, nil
}

// expectation returns a file with the spec. It returns nil if s is nil or on
// an error, since the preparation only makes the next command faster.
func expectation(s *supervise.Spec) *os.File {
	if s == nil {
		return nil
	}
	fd, err := unix.MemfdCreate("expected", unix.MFD_CLOEXEC)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), "expected")
	if _, err := f.Write(supervise.Append(nil, s)); err == nil {
		if _, err = f.Seek(0, io.SeekStart); err == nil {
			return f
		}
	}
	f.Close()
	return nil
}

// sealedFile returns a memfd with text that nobody can change.
func sealedFile(text string) (*os.File, error) {
	fd, err := unix.MemfdCreate("prologue", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "prologue")
	if _, err = f.WriteString(text); err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_WRITE|unix.F_SEAL_GROW|unix.F_SEAL_SHRINK)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// supervisorAttr makes the clone start the supervisor directly in the
// namespaces of its level. The supervisor leads a new session, so that a
// terminal's signals to the server do not reach it.
func supervisorAttr(level Level, network bool) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if level == L2 {
		supervise.Isolate(attr, network)
	}
	return attr
}

// mountTable returns the current mounts at L2, else "". A waiting supervisor
// at L2 has the mounts of the time when it was started.
func mountTable(level Level) string {
	if level != L2 {
		return ""
	}
	text, _ := os.ReadFile("/proc/self/mountinfo")
	return string(text)
}

// outputPipe returns a pipe for the output of a command.
func outputPipe() (read, write *os.File, err error) {
	read, write, err = os.Pipe()
	if err == nil {
		if raw, err := read.SyscallConn(); err == nil { // a larger pipe is only faster
			raw.Control(func(fd uintptr) { unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize) })
		}
	}
	return read, write, err
}

// pipeSize is the capacity of the output pipe in bytes.
const pipeSize = 1 << 20

// drain reads the content of a pipe without waiting for more. It reads at most
// pipeSize bytes, since somebody may still be writing.
func drain(pipe *os.File, buf []byte, take func([]byte)) {
	raw, err := pipe.SyscallConn()
	if err != nil || pipe.SetReadDeadline(time.Time{}) != nil {
		return
	}
	raw.Read(func(fd uintptr) bool {
		for left := pipeSize; left > 0; {
			n, err := unix.Read(int(fd), buf)
			if err == unix.EINTR {
				continue
			}
			if err != nil || n <= 0 {
				break
			}
			take(buf[:n])
			left -= n
		}
		return true
	})
}

// pass sends text and the files to the supervisor. The caller still has to
// close the files.
func (s *supervisor) pass(text []byte, files []*os.File) error {
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd()) // Fd makes the file blocking, as programs expect it
	}
	raw, err := s.control.SyscallConn()
	if err != nil {
		return err
	}
	var sent error
	n := 0
	err = raw.Write(func(fd uintptr) bool {
		n, sent = unix.SendmsgN(int(fd), text, unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL)
		return sent != unix.EAGAIN
	})
	runtime.KeepAlive(files)
	if err = errors.Join(err, sent); err == nil && n < len(text) {
		_, err = s.control.Write(text[n:])
	}
	return err
}

// readable reports whether the server can read a file. It is called before
// each command.
func readable(path string) bool {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
}

// ownFile reports whether a file belongs to this user.
func ownFile(info os.FileInfo) bool {
	sys, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(sys.Uid) == os.Geteuid()
}

// exited sets the exit code and signal of the result from a wait status.
func (p *Process) exited(wait int) {
	status := syscall.WaitStatus(wait)
	p.result.ExitCode = status.ExitStatus()
	if status.Signaled() {
		p.result.Signal = status.Signal()
		p.result.ExitCode = 128 + int(status.Signal())
	}
}
