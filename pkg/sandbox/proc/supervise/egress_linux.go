package supervise

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// sendListener makes the listener in the supervisor's network namespace and
// sends it to the server, if Spec.Egress is set. rest is then files without the
// last one, through which it was sent; otherwise files unchanged.
func sendListener(s *Spec, files []uintptr) (rest []uintptr, err error) {
	if !s.Egress {
		return files, nil
	}
	link := int(files[len(files)-1])
	files = files[:len(files)-1]
	defer unix.Close(link)
	if s.Level != L2 || s.Network || len(files) < 2 {
		return nil, errors.New("a listener for allowed hosts needs its own network namespace")
	}
	if err := enableLoopback(); err != nil {
		return nil, fmt.Errorf("loopback: %w", err)
	}
	fd, err := listenLoopback(egressPort)
	if err != nil {
		return nil, fmt.Errorf("listener for allowed hosts: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.Sendmsg(link, []byte{0}, unix.UnixRights(fd), nil, unix.MSG_NOSIGNAL); err != nil {
		return nil, os.NewSyscallError("sendmsg", err)
	}
	return files, nil
}

// listenLoopback returns a non-blocking socket that listens on the port of
// 127.0.0.1 in the current network namespace. The caller closes it.
func listenLoopback(port int) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	err = os.NewSyscallError("bind", unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}))
	if err == nil {
		err = os.NewSyscallError("listen", unix.Listen(fd, 128))
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
