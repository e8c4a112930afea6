package wire

import (
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

const (
	// maxJoinedBytes is the size, in bytes, below which messages are joined into one
	// write.
	maxJoinedBytes = 16 << 10
	// maxWriteBacklog is the number of bytes waiting for a slow client beyond
	// which senders wait, too.
	maxWriteBacklog = 8 << 20
	// stallTimeout is the time without a read by the client after which trySend
	// stops waiting for it.
	stallTimeout = time.Second
	// maxReadBacklog is the number of bytes waiting for the client beyond which
	// reading pauses. It exceeds maxWriteBacklog because the reading goroutine
	// itself answers malformed lines and must not wait for a client that writes
	// first and reads later.
	maxReadBacklog = 64 << 20
)

// A lineWriter writes messages, one a line, in the order of the calls that send
// them. A sender that finds no other sender writing becomes the writer, until
// the queue is empty: a single message then needs no hand-over, and under load
// many messages share one write. It is safe for concurrent use.
type lineWriter struct {
	w              io.Writer
	onError        func(error) // called once, in a goroutine, with the first write error
	maxReadBacklog int         // the constant; smaller in tests
	pipeEnlarged   bool        // a large message was written; used by the writer only

	linesWritten atomic.Uint64 // number of elements of queue written

	mu           sync.Mutex
	changed      sync.Cond // writing ended, or waitingBytes shrank
	queue        [][]byte  // lines; small ones share an element, large ones may have several
	waitingBytes int       // bytes in queue and in the current write
	writing      bool      // a sender or goroutine is the writer
	stalledAt    uint64    // linesWritten+1 when the client had read nothing for stallTimeout; 0: never
	err          error     // the first write error; later messages are dropped
}

// newLineWriter returns a lineWriter. onError is called once, in a goroutine,
// with the first write error.
func newLineWriter(w io.Writer, onError func(error)) *lineWriter {
	lw := &lineWriter{w: w, onError: onError, maxReadBacklog: maxReadBacklog}
	lw.changed.L = &lw.mu
	return lw
}

// send queues a message, given in parts and without its newline, and takes
// ownership of the parts. It waits while the backlog is full. It may write, and
// then waits for the client.
func (lw *lineWriter) send(parts ...[]byte) {
	lw.mu.Lock()
	for lw.waitingBytes > maxWriteBacklog && lw.err == nil {
		lw.changed.Wait()
	}
	if lw.enqueue(parts...) {
		lw.writeQueue()
	}
	lw.mu.Unlock()
}

// trySend is send for a message that may be lost. It waits for a slow client.
// If the client has stopped reading, it drops the message and returns false.
func (lw *lineWriter) trySend(msg []byte) (queued bool) {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	for lw.waitingBytes > maxWriteBacklog && lw.err == nil {
		at := lw.linesWritten.Load()
		if at+1 == lw.stalledAt {
			return false
		}
		late := time.AfterFunc(stallTimeout, func() {
			lw.mu.Lock()
			defer lw.mu.Unlock()
			if at == lw.linesWritten.Load() {
				lw.stalledAt = at + 1
			}
			lw.changed.Broadcast()
		})
		lw.changed.Wait()
		late.Stop()
	}
	if lw.enqueue(msg) {
		lw.writeInBackground()
	}
	return true
}

// sendWithoutWaiting is send for the goroutine that reads: it does not wait,
// and lets another goroutine write.
func (lw *lineWriter) sendWithoutWaiting(msg []byte) {
	lw.mu.Lock()
	if lw.enqueue(msg) {
		lw.writeInBackground()
	}
	lw.mu.Unlock()
}

// writeInBackground calls writeQueue in another goroutine, since writing may
// block.
func (lw *lineWriter) writeInBackground() {
	go func() {
		lw.mu.Lock()
		lw.writeQueue()
		lw.mu.Unlock()
	}()
}

// waitForBacklog waits until the backlog is small enough to read on.
func (lw *lineWriter) waitForBacklog() {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	for lw.waitingBytes > lw.maxReadBacklog && lw.err == nil {
		lw.changed.Wait()
	}
}

// enqueue queues a message. If it returns true, writeQueue must be called. It
// appends the newline to the last part, which must be small if there are
// several. Hold mu.
func (lw *lineWriter) enqueue(parts ...[]byte) (mustWrite bool) {
	if lw.err != nil {
		return false
	}
	before, msg := parts[:len(parts)-1], parts[len(parts)-1]
	for _, part := range before {
		lw.waitingBytes += len(part)
		lw.queue = append(lw.queue, part)
	}
	lw.waitingBytes += len(msg) + 1
	last := len(lw.queue) - 1
	if len(before) == 0 && last >= 0 && len(lw.queue[last])+len(msg) < maxJoinedBytes {
		lw.queue[last] = append(append(lw.queue[last], msg...), '\n')
	} else {
		lw.queue = append(lw.queue, append(msg, '\n'))
	}
	if lw.writing {
		return false
	}
	lw.writing = true
	return true
}

// writeQueue writes until the queue is empty. Hold mu, which it releases while
// it writes.
func (lw *lineWriter) writeQueue() {
	for len(lw.queue) > 0 && lw.err == nil {
		batch := lw.queue
		lw.queue = nil
		lw.mu.Unlock()
		var err error
		n := 0
		for _, line := range batch {
			n += len(line)
			if len(line) > jsonrpc.DefaultPipeSize && !lw.pipeEnlarged {
				lw.pipeEnlarged = true
				jsonrpc.EnlargePipe(lw.w)
			}
			if err == nil {
				_, err = lw.w.Write(line)
				lw.linesWritten.Add(1)
			}
		}
		lw.mu.Lock()
		lw.waitingBytes -= n
		if err != nil {
			lw.err = err
			lw.queue = nil
			go lw.onError(err)
		}
		lw.changed.Broadcast()
	}
	lw.writing = false
	lw.changed.Broadcast()
}

// flush waits until all messages sent so far have been written, and returns the
// first write error.
func (lw *lineWriter) flush() error {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	for lw.writing {
		lw.changed.Wait()
	}
	return lw.err
}
