package egress

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// idleClock says how long neither of two connections has moved a byte.
type idleClock struct {
	idle         time.Duration
	lastActivity atomic.Int64 // when one did, in nanoseconds since start
	start        time.Time
}

func newIdleClock(idle time.Duration) *idleClock { return &idleClock{idle: idle, start: time.Now()} }

func (c *idleClock) touch() { c.lastActivity.Store(int64(time.Since(c.start))) }
func (c *idleClock) deadline() time.Time {
	return c.start.Add(time.Duration(c.lastActivity.Load()) + c.idle)
}

// stream is one of the two connections of a request. It fails once both have
// been idle for too long, or at a fixed time where one is set.
type stream struct {
	net.Conn
	clock         *idleClock
	fixedDeadline atomic.Pointer[time.Time]
}

// setFixedDeadline sets when reading fails, whatever comes; the zero time, that it fails
// for idleness alone.
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

// CloseWrite tells the other side that nothing more comes. A connection that
// cannot say so is closed.
func (s *stream) CloseWrite() error {
	if half, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return s.Conn.Close()
}

// abort ends a connection so that the other side sees an error, not an end.
func (s *stream) abort() {
	if tcp, ok := s.Conn.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	s.Conn.Close()
}

// closeWriteAndDrain ends a connection whose client may still be sending: what it sends
// is read for a moment, since an end with something unread would take from the
// client what it has not read itself.
func (s *stream) closeWriteAndDrain() {
	s.CloseWrite()
	s.setFixedDeadline(time.Now().Add(time.Second))
	io.CopyN(io.Discard, s, 1<<20)
}
