package upstream

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A writer writes lines to a server's standard input without ever holding a
// caller up: whoever finds nobody writing writes for all; once the server
// does not read, a goroutine takes over, and a watchdog gives the server up
// when it has read nothing for the timeout.
type writer struct {
	file      pipe
	timeout   time.Duration
	unread    chan error                     // holds one: why the server has to be given up
	onFail    func()                         // called when it does; may be nil
	deadlines bool                           // whether the file supports them
	attempt   func(data []byte) (int, error) // writes what it can at once; nil: cannot be done

	work sync.WaitGroup // the turn to write

	mu      sync.Mutex
	late    *time.Timer // after an error; nil: there was none
	queue   [][]byte
	queued  int // bytes in queue
	writing bool
	closed  bool
}

const (
	maxQueued  = 256 << 20            // bytes that wait for a server that is slow to read
	eagerness  = 2 * time.Millisecond // how long a caller tries to write itself
	eagerTurns = 8                    // how often it writes what others queued meanwhile
	chunk      = 64 << 10             // what the watchdog looks at
)

// pipe is a server's input: a file, or a pipe in memory.
type pipe interface {
	Write([]byte) (int, error)
	SetWriteDeadline(time.Time) error
}

func newWriter(file pipe, timeout time.Duration) *writer {
	w := &writer{file: file, timeout: timeout, unread: make(chan error, 1)}
	if w.deadlines = file.SetWriteDeadline(time.Time{}) == nil; w.deadlines {
		w.attempt = attempter(file)
	}
	return w
}

// send queues a line, ending in a newline, which it keeps. It returns an
// error that wraps errNotSent when nothing of it will be written.
func (w *writer) send(line []byte) error {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return fmt.Errorf("%w: the connection has ended", errNotSent)
	}
	if w.queued > maxQueued {
		w.mu.Unlock()
		return toolerr.New(toolerr.LimitReached, "the server reads its input too slowly: %d bytes are waiting", maxQueued)
	}
	w.queue = append(w.queue, line)
	w.queued += len(line)
	if w.writing {
		w.mu.Unlock()
		return nil
	}
	w.writing = true
	w.work.Add(1)
	w.mu.Unlock()
	handed := false
	hand := func(data []byte) {
		handed = true
		go func() {
			defer w.work.Done()
			w.drain(data)
		}()
	}
	defer func() {
		if !handed {
			w.work.Done()
		}
	}()
	if !w.deadlines {
		hand(nil)
		return nil
	}
	for range eagerTurns {
		data := w.take()
		if data == nil {
			return nil
		}
		n, err := w.writeNow(data)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			hand(data[n:])
			return nil
		}
		if err != nil {
			w.broken(err)
			return nil
		}
	}
	hand(nil)
	return nil
}

// take returns all that is queued as one piece, or nil after giving up the
// turn to write.
func (w *writer) take() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	queue := w.queue
	if len(queue) == 0 || w.closed {
		w.writing, w.queue = false, nil
		return nil
	}
	size := w.queued
	w.queued = 0
	if len(queue) == 1 {
		w.queue = nil
		return queue[0]
	}
	w.queue = queue[:0:0]
	data := make([]byte, 0, size)
	for _, line := range queue {
		data = append(data, line...)
	}
	return data
}

// writeNow writes data within a caller's time.
func (w *writer) writeNow(data []byte) (int, error) {
	written := 0
	if w.attempt != nil {
		n, err := w.attempt(data)
		if err != nil || n == len(data) {
			return n, err
		}
		written = n
	}
	n, err := w.writeBy(data[written:], eagerness)
	return written + n, err
}

func (w *writer) writeBy(data []byte, within time.Duration) (int, error) {
	if err := w.file.SetWriteDeadline(time.Now().Add(within)); err != nil {
		return 0, err
	}
	n, err := w.file.Write(data)
	if err == nil && w.attempt != nil { // which a deadline in the past would keep from trying
		err = w.file.SetWriteDeadline(time.Time{})
	}
	return n, err
}

// drain writes data and then whatever is queued, under the watchdog.
func (w *writer) drain(data []byte) {
	for {
		for len(data) > 0 {
			piece := data[:min(len(data), chunk)]
			n, err := w.watched(piece)
			if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
				w.fail(toolerr.New(toolerr.ServerOffline, "the server has not read its input for %v and was stopped", w.timeout))
				return
			}
			if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
				w.broken(err)
				return
			}
			data = data[n:]
		}
		if data = w.take(); data == nil {
			return
		}
	}
}

// watched writes a piece within the watchdog's time. Where pipes have no
// deadlines, ending the connection ends the write.
func (w *writer) watched(piece []byte) (int, error) {
	if w.deadlines {
		return w.writeBy(piece, w.timeout)
	}
	dog := time.AfterFunc(w.timeout, func() {
		w.fail(toolerr.New(toolerr.ServerOffline, "the server has not read its input for %v and was stopped", w.timeout))
	})
	defer dog.Stop()
	return w.file.Write(piece)
}

// fail has the server given up. The first reason counts.
func (w *writer) fail(err error) {
	select {
	case w.unread <- err:
	default:
	}
	if w.onFail != nil {
		w.onFail()
	}
}

// broken handles a write error, which means that the server is going: why
// shows when its process has been waited for. One that only closed its input
// is of no use any more either.
func (w *writer) broken(err error) {
	w.close()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late = time.AfterFunc(time.Second, func() {
		w.fail(toolerr.New(toolerr.ServerOffline, "the server closed its input: %w", err))
	})
}

// wait returns when nothing is being written any more. The writer and its file
// have been closed.
func (w *writer) wait() {
	w.work.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.late != nil {
		w.late.Stop()
	}
}

// close refuses further lines. What is being written ends when the file is
// closed.
func (w *writer) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed, w.queue, w.queued = true, nil, 0
}
