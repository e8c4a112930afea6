package egress

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// idleClock measures how long two connections together have been idle. It is
// safe for concurrent use.
type idleClock struct {
	idle         time.Duration
	lastActivity atomic.Int64 // when a byte was moved last, in nanoseconds since start
	start        time.Time
}

// newIdleClock returns a clock that starts now. It allows the time idle to pass without
// a byte.
func newIdleClock(idle time.Duration) *idleClock { return &idleClock{idle: idle, start: time.Now()} }

// touch records that bytes were moved now, which puts off the deadline.
func (c *idleClock) touch() { c.lastActivity.Store(int64(time.Since(c.start))) }

// deadline returns the time at which the connections have been idle for too
// long.
func (c *idleClock) deadline() time.Time {
	return c.start.Add(time.Duration(c.lastActivity.Load()) + c.idle)
}

// stream is one of the two connections of a request. Its reads fail when both
// have been idle for too long, or at a fixed time if one is set.
type stream struct {
	net.Conn
	clock         *idleClock
	fixedDeadline atomic.Pointer[time.Time]
}

// setFixedDeadline makes reads fail at a fixed time, even if bytes arrive. The
// zero time restores the deadline for idle connections.
func (s *stream) setFixedDeadline(at time.Time) {
	if at.IsZero() {
		s.fixedDeadline.Store(nil)
	} else {
		s.fixedDeadline.Store(&at)
	}
}

func (s *stream) Read(b []byte) (int, error) {
	for {
		at, fixed := s.clock.deadline(), s.fixedDeadline.Load()
		if fixed != nil {
			at = *fixed
		}
		s.Conn.SetReadDeadline(at)
		n, err := s.Conn.Read(b)
		if n > 0 {
			s.clock.touch()
		}
		// The other connection may have moved on meanwhile.
		if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) && fixed == nil && time.Now().Before(s.clock.deadline()) {
			continue
		}
		return n, err
	}
}

func (s *stream) Write(b []byte) (int, error) {
	s.Conn.SetWriteDeadline(time.Now().Add(s.clock.idle))
	n, err := s.Conn.Write(b)
	if n > 0 {
		s.clock.touch()
	}
	return n, err
}

// CloseWrite tells the other side that no more data follows. It closes a connection that
// cannot close one direction. It returns the error of closing.
func (s *stream) CloseWrite() error {
	if half, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return s.Conn.Close()
}

// abort closes the connection at once, with a TCP reset, so that the other side
// sees an error instead of the end of the data.
func (s *stream) abort() {
	if tcp, ok := s.Conn.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	s.Conn.Close()
}

// closeWriteAndDrain tells the client that no more data follows, and then reads
// for up to a second what the client still sends. Closing a connection with
// unread data could discard the response before the client has read it. The
// caller closes the connection afterwards.
func (s *stream) closeWriteAndDrain() {
	s.CloseWrite()
	s.setFixedDeadline(time.Now().Add(time.Second))
	io.CopyN(io.Discard, s, 1<<20)
}
