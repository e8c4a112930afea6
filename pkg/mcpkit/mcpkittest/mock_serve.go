package mcpkittest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// ErrCrashed is the error of Mock.Serve after a fault with Crash.
var ErrCrashed = errors.New("the mock crashed as requested")

// mockClient is one client of a Mock.
type mockClient struct {
	writeMu   sync.Mutex // held while writing
	writeLine func(line []byte) error

	mu       sync.Mutex
	inflight map[string]context.CancelFunc // functions that cancel unanswered requests, by id
}

// send writes a line. It ignores errors, which mean that the client has gone.
func (c *mockClient) send(line []byte) {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	c.writeLine(line) //nolint:errcheck // the reader notices that the client has gone
}

// Serve serves one client, one message a line, until in has ended and every
// request has been answered, or until ctx ends. It returns nil, ctx's error, or
// ErrCrashed. Use it as a host's in-process server.
func (m *Mock) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := newMockClient()
	c.writeLine = func(line []byte) error {
		_, err := out.Write(append(line, '\n'))
		return err
	}
	m.addClient(c)
	defer m.removeClient(c)
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
			answer := m.acceptMessage(ctx, c, msg)
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
				m.sendAnswer(c, line)
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

// sendAnswer writes an answer, after a line of noise if that is set. A nil line
// is no answer.
func (m *Mock) sendAnswer(c *mockClient, line []byte) {
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

// addClient makes a client get notifications.
func (m *Mock) addClient(c *mockClient) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clients[c] = true
}

// removeClient undoes addClient.
func (m *Mock) removeClient(c *mockClient) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.clients, c)
}

// acceptMessage records one message. For a request it returns a function that
// waits until the answer is due and returns it: a line, nil for none, or crash
// if the server must end. Call acceptMessage in the order of the messages; the
// returned functions may run concurrently.
func (m *Mock) acceptMessage(ctx context.Context, c *mockClient, msg jsonrpc.Message) (waitForAnswer func() (line []byte, crash bool)) {
	switch msg.Kind {
	case jsonrpc.Notification:
		if msg.Method == "notifications/cancelled" {
			c.cancelRequest(msg.Params)
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
	fault := m.takeFault(what)
	answer := m.answerFor(msg, p.Name, p.Arguments, p.Cursor, p.Version)
	if m.modern && bytes.Contains(p.Meta, []byte(modernMetaKey)) {
		answer = m.toModern(msg, answer)
	}
	return func() ([]byte, bool) {
		defer func() {
			c.mu.Lock()
			delete(c.inflight, id)
			c.mu.Unlock()
			cancel()
		}()
		if !fault.waitUntilDue(ctx) {
			m.mu.Lock()
			defer m.mu.Unlock()
			if call != nil {
				call.Cancelled = true
			}
			return nil, false
		}
		return fault.apply(msg.ID, answer), fault.Crash
	}
}

// cancelRequest cancels a request in flight, by the params of
// notifications/cancelled.
func (c *mockClient) cancelRequest(params json.RawMessage) {
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

// newMockClient returns a client whose messages are dropped until writeLine is
// set.
func newMockClient() *mockClient {
	return &mockClient{inflight: map[string]context.CancelFunc{}, writeLine: func([]byte) error { return nil }}
}
