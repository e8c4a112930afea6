package mcpkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// DefaultMaxConcurrent is how many calls run at once.
const DefaultMaxConcurrent = 64

// maxControl is how many other requests (lists, pings) run at once. They have
// their own turn, so that they pass calls that wait.
const maxControl = 16

// DefaultGrace is how long running calls get to kill what they started once
// the server has to stop at once.
const DefaultGrace = time.Second

// ErrStopped is the cause of a call's context, and of what ServeStdio
// returns, when the server was told to stop: what the call started is to be
// killed at once, without a grace period.
var ErrStopped = errors.New("the server is stopping")

// ErrCancelled is the cause of a call's context when the client cancelled it.
var ErrCancelled = errors.New("cancelled by the client")

// errInputEnded is why a listen stream is closed after the last answer.
var errInputEnded = errors.New("the input ended")

// ServeOptions are the settings of ServeStdio. The zero value is good.
type ServeOptions struct {
	MaxConcurrent int           // calls that run at once; 0: DefaultMaxConcurrent
	MaxLine       int           // longest message in bytes; 0: jsonrpc.MaxLine
	Grace         time.Duration // 0: DefaultGrace

	// Session tells the clients of one server apart, if there are several at
	// once; "": "stdio".
	Session string

	// Trace is shown every message, before its line's end is written. It
	// must be safe for concurrent use and must not keep the bytes.
	Trace func(sent bool, message []byte)

	// Logf takes what has no other place; nil: nowhere. One line, no newline.
	Logf func(format string, args ...any)

	// Call, unless nil, carries out tools/call in place of mcp-go, which would
	// decode the arguments of each several times: it reads RawParams, answers
	// with SetRawResult or SetRawError, and reports true; or false, without an
	// answer, and mcp-go has the request. Requests of the modern era still pass
	// through mcp-go, which is not shown their arguments.
	Call func(ctx context.Context) bool

	now func() time.Time // for tests
}

// A conn is one client on one pair of streams.
type conn struct {
	server *server.MCPServer
	opts   ServeOptions
	out    *lineWriter
	ctx    context.Context
	cancel context.CancelCauseFunc

	lines   *jsonrpc.Reader
	ended   chan error // of reading
	calls   *queue
	control *queue
	self    *view // the connection's own session, for broadcasts to legacy clients
	hs      handshake

	mu       sync.Mutex
	inflight map[string]*view // by id
	requests sync.WaitGroup   // those that an end of input waits for
	listens  sync.WaitGroup   // those it does not
	asides   sync.WaitGroup   // what goes on besides requests

	questions questions
	roots     roots
}

// ServeStdio serves h to one client, one JSON-RPC message a line, until in
// ends: then every request read is answered, each within its own deadline,
// and ServeStdio returns nil. When ctx ends, or out fails, it stops at once
// and returns the cause.
//
// Reading never waits for calls. At most MaxConcurrent calls run, the others
// wait in the order they came; everything else passes them. A call that is
// cancelled gets no answer, and if it still waits it never runs. What a
// request notifies is written before its answer, nothing after it. Ids are
// echoed byte for byte. Both protocol eras are served on one connection, each
// request with a session of its own.
//
// The goroutine that reads in ends when in does.
func ServeStdio(ctx context.Context, h *server.MCPServer, in io.Reader, out io.Writer, opts ServeOptions) error {
	c := newConn(ctx, h, out, opts)
	defer c.finish()
	if err := h.RegisterSession(c.ctx, c.self); err != nil {
		return fmt.Errorf("registering the session: %w", err)
	}
	defer h.UnregisterSession(context.WithoutCancel(ctx), c.self.SessionID())

	c.lines = jsonrpc.NewReader(in, opts.MaxLine)
	go c.calls.work(task{read: c.read})
	var readErr error
	select {
	case readErr = <-c.ended:
		c.questions.close()
		c.wait(&c.requests, nil)
		c.endListens()
	case <-c.ctx.Done():
	}
	if c.ctx.Err() != nil {
		c.questions.close()
		c.wait(&c.requests, time.After(c.opts.Grace))
		c.asides.Go(c.self.end)
		return context.Cause(c.ctx)
	}
	c.self.end()
	if err := c.out.flush(); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return readErr
}

func newConn(ctx context.Context, h *server.MCPServer, out io.Writer, opts ServeOptions) *conn {
	if opts.MaxConcurrent <= 0 {
		opts.MaxConcurrent = DefaultMaxConcurrent
	}
	if opts.Grace <= 0 {
		opts.Grace = DefaultGrace
	}
	if opts.Session == "" {
		opts.Session = sessionID
	}
	if opts.now == nil {
		opts.now = time.Now
	}
	c := &conn{server: h, opts: opts, ended: make(chan error, 1), inflight: make(map[string]*view)}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	c.out = newLineWriter(out, func(err error) { c.cancel(fmt.Errorf("writing: %w", err)) })
	c.calls = newQueue(opts.MaxConcurrent, c.run)
	c.control = newQueue(maxControl, c.run)
	c.self = &view{conn: c, ctx: c.ctx}
	return c
}

func (c *conn) now() time.Time { return c.opts.now() }

func (c *conn) logf(format string, args ...any) {
	if c.opts.Logf != nil {
		c.opts.Logf(format, args...)
	}
}

// send writes a message; post does so from the goroutine that reads.
func (c *conn) send(parts ...[]byte) {
	if c.opts.Trace != nil {
		parts = [][]byte{slices.Concat(parts...)}
		c.opts.Trace(true, parts[0])
	}
	c.out.send(parts...)
}

// offer writes a message that can be missed, unless the client does not read.
func (c *conn) offer(msg []byte) bool {
	if c.opts.Trace != nil {
		c.opts.Trace(true, msg)
	}
	return c.out.offer(msg)
}

func (c *conn) post(msg []byte) {
	if c.opts.Trace != nil {
		c.opts.Trace(true, msg)
	}
	c.out.post(msg)
}

// wait waits for wg, for the connection to be cancelled, or, once it has
// been, for the time limit.
func (c *conn) wait(wg *sync.WaitGroup, limit <-chan time.Time) {
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

// finish ends what goes on besides requests, and waits for it no longer than
// Grace: a client that does not read holds up those who write.
func (c *conn) finish() {
	c.cancel(ErrStopped)
	var all sync.WaitGroup
	all.Go(c.listens.Wait)
	all.Go(c.asides.Wait)
	c.wait(&all, time.After(c.opts.Grace))
}

// endListens closes the listen streams with their answers.
func (c *conn) endListens() {
	c.mu.Lock()
	for _, v := range c.inflight {
		v.cancel(errInputEnded)
	}
	c.mu.Unlock()
	c.wait(&c.listens, time.After(c.opts.Grace))
}

// read reads and starts what it asks for, until it returns a request that this
// goroutine is to run, while another goes on with reading, or to the end of the
// input.
func (c *conn) read() *view {
	v, err := c.readLines()
	if v == nil {
		c.calls.close()
		c.control.close()
		c.ended <- err
	}
	return v
}

func (c *conn) readLines() (*view, error) {
	for c.ctx.Err() == nil {
		c.out.waitRead()
		line, err := c.lines.ReadLine()
		switch {
		case errors.Is(err, jsonrpc.ErrTooLong):
			c.post(jsonrpc.AppendError(nil, nil, jsonrpc.CodeInvalidRequest, "invalid request: "+err.Error()))
			continue
		case errors.Is(err, io.EOF):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("reading: %w", err)
		}
		if v := c.message(line); v != nil {
			return v, nil
		}
	}
	return nil, nil
}

// message takes one line. It returns what the goroutine that reads is to run
// itself.
func (c *conn) message(line []byte) *view {
	if isBlank(line) {
		return nil
	}
	if c.opts.Trace != nil {
		c.opts.Trace(false, line)
	}
	m, err := jsonrpc.Split(line)
	if err != nil {
		var fault *jsonrpc.Error
		if !errors.As(err, &fault) {
			fault = &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "internal error"}
		}
		c.post(jsonrpc.AppendError(nil, fault.ID, fault.Code, fault.Message))
		return nil
	}
	switch m.Kind {
	case jsonrpc.Response:
		c.respond(m)
	case jsonrpc.Notification:
		c.notification(m, line)
	case jsonrpc.Request:
		return c.request(m, line)
	}
	return nil
}

func isBlank(line []byte) bool {
	for _, b := range line {
		if b != ' ' && b != '\t' && b != '\r' {
			return false
		}
	}
	return true
}

// notification acts on one of the client's. Handlers that a server registers
// for others run here, in order; they must not block.
func (c *conn) notification(m jsonrpc.Message, line []byte) {
	switch m.Method {
	case string(mcp.MethodNotificationCancelled):
		c.cancelRequest(jsonrpc.MemberOf(m.Params, "requestId"))
		return
	case "notifications/initialized":
		c.hs.mu.Lock()
		c.hs.ready = c.hs.begun
		c.hs.mu.Unlock()
	case string(mcp.MethodNotificationRootsListChanged):
		c.forgetRoots()
	}
	defer func() {
		if value := recover(); value != nil {
			c.logPanic(m.Method, value)
		}
	}()
	c.server.HandleMessage(c.server.WithContext(c.ctx, c.self), json.RawMessage(line))
}
