package upstream

import (
	"bytes"
	"cmp"
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

// errNotSent is wrapped by the errors of requests of which nothing was sent.
var errNotSent = errors.New("not sent")

// notSentError marks an error as errNotSent and keeps its text.
type notSentError struct{ error }

// Unwrap returns errNotSent and the wrapped error.
func (u notSentError) Unwrap() []error { return []error{errNotSent, u.error} }

// A conn is one run of a server, as the calls see it.
type conn struct {
	cfg   Config
	out   wire
	since time.Time

	owners *call.Owners // of the requests in all runs of the server

	// Set by the handshake, before the conn is shared.
	era          Era
	identity     string
	capabilities declaredCapabilities

	toolsChanged chan struct{} // capacity 1: the server's list of tools changed
	dead         chan struct{} // closed when no more answers arrive
	ended        chan struct{} // closed when the process and its group have ended
	unused       chan struct{} // closed when nobody waits for an answer any more
	closeUnused  func()        // closes unused

	nextID        atomic.Uint64
	noise         atomic.Int64           // number of lines that were not messages
	firstStray    atomic.Pointer[string] // the first of them, redacted
	answeredCall  atomic.Bool            // a call was answered
	messages      atomic.Int64           // number of messages received
	rootsAnswered atomic.Int64           // nanoseconds after since of the last answer to roots/list; 0: none
	givenUp       atomic.Bool            // the watchdog gave the server up

	answeredPing, missesPings bool // it answered a health check; it does not any more; guarded by the Server's mu

	mu           sync.Mutex
	pending      map[uint64]*pendingRequest
	err          error // why it is dead
	watchdogRuns bool  // a watchdog is running
	watchdogs    sync.WaitGroup
	tools        []json.RawMessage
	lists        map[call.ListKind][]json.RawMessage // of the other kinds, if requested before
	changes      int                                 // number of list changes so far
	questions    map[string]context.CancelFunc       // the server's open questions, by id
	listenID     uint64                              // id of the open subscriptions/listen
}

// pendingRequest is a request that waits for its answer.
type pendingRequest struct {
	answer chan answer     // has room for one answer
	token  json.RawMessage // the caller's progress token; nil: none

	// The caller's request; nil for requests of the host itself.
	request *request
	ctx     context.Context
	wake    chan struct{} // capacity 1: notes is not empty

	// Guarded by the conn's mu.
	notifications []notification
	size          int                // bytes in notes
	questions     int                // number of open questions to its client
	questionsCtx  context.Context    // context of the questions
	endQuestions  context.CancelFunc // nil before the first question
	openQuestions sync.WaitGroup     // waits for the questions
}

// notification is a notification that belongs to a request.
type notification struct {
	method string
	params json.RawMessage
}

// answer is the answer to a request: a result, or an error.
type answer struct {
	result json.RawMessage
	names  jsonrpc.NameSet // names of its members
	err    error
}

// Bounds of the stored notifications for a caller that is slower than its server.
// Others are dropped.
const (
	maxNotifications     = 1024
	maxNotificationBytes = 8 << 20
)

// newConn returns a conn over a wire that has not been used, and handles its messages in a
// goroutine until it ends; see ended.
func newConn(cfg Config, out wire) *conn {
	c := &conn{
		cfg: cfg, out: out, since: time.Now(), owners: cmp.Or(cfg.owners, &call.Owners{}),
		toolsChanged: make(chan struct{}, 1),
		dead:         make(chan struct{}),
		ended:        make(chan struct{}),
		unused:       make(chan struct{}),
		pending:      map[uint64]*pendingRequest{},
	}
	c.closeUnused = sync.OnceFunc(func() { close(c.unused) })
	go func() {
		defer close(c.ended)
		c.fail(c.out.run(c))
		c.watchdogs.Wait() // no further one starts
	}()
	return c
}

// startError returns err with what explains it: the end of the process, its standard error
// and stray output, or the time limit of ctx.
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

// fail marks the connection as failed with err, the first time: waiting calls get err, and
// the server is stopped. It does not wait.
func (c *conn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
		close(c.dead)
		c.out.close()
	}
}

// done returns a channel that is closed by fail.
func (c *conn) done() <-chan struct{} { return c.dead }

// isAlive reports whether fail was not called yet.
func (c *conn) isAlive() bool {
	select {
	case <-c.dead:
		return false
	default:
		return true
	}
}

// replacedPID returns the process id of the shared process that a new start replaces,
// because the server is restarted or was found silent; 0: none.
func (c *conn) replacedPID() int {
	shared, ok := c.out.(*sharedWire)
	if !ok || c.isStale() || !c.isAlive() && !c.givenUp.Load() {
		return 0
	}
	return shared.result.PID
}

// isStale reports whether the server's process serves hosts with other roots or was
// replaced, so that the next request needs another process.
func (c *conn) isStale() bool {
	shared, ok := c.out.(*sharedWire)
	return ok && shared.stale.Load()
}

// failure returns why the connection failed; nil: it has not.
func (c *conn) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// listedTools returns the tools of the last list request; nil: none was answered, or the
// server has none.
func (c *conn) listedTools() []json.RawMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tools
}

// send queues a line for the server. It returns false if that fails.
func (c *conn) send(line []byte) (queued bool) { return c.out.send(line) == nil }

// newID returns an id for a request; 0 if the connection is dead.
func (c *conn) newID() uint64 {
	if shared, ok := c.out.(*sharedWire); ok {
		return shared.ids.take(c.dead)
	}
	return c.nextID.Add(1)
}

// addPending adds a request to those that wait for an answer, and returns its id. It
// returns an error if the connection is dead.
func (c *conn) addPending(p *pendingRequest) (uint64, error) {
	p.answer = make(chan answer, 1)
	id := c.newID()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, notSentError{c.err}
	}
	c.pending[id] = p
	if p.request != nil {
		c.recordOwner(p.request.caller)
		c.startWatchdog() // it notices a silent server
	}
	return id, nil
}

// endRequest removes a request and cancels its questions. When it returns, no question of
// the request is at the caller any more.
func (c *conn) endRequest(id uint64, p *pendingRequest) {
	c.mu.Lock()
	delete(c.pending, id)
	if p.endQuestions != nil {
		p.endQuestions()
	}
	c.mu.Unlock()
	p.openQuestions.Wait()
}

// requestFromServer sends a request of the host itself and waits for the result, until ctx
// or the connection ends. params is an object or nil. The error is an *call.MCPError if the
// server returned one.
func (c *conn) requestFromServer(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	p := &pendingRequest{}
	id, err := c.addPending(p)
	if err != nil {
		return nil, err
	}
	defer c.endRequest(id, p)
	if err := c.sendRequest(ctx, c.encodeRequest(id, method, params)); err != nil {
		return nil, err
	}
	a := c.awaitAnswer(ctx, id, p)
	return a.result, a.err
}

// sendRequest sends the line of a request. If it could not be sent because the connection
// is ending, it returns the reason why the connection ends.
func (c *conn) sendRequest(ctx context.Context, line []byte) error {
	err := c.out.send(line)
	if !errors.Is(err, errNotSent) {
		return err
	}
	select {
	case <-c.dead:
		return notSentError{c.failure()}
	case <-ctx.Done():
		return err
	}
}

// encodeRequest returns the line of a request of the host itself, with the _meta of the
// server's era.
func (c *conn) encodeRequest(id uint64, method string, params json.RawMessage) []byte {
	if c.era == Modern {
		params = modernParams(params, c.cfg.Version)
	}
	return append(jsonrpc.AppendRequest(nil, strconv.AppendUint(nil, id, 10), method, params), '\n')
}

// awaitAnswer returns the answer to request id, after it has passed on the notifications
// that arrived before it. If ctx ends first, it sends a cancellation to the server and
// drops a later answer.
func (c *conn) awaitAnswer(ctx context.Context, id uint64, p *pendingRequest) answer {
	for {
		select {
		case <-p.wake:
			c.deliverNotifications(p)
		case a := <-p.answer:
			c.deliverNotifications(p)
			return a
		case <-c.dead:
			return c.lastAnswer(ctx, p)
		case <-ctx.Done():
			c.endRequest(id, p)
			c.sendCancelled(id)
			return answer{err: ctx.Err()}
		}
	}
}

// lastAnswer returns the answer to a request of a dead connection: the received answer, or
// the reason why the connection is dead. If the process has ended, it first waits, at most
// until ctx ends, for the rest of its output.
func (c *conn) lastAnswer(ctx context.Context, p *pendingRequest) answer {
	reason := c.failure()
	if errors.As(reason, new(*connectionEndError)) {
		select {
		case a := <-p.answer:
			c.deliverNotifications(p)
			return a
		case <-c.ended:
		case <-ctx.Done():
			return answer{err: ctx.Err()}
		}
	}
	select {
	case a := <-p.answer:
		c.deliverNotifications(p)
		return a
	default:
		return answer{err: reason}
	}
}

// deliverNotifications passes the stored notifications of a request to the caller, in their order.
func (c *conn) deliverNotifications(p *pendingRequest) {
	if p.wake == nil {
		return
	}
	c.mu.Lock()
	notes := p.notifications
	p.notifications, p.size = nil, 0
	c.mu.Unlock()
	for _, n := range notes {
		p.request.notify(n.method, n.params)
	}
}

// handleLine handles a line of the server: a message or a batch. It counts and ignores
// other lines, since servers print banners and debug output.
func (c *conn) handleLine(line []byte) { c.handleLineOf(line, nil) }

// handleLineOf does the same for a line on the stream of a request with this id.
func (c *conn) handleLineOf(line []byte, of json.RawMessage) {
	if isBatch(line) {
		c.handleBatch(line, of)
		return
	}
	c.handleMessage(line, of)
}

// handleMessage handles one message of the server, on the stream of the request of; nil: the
// transport does not tell. A malformed answer fails its request with PROTOCOL_ERROR; other
// malformed messages are only counted.
func (c *conn) handleMessage(line []byte, of json.RawMessage) {
	m, err := decodeMessage(line)
	if err != nil {
		c.countStray(line)
		if id := answeredID(line, err); id != nil {
			c.deliver(id, answer{err: toolerr.New(toolerr.ProtocolError, "the server's answer is malformed: %w", err)})
		}
		return
	}
	c.messages.Add(1)
	switch m.Kind {
	case jsonrpc.Response:
		if m.Error != nil {
			c.deliver(m.ID, answer{err: c.cfg.rpcError(m.Error)})
		} else {
			c.deliver(m.ID, answer{result: m.Result, names: m.Names})
		}
	case jsonrpc.Request:
		c.answerRequest(m, of)
	case jsonrpc.Notification:
		c.handleNotification(m)
	}
}

// decodeMessage decodes a line. It replaces bytes that are not UTF-8. It returns an error
// for a line that is no message.
func decodeMessage(line []byte) (jsonrpc.Message, error) {
	m, err := jsonrpc.Split(line)
	if err != nil && !utf8.Valid(line) {
		m, err = jsonrpc.Split(bytes.ToValidUTF8(line, []byte("\uFFFD")))
	}
	if err != nil {
		m, err = parseLenient(line, err)
	}
	return m, err
}

// parseLenient decodes a response with both a result and an error if one of them is
// null, as JSON-RPC 1.0 required and some servers still send.
func parseLenient(line []byte, err error) (jsonrpc.Message, error) {
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

// deliver passes an answer to the request that waits for it. It drops the answer if none
// does.
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
