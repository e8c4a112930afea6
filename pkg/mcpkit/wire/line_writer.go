package wire

import (
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

const (
	// smallMessage is the size up to which messages are joined into one write.
	joinLimit = 16 << 10
	// writeBacklog is the number of bytes waiting for a slow client beyond
	// which senders wait, too.
	maxWriteBacklog = 8 << 20
	// stallTime is the time without a read by the client after which offer
	// stops waiting for it.
	stallTimeout = time.Second
	// readBacklog is the number of waiting bytes beyond which reading pauses.
	// It exceeds writeBacklog because the reading goroutine itself answers
	// malformed lines and must not wait for a client that writes first and
	// reads later.
	maxReadBacklog = 64 << 20
)

// A lineWriter writes messages, one a line, in the order sent. A sender that
// finds no other writing becomes the writer, until the queue is empty: a single
// message needs no hand-over, and under load many messages share one write.
type lineWriter struct {
	w              io.Writer
	onError        func(error) // called once, with the first write error
	maxReadBacklog int         // readBacklog; smaller in tests
	pipeEnlarged   bool        // a large message was written; used by the writer only

	linesWritten atomic.Uint64 // number of lines written

	mu           sync.Mutex
	changed      sync.Cond // writing ended, or waiting shrank
	queue        [][]byte  // lines; small ones share an element, large ones may have several
	waitingBytes int       // bytes in queue and in the current write
	writing      bool
	stalledAt    uint64 // linesWritten+1 at the time when the client had read nothing for stallTime
	err          error
}

func newLineWriter(w io.Writer, fail func(error)) *lineWriter {
	lw := &lineWriter{w: w, onError: fail, maxReadBacklog: maxReadBacklog}
	lw.changed.L = &lw.mu
	return lw
}

// send queues a message, given in parts and without its newline, and takes
// ownership of them. It waits while the backlog is full.
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

// trySend is send for a message that may be lost. It waits for a slow client,
// but not for one that no longer reads, and reports whether it queued the
// message.
func (lw *lineWriter) trySend(msg []byte) bool {
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

// sendWithoutWaiting is send for the goroutine that reads: it does not wait.
func (lw *lineWriter) sendWithoutWaiting(msg []byte) {
	lw.mu.Lock()
	if lw.enqueue(msg) {
		lw.writeInBackground()
	}
	lw.mu.Unlock()
}

// writeInBackground writes in another goroutine, since writing may block.
func (lw *lineWriter) writeInBackground() {
	go func() {
		lw.mu.Lock()
		lw.writeQueue()
		lw.mu.Unlock()
	}()
}

// waitRead waits until the backlog is small enough to read on.
func (lw *lineWriter) waitForBacklog() {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	for lw.waitingBytes > lw.maxReadBacklog && lw.err == nil {
		lw.changed.Wait()
	}
}

// enqueue queues a message. If it returns true, the caller must have write
// called. It appends to the last part only, which must be small if there are
// several.
func (lw *lineWriter) enqueue(parts ...[]byte) bool {
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
	if len(before) == 0 && last >= 0 && len(lw.queue[last])+len(msg) < joinLimit {
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

// write writes until the queue is empty. The caller holds mu.
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

// flush waits until everything sent has been written.
func (lw *lineWriter) flush() error {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	for lw.writing {
		lw.changed.Wait()
	}
	return lw.err
}
