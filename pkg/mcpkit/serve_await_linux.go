package mcpkit

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Awaited returns what reads from in without keeping a processor while it
// waits. Standard input is read by a call that blocks, and with it, until the
// runtime's monitor takes notice, one of the few threads that run goroutines:
// for milliseconds a request that comes in has one less to be worked on. To
// have the file not block would change it for all that have it, a terminal's
// shell for one. So an epoll instance, for which the runtime's poller waits,
// says when there is something to read (epoll(7), on nesting).
func Awaited(in io.Reader) io.Reader {
	f, ok := in.(*os.File)
	if !ok || f.SetReadDeadline(time.Time{}) == nil { // the runtime waits for it already
		return in
	}
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return in
	}
	event := unix.EpollEvent{Events: unix.EPOLLIN}
	err = errors.Join(unix.SetNonblock(epoll, true), unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, int(f.Fd()), &event))
	ready := os.NewFile(uintptr(epoll), "epoll")
	conn, err2 := ready.SyscallConn()
	if errors.Join(err, err2, ready.SetReadDeadline(time.Time{})) != nil { // EPERM of a regular file, which never blocks
		ready.Close() //nolint:errcheck // nothing was written
		return in
	}
	return &awaited{f, ready, conn}
}

type awaited struct {
	file  *os.File
	ready *os.File
	conn  syscall.RawConn // of ready
}

func (a *awaited) Read(p []byte) (int, error) {
	err := a.conn.Read(func(epoll uintptr) bool {
		var events [1]unix.EpollEvent
		n, err := unix.EpollWait(int(epoll), events[:], 0)
		return n > 0 || err != nil && err != unix.EINTR
	})
	if err != nil {
		return 0, err
	}
	return a.file.Read(p)
}
