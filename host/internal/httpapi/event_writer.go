package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// eventWriter writes server-sent events. The first event sends the header of the response,
// so an earlier error can still have its own status. Nothing is buffered: a write
// waits until the client reads, and a client that does not read ends the request and
// its work.
type eventWriter struct {
	w      http.ResponseWriter
	cancel context.CancelCauseFunc

	mu        sync.Mutex
	begun     bool
	writeErr  error
	keepAlive []byte

	stop chan struct{}
	once sync.Once
	done sync.WaitGroup
}

// errNotReading is the cause for ending work for a client that does not read.
var errNotReading = errors.New("the client does not read, or has disconnected")

// newEvents returns a stream to w. keepAlive is sent at this interval, so that proxies see
// that the connection is alive. A failed write calls cancel. The caller must call close.
func newEvents(w http.ResponseWriter, cancel context.CancelCauseFunc, keepAlive []byte, every time.Duration) *eventWriter {
	e := &eventWriter{w: w, cancel: cancel, keepAlive: keepAlive, stop: make(chan struct{})}
	e.done.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-e.stop:
				return
			case <-tick.C:
				e.write(e.keepAlive)
			}
		}
	})
	return e
}

// close stops the keep-alive texts and waits for their goroutine. It may be called again.
func (e *eventWriter) close() {
	e.once.Do(func() { close(e.stop) })
	e.done.Wait()
}

// started reports whether the answer has begun.
func (e *eventWriter) started() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.begun
}

// send sends one event with v as JSON; name "": without a name. If v cannot be encoded, it
// cancels the request.
func (e *eventWriter) send(name string, v any) {
	data, err := jsonrpc.Marshal(v)
	if err != nil {
		e.cancel(err)
		return
	}
	e.sendText(name, data)
}

// sendText sends an event whose data is a line of text.
func (e *eventWriter) sendText(name string, data []byte) {
	var b bytes.Buffer
	if name != "" {
		fmt.Fprintf(&b, "event: %s\n", name)
	}
	b.WriteString("data: ")
	b.Write(data)
	b.WriteString("\n\n")
	e.write(b.Bytes())
}

// write writes text to the client, after the headers if it is the first. A failed write cancels
// the request, and later ones do nothing.
func (e *eventWriter) write(text []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.writeErr != nil {
		return
	}
	if !e.begun {
		e.begun = true
		h := e.w.Header()
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no")
		e.w.WriteHeader(http.StatusOK)
	}
	_, err := e.w.Write(text)
	if err == nil {
		err = http.NewResponseController(e.w).Flush()
	}
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		e.writeErr = err
		e.cancel(fmt.Errorf("%w: %w", errNotReading, err))
	}
}
