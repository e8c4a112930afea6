package mcpkit

import (
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

const (
	// smallMessage is the size up to which messages are joined into one write.
	smallMessage = 16 << 10
	// writeBacklog is how much may wait for a client that reads slowly before
	// those who answer have to wait too.
	writeBacklog = 8 << 20
	// stallTime is how long a client may read nothing of what waits for it, before
	// those who have something for it that can be missed do not wait any more.
	stallTime = time.Second
	// readBacklog is how much may wait for it before no more is read of what
	// it sends: lines that are no requests are answered by who reads, which
	// must not wait for a client that writes first and reads later.
	readBacklog = 64 << 20
)

// A lineWriter writes messages, one a line, in the order they were sent.
// Whoever sends while nobody writes becomes the writer and writes until
// nothing waits: one message goes out without any hand-over, and under load
// many go out in one write.
type lineWriter struct {
	w    io.Writer
	fail func(error) // called once, with the first write error
	hold int         // readBacklog, less in tests
	wide bool        // a large message was written; the writer's

	moves atomic.Uint64 // lines written

	mu      sync.Mutex
	changed sync.Cond // writing ended, or waiting shrank
	queue   [][]byte  // lines; small ones share an element, large ones may have several
	waiting int       // bytes in queue and in the write under way
	writing bool
	stalled uint64 // moves, and one, when nothing had been read for stallTime
	err     error
}

func newLineWriter(w io.Writer, fail func(error)) *lineWriter {
	lw := &lineWriter{w: w, fail: fail, hold: readBacklog}
	lw.changed.L = &lw.mu
	return lw
}

// send takes over the parts of a message, which has no newline, and waits while
// the backlog is full.
func (lw *lineWriter) send(parts ...[]byte) {
	lw.mu.Lock()
	for lw.waiting > writeBacklog && lw.err == nil {
		lw.changed.Wait()
	}
	if lw.push(parts...) {
		lw.write()
	}
	lw.mu.Unlock()
}

// offer is send for what can be missed. It waits for a client that is slow, but
// not for one that does not read, and reports whether the message was taken.
func (lw *lineWriter) offer(msg []byte) bool {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	for lw.waiting > writeBacklog && lw.err == nil {
		at := lw.moves.Load()
		if at+1 == lw.stalled {
			return false
		}
		late := time.AfterFunc(stallTime, func() {
			lw.mu.Lock()
			defer lw.mu.Unlock()
			if at == lw.moves.Load() {
				lw.stalled = at + 1
			}
			lw.changed.Broadcast()
		})
		lw.changed.Wait()
		late.Stop()
	}
	if lw.push(msg) {
		lw.writeAside()
	}
	return true
}

// post is send for the goroutine that reads: it never waits.
func (lw *lineWriter) post(msg []byte) {
	lw.mu.Lock()
	if lw.push(msg) {
		lw.writeAside()
	}
	lw.mu.Unlock()
}

// writeAside has another goroutine write, which may have to wait.
func (lw *lineWriter) writeAside() {
	go func() {
		lw.mu.Lock()
		lw.write()
		lw.mu.Unlock()
	}()
}

// waitRead waits while the backlog is too large to read on.
func (lw *lineWriter) waitRead() {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	for lw.waiting > lw.hold && lw.err == nil {
		lw.changed.Wait()
	}
}

// push queues a message. With true the caller must see to it that write is
// called. Of several parts only the last, which is small, is added to.
func (lw *lineWriter) push(parts ...[]byte) bool {
	if lw.err != nil {
		return false
	}
	before, msg := parts[:len(parts)-1], parts[len(parts)-1]
	for _, part := range before {
		lw.waiting += len(part)
		lw.queue = append(lw.queue, part)
	}
	lw.waiting += len(msg) + 1
	last := len(lw.queue) - 1
	if len(before) == 0 && last >= 0 && len(lw.queue[last])+len(msg) < smallMessage {
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

// write writes until the queue is empty. It is called, and returns, locked.
func (lw *lineWriter) write() {
	for len(lw.queue) > 0 && lw.err == nil {
		batch := lw.queue
		lw.queue = nil
		lw.mu.Unlock()
		var err error
		n := 0
		for _, line := range batch {
			n += len(line)
			if len(line) > jsonrpc.UsualPipe && !lw.wide {
				lw.wide = true
				jsonrpc.Widen(lw.w)
			}
			if err == nil {
				_, err = lw.w.Write(line)
				lw.moves.Add(1)
			}
		}
		lw.mu.Lock()
		lw.waiting -= n
		if err != nil {
			lw.err = err
			lw.queue = nil
			go lw.fail(err)
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
