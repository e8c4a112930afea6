package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// errNotSent is wrapped by the error of a request of which nothing was sent.
var errNotSent = errors.New("not sent")

// notSent is an error of such a request, said as what it is of itself.
type notSent struct{ error }

func (u notSent) Unwrap() []error { return []error{errNotSent, u.error} }

// A conn is one run of a server, seen from the calls that use it.
type conn struct {
	cfg   Config
	out   wire
	since time.Time

	// Set by the handshake, before the conn is shared.
	era      Era
	identity string
	offers   offer

	changed chan struct{} // holds one: the server said its list changed
	dead    chan struct{} // closed when no answer will come any more
	gone    chan struct{} // closed when the process and its group are gone
	left    chan struct{} // closed when no answer is waited for any more
	leave   func()        // closes left

	nextID atomic.Uint64
	noise  atomic.Int64           // lines that were no messages
	stray  atomic.Pointer[string] // the first of them, concealed
	worked atomic.Bool            // a call was answered
	heard  atomic.Int64           // messages so far

	pinged, unwell bool // it answered a health check; it does not any more; under the Server's mu

	mu      sync.Mutex
	pending map[uint64]*pending
	err     error // why it is dead
	minding bool  // somebody minds its silence
	minds   sync.WaitGroup
	tools   []json.RawMessage
	lists   map[call.Kind][]json.RawMessage // of the other kinds, as far as asked for
	changes int                             // of these so far
	asked   map[string]context.CancelFunc   // the server's questions under way, by id
	listen  uint64                          // the subscriptions/listen that is open
}

// pending is one request that waits for its answer.
type pending struct {
	answer chan answer     // holds one
	token  json.RawMessage // the caller's progress token; nil: none

	// Of a request for a caller of the host's; else nil.
	from *request
	ctx  context.Context
	wake chan struct{} // holds one: notes has something

	// Under the conn's mu.
	notes     []note
	size      int                // bytes in notes
	questions int                // that its client is asked
	life      context.Context    // of these
	end       context.CancelFunc // nil before the first
	asking    sync.WaitGroup     // the same questions
}

// note is a notification that belongs to a request.
type note struct {
	method string
	params json.RawMessage
}

type answer struct {
	result json.RawMessage
	names  jsonrpc.NameSet // of its members
	err    error
}

// What is kept of the notifications for a caller that is slower than its
// server; more are dropped, since the next one says more anyway.
const (
	maxNotes     = 1024
	maxNoteBytes = 8 << 20
)

// newConn begins a run over a wire that has not been used.
func newConn(cfg Config, out wire) *conn {
	c := &conn{
		cfg: cfg, out: out, since: time.Now(),
		changed: make(chan struct{}, 1),
		dead:    make(chan struct{}),
		gone:    make(chan struct{}),
		left:    make(chan struct{}),
		pending: map[uint64]*pending{},
	}
	c.leave = sync.OnceFunc(func() { close(c.left) })
	go func() {
		defer close(c.gone)
		c.fail(c.out.run(c))
		c.minds.Wait() // none begins any more
	}()
	return c
}

// startError explains an error during the start.
func (c *conn) startError(ctx context.Context, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		err = toolerr.New(toolerr.ServerOffline, "it did not answer the handshake within %v", c.cfg.StartTimeout)
		if line := Cause(c.out.describe().stderr); line != "" {
			err = toolerr.New(toolerr.ServerOffline, "%w; on its standard error: %s", err, line)
		}
	}
	if stray := c.strayText(); stray != "" && toolerr.CodeOf(err) == toolerr.ServerOffline {
		err = toolerr.New(toolerr.ServerOffline, "%w%s", err, stray)
	}
	if code := toolerr.CodeOf(err); code == toolerr.ServerOffline || code == toolerr.AuthFailed || ctx.Err() != nil {
		return err
	}
	var refused *call.MCPError
	if errors.As(err, &refused) {
		refused.Server = c.cfg.Name
	}
	return toolerr.New(toolerr.ServerOffline, "the handshake failed: %w", err)
}

// fail ends the connection: waiting calls get err, the server is stopped.
func (c *conn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
		close(c.dead)
		c.out.close()
	}
}

func (c *conn) alive() bool {
	select {
	case <-c.dead:
		return false
	default:
		return true
	}
}

func (c *conn) reason() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *conn) listed() []json.RawMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tools
}

// send queues a line; its failure shows as the connection's.
func (c *conn) send(line []byte) bool { return c.out.send(line) == nil }

// register makes room for the answer to a new request.
func (c *conn) register(p *pending) (uint64, error) {
	p.answer = make(chan answer, 1)
	id := c.nextID.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, notSent{c.err}
	}
	c.pending[id] = p
	if p.from != nil {
		c.minded() // a silent server is noticed
	}
	return id, nil
}

// forget ends a request and the questions that belong to it. When it returns
// nobody asks the caller any more.
func (c *conn) forget(id uint64, p *pending) {
	c.mu.Lock()
	delete(c.pending, id)
	if p.end != nil {
		p.end()
	}
	c.mu.Unlock()
	p.asking.Wait()
}

// ask sends a request of the host's own. params is an object or nil.
func (c *conn) ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	p := &pending{}
	id, err := c.register(p)
	if err != nil {
		return nil, err
	}
	defer c.forget(id, p)
	if err := c.post(ctx, c.ownRequest(id, method, params)); err != nil {
		return nil, err
	}
	a := c.wait(ctx, id, p)
	return a.result, a.err
}

// post sends the line of a request. One that was not sent since the connection
// is ending, which the wire may notice first, fails with why it ends.
func (c *conn) post(ctx context.Context, line []byte) error {
	err := c.out.send(line)
	if !errors.Is(err, errNotSent) {
		return err
	}
	select {
	case <-c.dead:
		return notSent{c.reason()}
	case <-ctx.Done():
		return err
	}
}

// ownRequest is the line of a request of the host's own.
func (c *conn) ownRequest(id uint64, method string, params json.RawMessage) []byte {
	if c.era == Modern {
		params = modernParams(params, c.cfg.Version)
	}
	return append(jsonrpc.AppendRequest(nil, strconv.AppendUint(nil, id, 10), method, params), '\n')
}

// wait returns the answer to request id, after the notifications that came
// before it. When ctx ends first the server is told, and its answer, should
// one still come, is dropped.
func (c *conn) wait(ctx context.Context, id uint64, p *pending) answer {
	for {
		select {
		case <-p.wake:
			c.handOver(p)
		case a := <-p.answer:
			c.handOver(p)
			return a
		case <-c.dead:
			return c.last(ctx, p)
		case <-ctx.Done():
			c.forget(id, p)
			c.cancelled(id)
			return answer{err: ctx.Err()}
		}
	}
}

// last returns the answer to a request of a dead connection: what has come for
// it, or why the connection is dead.
func (c *conn) last(ctx context.Context, p *pending) answer {
	reason := c.reason()
	if errors.As(reason, new(*overError)) {
		select {
		case a := <-p.answer:
			c.handOver(p)
			return a
		case <-c.gone:
		case <-ctx.Done():
			return answer{err: ctx.Err()}
		}
	}
	select {
	case a := <-p.answer:
		c.handOver(p)
		return a
	default:
		return answer{err: reason}
	}
}

// cancelled tells the server that nobody waits for an answer any more.
func (c *conn) cancelled(id uint64) {
	params := strconv.AppendUint([]byte(`{"requestId":`), id, 10)
	params = append(params, `,"reason":"the caller cancelled it"}`...)
	c.send(append(jsonrpc.AppendNotification(nil, "notifications/cancelled", params), '\n'))
}

// handOver gives the notifications that have come to the caller.
func (c *conn) handOver(p *pending) {
	if p.wake == nil {
		return
	}
	c.mu.Lock()
	notes := p.notes
	p.notes, p.size = nil, 0
	c.mu.Unlock()
	for _, n := range notes {
		p.from.notify(n.method, n.params)
	}
}

// take handles one line, most often a message. What is none is counted and
// otherwise ignored: servers print banners and debugging output.
func (c *conn) take(line []byte) {
	if isBatch(line) {
		c.takeBatch(line)
		return
	}
	c.takeOne(line)
}

func (c *conn) takeOne(line []byte) {
	m, err := jsonrpc.Split(line)
	if err != nil && !utf8.Valid(line) {
		m, err = jsonrpc.Split(bytes.ToValidUTF8(line, []byte("\uFFFD")))
	}
	if err != nil {
		m, err = lenient(line, err)
	}
	if err != nil {
		c.strayed(line)
		if id := answerTo(line, err); id != nil {
			c.deliver(id, answer{err: toolerr.New(toolerr.ProtocolError, "the server's answer is malformed: %w", err)})
		}
		return
	}
	c.heard.Add(1)
	switch m.Kind {
	case jsonrpc.Response:
		if m.Error != nil {
			c.deliver(m.ID, answer{err: c.cfg.rpcError(m.Error)})
		} else {
			c.deliver(m.ID, answer{result: m.Result, names: m.Names})
		}
	case jsonrpc.Request:
		c.serve(m)
	case jsonrpc.Notification:
		c.notified(m)
	}
}

// lenient reads a response that carries both a result and an error, one of which
// is null, as JSON-RPC 1.0 asked for and some servers still send.
func lenient(line []byte, err error) (jsonrpc.Message, error) {
	members, fault := jsonrpc.Members(line)
	if fault != nil {
		return jsonrpc.Message{}, err
	}
	m := jsonrpc.Message{Kind: jsonrpc.Response}
	for _, member := range members {
		switch member.Name {
		case "id":
			m.ID = member.Value
		case "result":
			m.Result = member.Value
		case "error":
			m.Error = member.Value
		case "method":
			return jsonrpc.Message{}, err
		}
	}
	switch {
	case m.ID == nil || m.Result == nil:
		return jsonrpc.Message{}, err
	case isNull(m.Error):
		m.Error = nil
	case !isNull(m.Result):
		return jsonrpc.Message{}, err
	}
	return m, nil
}

// deliver gives an answer to the request it belongs to. Answers to requests
// that are not waiting any more are dropped.
func (c *conn) deliver(rawID json.RawMessage, a answer) {
	id, err := strconv.ParseUint(string(bytes.Trim(rawID, `"`)), 10, 64)
	if err != nil {
		return
	}
	c.mu.Lock()
	p := c.pending[id]
	delete(c.pending, id)
	c.mu.Unlock()
	if p != nil {
		p.answer <- a
	}
}
