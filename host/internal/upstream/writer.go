package upstream

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A writer writes lines to a server's standard input without blocking a caller. A
// caller that finds no other one writing writes for all. If the server does not read,
// a goroutine takes over, and a watchdog gives the server up after it has read nothing
// for the timeout.
type writer struct {
	file      pipe
	timeout   time.Duration
	givenUp   chan error                     // capacity 1: why the server must be given up
	onFail    func()                         // called after that; may be nil
	deadlines bool                           // the file supports deadlines
	tryWrite  func(data []byte) (int, error) // writes without blocking; nil: not supported

	work sync.WaitGroup // the right to write

	mu         sync.Mutex
	errorTimer *time.Timer // after an error; nil: there was none
	queue      [][]byte
	queued     int // bytes in queue
	writing    bool
	closed     bool
}

const (
	maxQueuedBytes     = 256 << 20            // bytes that wait for a slow server
	callerWriteTimeout = 2 * time.Millisecond // the time that a caller spends on writing itself
	maxCallerWrites    = 8                    // the number of times it writes lines that others queued
	writeChunkBytes    = 64 << 10             // the unit of the watchdog
)

// pipe is a server's input: a file, or a pipe in memory.
type pipe interface {
	Write([]byte) (int, error)
	SetWriteDeadline(time.Time) error
}

// newWriter returns a writer to file, which allows timeout for each write.
func newWriter(file pipe, timeout time.Duration) *writer {
	w := &writer{file: file, timeout: timeout, givenUp: make(chan error, 1)}
	if w.deadlines = file.SetWriteDeadline(time.Time{}) == nil; w.deadlines {
		w.tryWrite = nonBlockingWrite(file)
	}
	return w
}

// send queues a line that ends in a newline and takes ownership of it. Its error wraps
// errNotSent if nothing of it will be written.
func (w *writer) send(line []byte) error { return w.sendWithin(line, maxQueuedBytes) }

// sendAnyway does the same as send, even if more than maxQueuedBytes bytes wait. The caller
// bounds the number of such lines.
func (w *writer) sendAnyway(line []byte) error { return w.sendWithin(line, math.MaxInt) }

// sendWithin writes or queues a line. It returns LIMIT_REACHED if more than most bytes
// wait, and errNotSent if the connection has ended. Later errors end the connection.
func (w *writer) sendWithin(line []byte, most int) error {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return fmt.Errorf("%w: the connection has ended", errNotSent)
	}
	if w.queued > most {
		w.mu.Unlock()
		return toolerr.New(toolerr.LimitReached, "the server reads its input too slowly: %d bytes are waiting", most)
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
			w.writeAllWatched(data)
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
	for range maxCallerWrites {
		data := w.nextPiece()
		if data == nil {
			return nil
		}
		n, err := w.writeNow(data)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			hand(data[n:])
			return nil
		}
		if err != nil {
			w.handleWriteError(err)
			return nil
		}
	}
	hand(nil)
	return nil
}

// nextPiece returns everything queued as one piece. If nothing is queued it gives up the
// right to write and returns nil.
func (w *writer) nextPiece() []byte {
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

// writeNow writes as much of data as it can within callerWriteTimeout. If that is not all,
// it returns the number of written bytes and os.ErrDeadlineExceeded.
func (w *writer) writeNow(data []byte) (int, error) {
	written := 0
	if w.tryWrite != nil {
		n, err := w.tryWrite(data)
		if err != nil || n == len(data) {
			return n, err
		}
		written = n
	}
	n, err := w.writeBy(data[written:], callerWriteTimeout)
	return written + n, err
}

// writeBy writes data within a time, and returns the number of bytes written, also with
// an error.
func (w *writer) writeBy(data []byte, within time.Duration) (int, error) {
	if err := w.file.SetWriteDeadline(time.Now().Add(within)); err != nil {
		return 0, err
	}
	n, err := w.file.Write(data)
	if err == nil && w.tryWrite != nil { // a deadline in the past would prevent the attempt
		err = w.file.SetWriteDeadline(time.Time{})
	}
	return n, err
}

// writeAllWatched writes data and then everything queued. If the server does not read for
// the writer's timeout, it gives the server up.
func (w *writer) writeAllWatched(data []byte) {
	for {
		for len(data) > 0 {
			piece := data[:min(len(data), writeChunkBytes)]
			n, err := w.writeWatched(piece)
			if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
				w.giveUp(toolerr.New(toolerr.ServerOffline, "the server has not read its input for %v and was stopped", w.timeout))
				return
			}
			if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
				w.handleWriteError(err)
				return
			}
			data = data[n:]
		}
		if data = w.nextPiece(); data == nil {
			return
		}
	}
}

// writeWatched writes a piece within the watchdog's time. If the pipe has no deadlines, the
// end of the connection ends the write.
func (w *writer) writeWatched(piece []byte) (int, error) {
	if w.deadlines {
		return w.writeBy(piece, w.timeout)
	}
	dog := time.AfterFunc(w.timeout, func() {
		w.giveUp(toolerr.New(toolerr.ServerOffline, "the server has not read its input for %v and was stopped", w.timeout))
	})
	defer dog.Stop()
	return w.file.Write(piece)
}

// giveUp reports through the channel givenUp that the server must be ended, with the
// reason. The first reason counts.
func (w *writer) giveUp(err error) {
	select {
	case w.givenUp <- err:
	default:
	}
	if w.onFail != nil {
		w.onFail()
	}
}

// handleWriteError handles a write error: the server is ending, and the end of its process shows
// why. A server that only closed its input cannot be used either.
func (w *writer) handleWriteError(err error) {
	w.close()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errorTimer = time.AfterFunc(time.Second, func() {
		w.giveUp(toolerr.New(toolerr.ServerOffline, "the server closed its input: %w", err))
	})
}

// awaitIdle returns when nothing is being written. The writer and its file must be closed.
func (w *writer) awaitIdle() {
	w.work.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.errorTimer != nil {
		w.errorTimer.Stop()
	}
}

// close refuses further lines. A running write ends when the file is closed.
func (w *writer) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed, w.queue, w.queued = true, nil, 0
}
