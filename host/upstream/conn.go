package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/host/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// errNotSent is wrapped by the error of a request of which nothing was sent.
var errNotSent = errors.New("not sent")

// A conn is one run of a server: its process and the wire to it.
type conn struct {
	cfg   Config
	proc  *process
	out   *writer
	since time.Time

	// Set by the handshake, before the conn is shared.
	era      Era
	identity string
	hasTools bool

	changed chan struct{} // holds one: the server said its list changed
	dead    chan struct{} // closed when no answer will come any more
	gone    chan struct{} // closed when the process and its group are gone

	nextID atomic.Uint64
	noise  atomic.Int64
	worked atomic.Bool  // a call was answered
	heard  atomic.Int64 // messages so far

	mu      sync.Mutex
	pending map[uint64]*pending
	err     error // why it is dead
	minding bool  // somebody minds its silence
	tools   []json.RawMessage
}

// pending is one request that waits for its answer.
type pending struct {
	answer chan answer // holds one
	notes  chan json.RawMessage
	token  json.RawMessage // the caller's progress token; nil: none
}

type answer struct {
	result json.RawMessage
	err    error
}

// maxNotes bounds the progress notifications kept for a caller that is slower
// than its server; more are dropped, since the next one says more anyway.
const maxNotes = 1024

func newConn(cfg Config, p *process, spawner *Spawner) *conn {
	c := &conn{
		cfg: cfg, proc: p, since: time.Now(),
		changed: make(chan struct{}, 1),
		dead:    make(chan struct{}),
		gone:    make(chan struct{}),
		pending: map[uint64]*pending{},
	}
	c.out = newWriter(p.stdin, cfg.WriteTimeout, c.fail)
	ended := make(chan struct{}) // stdout has been read to its end
	go func() {
		defer close(ended)
		c.read()
	}()
	go func() {
		defer close(c.gone)
		c.supervise(ended)
		spawner.ended(p)
	}()
	return c
}

// supervise waits for the first sign of the end (the process exits, closes
// its output, or has been given up), says why to the waiting calls, and sees
// to it that process and group are gone.
func (c *conn) supervise(ended <-chan struct{}) {
	select {
	case <-ended:
		// It usually exits at the same time; then that is the reason.
		select {
		case <-c.proc.exited:
		case <-time.After(200 * time.Millisecond):
		}
	case <-c.proc.exited:
	case <-c.dead:
	}
	c.proc.stop(c.cfg.CloseGrace, c.cfg.TermGrace)
	// What it wrote before its end is still answered. The group is dead, so
	// the pipe ends, unless somebody who left the group still holds it.
	select {
	case <-ended:
	case <-time.After(time.Second):
	}
	c.proc.closeOutput()
	<-ended
	c.fail(c.exitError())
}

// exitError says how the process ended.
func (c *conn) exitError() error {
	text := c.proc.exitText()
	if line := lastLine(c.proc.stderr.String()); line != "" {
		text += "; its last words: " + line
	}
	return toolerr.New(toolerr.ServerOffline, "the server %s", text)
}

// startError explains an error during the start.
func (c *conn) startError(ctx context.Context, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		err = toolerr.New(toolerr.ServerOffline, "it did not answer the handshake within %v", c.cfg.StartTimeout)
		if line := lastLine(c.proc.stderr.String()); line != "" {
			err = toolerr.New(toolerr.ServerOffline, "%w; its last words: %s", err, line)
		}
	}
	if toolerr.CodeOf(err) == toolerr.ServerOffline || ctx.Err() != nil {
		return err
	}
	return toolerr.New(toolerr.ServerOffline, "the handshake failed: %w", err)
}

// fail ends the connection: waiting calls get err, the process is stopped.
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

// register makes room for the answer to a new request, and with mind sees to
// it that a silent server is noticed.
func (c *conn) register(token json.RawMessage, mind bool) (uint64, *pending, error) {
	p := &pending{answer: make(chan answer, 1), token: token}
	if token != nil {
		p.notes = make(chan json.RawMessage, maxNotes)
	}
	id := c.nextID.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, nil, fmt.Errorf("%w: %w", errNotSent, c.err)
	}
	c.pending[id] = p
	if mind {
		c.minded()
	}
	return id, p, nil
}

func (c *conn) forget(id uint64) {
	c.mu.Lock()
	delete(c.pending, id)
	c.mu.Unlock()
}

// call sends a tools/call and waits for its answer, passing on its progress.
func (c *conn) call(ctx context.Context, req *call.Request) (json.RawMessage, error) {
	params, err := parseCall(req.Params)
	if err != nil {
		return nil, toolerr.New(toolerr.InvalidParams, "params of tools/call: %w", err)
	}
	var token json.RawMessage
	if req.OnNotify != nil {
		token = params.token
	}
	id, p, err := c.register(token, true)
	if err != nil {
		return nil, err
	}
	defer c.forget(id)
	raw := strconv.AppendUint(nil, id, 10)
	line := append(make([]byte, 0, len(req.Params)+128), `{"jsonrpc":"2.0","id":`...)
	line = append(append(line, raw...), `,"method":"tools/call","params":`...)
	line = params.append(line, rewrite{
		name: req.Tool.Original, token: token != nil, id: raw,
		from: req.Caller.Modern, to: c.era, version: c.cfg.Version,
	})
	if err := c.out.send(append(oneLine(line), "}\n"...)); err != nil {
		return nil, err
	}
	result, err := c.wait(ctx, id, p, req.OnNotify)
	if err == nil && result[0] != '{' {
		return nil, toolerr.New(toolerr.ProtocolError, "the server's result is not an object")
	}
	var answered *call.MCPError
	if errors.As(err, &answered) {
		answered.Server = c.cfg.Name
	}
	return result, err
}

// ask sends a request of the host's own. params is an object or nil.
func (c *conn) ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	id, p, err := c.register(nil, false)
	if err != nil {
		return nil, err
	}
	defer c.forget(id)
	if c.era == Modern {
		params = modernParams(params, c.cfg.Version)
	}
	line := jsonrpc.AppendRequest(nil, strconv.AppendUint(nil, id, 10), method, params)
	if err := c.out.send(append(line, '\n')); err != nil {
		return nil, err
	}
	return c.wait(ctx, id, p, nil)
}

// wait returns the answer to request id. When ctx ends first the server is
// told, and its answer, should one still come, is dropped.
func (c *conn) wait(ctx context.Context, id uint64, p *pending, notify func(string, json.RawMessage)) (json.RawMessage, error) {
	for {
		select {
		case note := <-p.notes:
			notify("notifications/progress", note)
		case a := <-p.answer:
			return c.answered(p, a, notify)
		case <-c.dead:
			select {
			case a := <-p.answer:
				return c.answered(p, a, notify)
			default:
				return nil, c.reason()
			}
		case <-ctx.Done():
			c.forget(id)
			params := strconv.AppendUint([]byte(`{"requestId":`), id, 10)
			params = append(params, `,"reason":"the caller cancelled it"}`...)
			c.send(append(jsonrpc.AppendNotification(nil, "notifications/cancelled", params), '\n'))
			return nil, ctx.Err()
		}
	}
}

// answered hands over the notifications that came before the answer.
func (c *conn) answered(p *pending, a answer, notify func(string, json.RawMessage)) (json.RawMessage, error) {
	for {
		select {
		case note := <-p.notes:
			notify("notifications/progress", note)
		default:
			return a.result, a.err
		}
	}
}

// read takes messages until the server's output ends.
func (c *conn) read() {
	in := jsonrpc.NewReader(c.proc.stdout, c.cfg.MaxLine)
	for {
		line, err := in.ReadLine()
		switch {
		case errors.Is(err, jsonrpc.ErrTooLong):
			c.tooLong(err)
		case err != nil:
			return
		case len(bytes.TrimSpace(line)) > 0:
			c.take(line)
		}
	}
}

// take handles one line. What is no message is counted and otherwise ignored:
// servers print banners and debugging output.
func (c *conn) take(line []byte) {
	m, err := jsonrpc.Split(line)
	if err != nil && !utf8.Valid(line) {
		m, err = jsonrpc.Split(bytes.ToValidUTF8(line, []byte("\uFFFD")))
	}
	if err != nil {
		m, err = lenient(line, err)
	}
	if err != nil {
		c.noise.Add(1)
		var fault *jsonrpc.Error
		if errors.As(err, &fault) && fault.ID != nil {
			c.deliver(fault.ID, answer{err: toolerr.New(toolerr.ProtocolError, "the server's answer is malformed: %w", err)})
		}
		return
	}
	c.heard.Add(1)
	switch m.Kind {
	case jsonrpc.Response:
		if m.Error != nil {
			c.deliver(m.ID, answer{err: rpcError(m.Error)})
		} else {
			c.deliver(m.ID, answer{result: m.Result})
		}
	case jsonrpc.Request:
		c.serve(m)
	case jsonrpc.Notification:
		c.notified(m)
	}
}

// lenient reads a response that carries both a result and a null error, as
// JSON-RPC 1.0 asked for and some servers still send.
func lenient(line []byte, err error) (jsonrpc.Message, error) {
	members, fault := jsonrpc.Members(line)
	if fault != nil {
		return jsonrpc.Message{}, err
	}
	m := jsonrpc.Message{Kind: jsonrpc.Response}
	for _, member := range members {
		switch {
		case member.Name == "id":
			m.ID = member.Value
		case member.Name == "result":
			m.Result = member.Value
		case member.Name == "error" && string(member.Value) != "null", member.Name == "method":
			return jsonrpc.Message{}, err
		}
	}
	if m.ID == nil || m.Result == nil {
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

// tooLong fails the call whose answer was too long to keep. If that cannot be
// told, it fails all that wait: one of them would wait for ever.
func (c *conn) tooLong(err error) {
	failed := answer{err: toolerr.New(toolerr.TooLarge,
		"the server sent a message of more than %d bytes, which was dropped; ask for less at a time", c.cfg.MaxLine)}
	var long *jsonrpc.TooLongError
	if errors.As(err, &long) {
		// Compiled here: it is rare, and a start should not pay for it.
		ownID := regexp.MustCompile(`^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*"?([0-9]{1,20})"?\s*,`)
		if m := ownID.FindSubmatch(long.Head); m != nil {
			c.deliver(m[1], failed)
			return
		}
	}
	c.mu.Lock()
	waiting := c.pending
	c.pending = map[uint64]*pending{}
	c.mu.Unlock()
	for _, p := range waiting {
		p.answer <- failed
	}
}

func rpcError(object json.RawMessage) error {
	var e struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	if object[0] != '{' {
		return toolerr.New(toolerr.ProtocolError, "the server's error is not an object")
	}
	if err := json.Unmarshal(object, &e); err != nil {
		return toolerr.New(toolerr.ProtocolError, "the server's error is malformed: %w", err)
	}
	return &call.MCPError{Code: e.Code, Message: e.Message, Object: object}
}
