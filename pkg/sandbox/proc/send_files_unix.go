//go:build linux || darwin

package proc

import (
	"errors"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// sendFiles sends text and the files to the supervisor. It does not close the
// files.
func (s *supervisor) sendFiles(text []byte, files []*os.File) error {
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd()) // Fd makes the file blocking, as programs expect it
	}
	socket, ok := s.control.(*os.File)
	if !ok {
		return os.ErrInvalid
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	var sent error
	n := 0
	err = raw.Write(func(fd uintptr) bool {
		n, sent = unix.SendmsgN(int(fd), text, unix.UnixRights(fds...), nil, noSignal)
		return sent != unix.EAGAIN
	})
	runtime.KeepAlive(files)
	if err = errors.Join(err, sent); err == nil && n < len(text) {
		_, err = s.control.Write(text[n:])
	}
	return err
}
