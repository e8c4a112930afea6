package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/server"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// maxOtherRequests limits the requests other than calls (lists, pings) running
// at once. They have a separate queue, so that they overtake waiting calls.
const maxOtherRequests = 16

// ErrStopped is the cause of a call's context, and the error of ServeStdio,
// after the server was stopped: the call must kill its processes at once,
// without a grace period.
var ErrStopped = errors.New("the server is stopping")

// ErrCancelled is the cause of a call's context after the client cancelled the
// call.
var ErrCancelled = errors.New("cancelled by the client")

// errInputEnded is the cause of a subscription stream's context after the input
// has ended and the last call was answered.
var errInputEnded = errors.New("the input ended")

// A conn serves one client over one pair of streams.
type conn struct {
	server *server.MCPServer
	opts   ServeOptions
	out    *lineWriter
	ctx    context.Context
	cancel context.CancelCauseFunc // stops the connection with a cause

	lines     *jsonrpc.Reader
	readEnded chan error    // gets the error that ended reading; nil: the input ended
	calls     *requestQueue // queue of the calls
	others    *requestQueue // queue of the other requests
	session   *request      // the connection's own session, for broadcasts to legacy clients
	handshake handshake

	mu         sync.Mutex
	inflight   map[string]*request // unanswered requests, by key
	requests   sync.WaitGroup      // requests that the end of input waits for
	listens    sync.WaitGroup      // subscription streams, which the end of input does not wait for
	background sync.WaitGroup      // goroutines that serve no request

	outgoing outgoingRequests
	roots    rootsCache
}

// ServeStdio serves h to one client, one JSON-RPC message a line, until in
// ends. Then it answers every request that was read, each within its own
// deadline, and returns nil, or the error that ended reading. If ctx ends or a
// write fails, it stops at once and returns the cause.
//
// Reading never waits for calls. At most MaxConcurrent calls run, and others
// wait in order of arrival; all other requests overtake them. A cancelled call
// gets no answer, and if it is still queued it never runs. A request's
// notifications are written before its answer, none after it. Ids are echoed
// byte for byte. A connection serves both protocol eras, each request with its
// own session.
//
// The goroutine that reads from in runs until in ends.
func ServeStdio(ctx context.Context, h *server.MCPServer, in io.Reader, out io.Writer, opts ServeOptions) error {
	c := newConn(ctx, h, out, opts)
	defer c.stopAndWait()
	if err := h.RegisterSession(c.ctx, c.session); err != nil {
		return fmt.Errorf("registering the session: %w", err)
	}
	defer h.UnregisterSession(context.WithoutCancel(ctx), c.session.SessionID())

	c.lines = jsonrpc.NewReader(in, opts.MaxLine)
	go c.calls.runWorker(workerTask{readLoop: c.readLoop})
	var readErr error
	select {
	case readErr = <-c.readEnded:
		c.outgoing.failAll()
		c.waitFor(&c.requests, nil)
		c.closeListens()
	case <-c.ctx.Done():
	}
	if c.ctx.Err() != nil {
		c.outgoing.failAll()
		c.waitFor(&c.requests, time.After(c.opts.Grace))
		c.background.Go(c.session.closeSending)
		return context.Cause(c.ctx)
	}
	c.session.closeSending()
	if err := c.out.flush(); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return readErr
}

// newConn returns a connection that does not read yet. ctx stops it.
func newConn(ctx context.Context, h *server.MCPServer, out io.Writer, opts ServeOptions) *conn {
	if opts.MaxConcurrent <= 0 {
		opts.MaxConcurrent = DefaultMaxConcurrent
	}
	if opts.Grace <= 0 {
		opts.Grace = DefaultGrace
	}
	if opts.Session == "" {
		opts.Session = defaultSession
	}
	if opts.now == nil {
		opts.now = time.Now
	}
	c := &conn{server: h, opts: opts, readEnded: make(chan error, 1), inflight: make(map[string]*request)}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	c.out = newLineWriter(out, func(err error) { c.cancel(fmt.Errorf("writing: %w", err)) })
	c.calls = newRequestQueue(opts.MaxConcurrent, c.runQueued)
	c.others = newRequestQueue(maxOtherRequests, c.runQueued)
	c.session = &request{conn: c, ctx: c.ctx}
	return c
}

// clockNow returns the time by ServeOptions.now, which tests set.
func (c *conn) clockNow() time.Time { return c.opts.now() }

// logf logs through ServeOptions.Logf, if that is set.
func (c *conn) logf(format string, args ...any) {
	if c.opts.Logf != nil {
		c.opts.Logf(format, args...)
	}
}

// send writes a message, given in parts, and may wait for the client to read.
// The goroutine that reads must use sendWithoutWaiting instead.
func (c *conn) send(parts ...[]byte) {
	if c.opts.Trace != nil {
		parts = [][]byte{slices.Concat(parts...)}
		c.opts.Trace(true, parts[0])
	}
	c.out.send(parts...)
}

// trySend writes a message that may be lost. It returns false, without writing
// it, if the client has stopped reading and the backlog is full.
func (c *conn) trySend(msg []byte) (queued bool) {
	if c.opts.Trace != nil {
		c.opts.Trace(true, msg)
	}
	return c.out.trySend(msg)
}

// sendWithoutWaiting queues a message, for the goroutine that reads.
func (c *conn) sendWithoutWaiting(msg []byte) {
	if c.opts.Trace != nil {
		c.opts.Trace(true, msg)
	}
	c.out.sendWithoutWaiting(msg)
}

// waitFor waits for wg. If limit is nil, it stops waiting when the connection
// is cancelled; otherwise only when limit is readable.
func (c *conn) waitFor(wg *sync.WaitGroup, limit <-chan time.Time) {
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	if limit != nil {
		select {
		case <-done:
		case <-limit:
		}
		return
	}
	select {
	case <-done:
	case <-c.ctx.Done():
	}
}

// stopAndWait cancels the connection, and waits for subscription streams and
// background goroutines at most Grace: writers may be blocked by a client that
// does not read.
func (c *conn) stopAndWait() {
	c.cancel(ErrStopped)
	var all sync.WaitGroup
	all.Go(c.listens.Wait)
	all.Go(c.background.Wait)
	c.waitFor(&all, time.After(c.opts.Grace))
}

// closeListens closes the subscription streams and waits, at most Grace, for
// their final answers.
func (c *conn) closeListens() {
	c.mu.Lock()
	for _, req := range c.inflight {
		req.cancel(errInputEnded)
	}
	c.mu.Unlock()
	c.waitFor(&c.listens, time.After(c.opts.Grace))
}
