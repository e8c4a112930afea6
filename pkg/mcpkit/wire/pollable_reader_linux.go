package wire

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// PollableReader returns a reader of in that does not occupy a processor while
// it waits. A blocking read of standard input holds one of the few threads that
// run goroutines until the runtime's monitor notices, so for some milliseconds
// an arriving request has one thread less. Setting the file to non-blocking
// would affect every process that shares it, such as a terminal's shell.
// Instead, an epoll instance reports when there is input, and the runtime's
// poller waits for that instance (epoll(7), on nesting).
func PollableReader(in io.Reader) io.Reader {
	f, ok := in.(*os.File)
	if !ok || f.SetReadDeadline(time.Time{}) == nil { // the runtime's poller already waits for it
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
	return &pollableReader{f, ready, conn}
}

// pollableReader reads a file after its epoll instance has reported input.
type pollableReader struct {
	file  *os.File
	ready *os.File        // an epoll instance that contains file
	conn  syscall.RawConn // of ready
}

// Read waits, without occupying a processor, until there is input, and reads
// it.
func (a *pollableReader) Read(p []byte) (int, error) {
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
