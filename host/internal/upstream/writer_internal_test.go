package upstream

import (
	"bytes"
	"io"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A line that the pipe has no room for is written as it is read, after its
// sender has gone on; and the time that was set for that does not count for
// the lines after it.
func TestALineLongerThanThePipe(t *testing.T) {
	r, file, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer file.Close()
	w := newWriter(file, time.Minute)
	for round := range 3 {
		long := append(bytes.Repeat([]byte{byte('a' + round)}, 8<<20), '\n')
		require.NoError(t, w.send(bytes.Clone(long)))
		require.NoError(t, w.send([]byte("behind it\n")))
		got := make([]byte, len(long)+len("behind it\n"))
		_, err = io.ReadFull(r, got)
		require.NoError(t, err)
		require.True(t, bytes.Equal(append(long, "behind it\n"...), got))
		require.Eventually(t, func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return !w.writing
		}, time.Minute, time.Millisecond)
		time.Sleep(2 * callerWriteTimeout)
		require.NoError(t, w.send([]byte("later\n")))
		_, err = io.ReadFull(r, got[:len("later\n")])
		require.NoError(t, err)
		require.Equal(t, "later\n", string(got[:len("later\n")]))
	}
	require.Empty(t, w.givenUp)
}

// slowPipe is a pipe without deadlines, whose writes end when they are let go.
type slowPipe struct {
	began, release chan struct{}
	done           atomic.Bool
}

func (p *slowPipe) Write(data []byte) (int, error) {
	close(p.began)
	<-p.release
	p.done.Store(true)
	return 0, io.ErrClosedPipe
}

func (p *slowPipe) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

// Who waits for the writer waits for the goroutine that writes.
func TestTheWriterIsWaitedFor(t *testing.T) {
	p := &slowPipe{began: make(chan struct{}), release: make(chan struct{})}
	w := newWriter(p, time.Hour)
	require.NoError(t, w.send([]byte("x\n")))
	<-p.began
	w.close()
	go close(p.release)
	w.awaitIdle()
	require.True(t, p.done.Load())
	require.ErrorIs(t, w.send([]byte("y\n")), errNotSent)
}

// A server that reads slowly gets no more requests, but the answers that it waits for.
func TestAFullQueue(t *testing.T) {
	r, file, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer file.Close()
	w := newWriter(file, time.Minute)
	require.NoError(t, w.send(bytes.Repeat([]byte("x"), 1<<20))) // more than the pipe holds: the goroutine waits
	require.NoError(t, w.send(append(make([]byte, maxQueuedBytes-1), '\n')))
	require.NoError(t, w.send([]byte("the last\n")))
	require.ErrorContains(t, w.send([]byte("refused\n")), "reads its input too slowly")
	require.NoError(t, w.sendAnyway([]byte("answer\n")))
	var rest []byte
	buf := make([]byte, 1<<20)
	for total := 0; total < 1<<20+maxQueuedBytes+len("the last\nanswer\n"); {
		n, err := r.Read(buf)
		require.NoError(t, err)
		total += n
		rest = append(rest, buf[:n]...)
		rest = rest[max(0, len(rest)-len("the last\nanswer\n")):]
	}
	require.Equal(t, "the last\nanswer\n", string(rest))
}
