package mcpkittest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// ErrCrashed is Serve's error after a fault with Crash.
var ErrCrashed = errors.New("the mock crashed as requested")

// mockClient is the state of one client.
type mockClient struct {
	write sync.Mutex
	out   func(line []byte) error

	mu       sync.Mutex
	inflight map[string]context.CancelFunc // by id
}

// send writes a line. It ignores errors: the client has gone.
func (c *mockClient) send(line []byte) {
	c.write.Lock()
	defer c.write.Unlock()
	c.out(line) //nolint:errcheck // the reader notices that the client has gone
}

// Serve serves one client, one message a line, until in has ended and every
// request has been answered, or until ctx ends. Use it as a host's in-process
// server.
func (m *Mock) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := newMockClient()
	c.out = func(line []byte) error {
		_, err := out.Write(append(line, '\n'))
		return err
	}
	m.join(c)
	defer m.leave(c)
	over := make(chan error, 1)
	lines := jsonrpc.NewReader(in, 0)
	var work sync.WaitGroup
	go func() {
		for {
			line, err := lines.ReadLine()
			if err != nil {
				work.Wait()
				over <- nil
				return
			}
			msg, err := jsonrpc.Split(line)
			if err != nil {
				c.send(jsonrpc.AppendError(nil, nil, jsonrpc.CodeParse, "parse error"))
				continue
			}
			answer := m.take(ctx, c, msg)
			if answer == nil {
				continue
			}
			work.Go(func() {
				line, crash := answer()
				if crash {
					select {
					case over <- ErrCrashed:
					default:
					}
					return
				}
				m.say(c, line)
			})
		}
	}()
	select {
	case err := <-over:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// say writes an answer, after a line of noise if that is set.
func (m *Mock) say(c *mockClient, line []byte) {
	if line == nil {
		return
	}
	m.mu.Lock()
	noise := m.noise
	m.mu.Unlock()
	if noise != "" {
		c.send([]byte(noise))
	}
	c.send(line)
}

func (m *Mock) join(c *mockClient) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clients[c] = true
}

func (m *Mock) leave(c *mockClient) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.clients, c)
}

// take records one message and returns, for a request, a function that waits
// until the answer is due and returns it: a line, nil for none, or crash if the
// server is to end. Messages must be taken in order.
func (m *Mock) take(ctx context.Context, c *mockClient, msg jsonrpc.Message) func() (line []byte, crash bool) {
	switch msg.Kind {
	case jsonrpc.Notification:
		if msg.Method == "notifications/cancelled" {
			c.cancel(msg.Params)
		}
		return nil
	case jsonrpc.Response:
		return nil
	}
	var p struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Meta      json.RawMessage `json:"_meta"`
		Cursor    string          `json:"cursor"`
		Version   string          `json:"protocolVersion"`
	}
	if len(msg.Params) > 0 && json.Unmarshal(msg.Params, &p) != nil {
		return func() ([]byte, bool) {
			return jsonrpc.AppendError(nil, msg.ID, jsonrpc.CodeInvalidParams, "invalid params"), false
		}
	}
	id := string(msg.ID)
	ctx, cancel := context.WithCancel(ctx)
	c.mu.Lock()
	c.inflight[id] = cancel
	c.mu.Unlock()

	m.mu.Lock()
	defer m.mu.Unlock()
	what := msg.Method
	var call *Call
	if msg.Method == "tools/call" {
		what = p.Name
		call = &Call{Tool: p.Name, Arguments: p.Arguments, Meta: p.Meta}
		m.calls = append(m.calls, call)
		close(m.arrived)
		m.arrived = make(chan struct{})
	}
	fault := m.fault(what)
	answer := m.answer(msg, p.Name, p.Arguments, p.Cursor, p.Version)
	if m.modern && bytes.Contains(p.Meta, []byte(modernKey)) {
		answer = m.answerModern(msg, answer)
	}
	return func() ([]byte, bool) {
		defer func() {
			c.mu.Lock()
			delete(c.inflight, id)
			c.mu.Unlock()
			cancel()
		}()
		if !fault.wait(ctx) {
			m.mu.Lock()
			defer m.mu.Unlock()
			if call != nil {
				call.Cancelled = true
			}
			return nil, false
		}
		return fault.spoil(msg.ID, answer), fault.Crash
	}
}

// cancel cancels a request in flight.
func (c *mockClient) cancel(params json.RawMessage) {
	var p struct {
		ID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel, ok := c.inflight[string(p.ID)]; ok {
		cancel()
	}
}

// wait waits until the answer is due. It reports false if the request was
// cancelled.
func (f Fault) wait(ctx context.Context) bool {
	if f.Delay > 0 {
		timer := time.NewTimer(f.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return false
		}
	}
	if f.Hold != nil {
		select {
		case <-f.Hold:
		case <-ctx.Done():
			return false
		}
	}
	return ctx.Err() == nil
}

// spoil returns the answer with the fault applied.
func (f Fault) spoil(id json.RawMessage, answer []byte) []byte {
	switch {
	case f.Malformed:
		return []byte(`{"jsonrpc":"2.0","id":` + string(id) + `,"result":{"content":[`)
	case f.Error != nil:
		return jsonrpc.AppendError(nil, id, f.Error.Code, f.Error.Message)
	case f.HugeLine > 0:
		return jsonrpc.AppendResult(nil, id, json.RawMessage(`{"content":[{"type":"text","text":"`+strings.Repeat("x", f.HugeLine)+`"}]}`))
	}
	return answer
}

// answer returns the answer without any fault. The caller holds m.mu.
func (m *Mock) answer(msg jsonrpc.Message, name string, arguments json.RawMessage, cursor, version string) []byte {
	result := func(raw string) []byte { return jsonrpc.AppendResult(nil, msg.ID, json.RawMessage(raw)) }
	switch msg.Method {
	case "initialize":
		if version < "2024-11-05" || version > "2025-11-25" {
			version = "2025-11-25"
		}
		return result(`{"protocolVersion":` + strconv.Quote(version) + `,"capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":` +
			string(jsonrpc.AppendString(nil, m.name)) + `,"version":"1"}}`)
	case "ping":
		return result(`{}`)
	case "tools/list":
		return result(m.list(cursor))
	case "tools/call":
		i := m.index(name)
		if i < 0 {
			return jsonrpc.AppendError(nil, msg.ID, jsonrpc.CodeInvalidParams, "unknown tool "+strconv.Quote(name))
		}
		if r := m.tools[i].result; r != nil {
			return result(string(r))
		}
		if arguments == nil {
			arguments = json.RawMessage(`{}`)
		}
		return result(`{"content":[{"type":"text","text":` + string(jsonrpc.AppendString(nil, string(arguments))) + `}]}`)
	}
	return jsonrpc.AppendError(nil, msg.ID, jsonrpc.CodeMethodNotFound, "method not found: "+msg.Method)
}

// list returns one page of tools/list.
func (m *Mock) list(cursor string) string {
	from, _ := strconv.Atoi(cursor) //nolint:errcheck // a cursor of nobody's is the first page
	from = min(max(from, 0), len(m.tools))
	to := len(m.tools)
	if m.page > 0 {
		to = min(from+m.page, to)
	}
	var all []string
	for _, t := range m.tools[from:to] {
		all = append(all, string(t.definition))
	}
	page := `{"tools":[` + strings.Join(all, ",") + `]`
	if to < len(m.tools) {
		page += `,"nextCursor":"` + strconv.Itoa(to) + `"`
	}
	return page + `}`
}

// modernKey is the _meta member that marks a modern request.
const modernKey = `"io.modelcontextprotocol/protocolVersion"`

// answerModern converts an answer to the modern era. The caller holds m.mu.
func (m *Mock) answerModern(msg jsonrpc.Message, answer []byte) []byte {
	info := json.RawMessage(`{"io.modelcontextprotocol/serverInfo":{"name":` + string(jsonrpc.AppendString(nil, m.name)) + `,"version":"1"}}`)
	result := json.RawMessage(`{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)
	if msg.Method != "server/discover" {
		was, err := jsonrpc.Split(answer)
		if err != nil || was.Result == nil {
			return answer
		}
		result = was.Result
	}
	for _, add := range []struct{ name, value string }{{"resultType", `"complete"`}, {"ttlMs", "0"}, {"cacheScope", `"private"`}, {"_meta", string(info)}} {
		if add.name != "resultType" && add.name != "_meta" && msg.Method == "tools/call" {
			continue
		}
		with, err := jsonrpc.SetMember(result, add.name, json.RawMessage(add.value))
		if err != nil {
			return answer
		}
		result = with
	}
	return jsonrpc.AppendResult(nil, msg.ID, result)
}
