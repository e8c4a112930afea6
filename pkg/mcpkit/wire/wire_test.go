package wire_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
)

// maxTestWait bounds a test's wait for an expected message.
const maxTestWait = time.Minute

// testClient is the client's end of a server that runs in the test.
type testClient struct {
	t      *testing.T
	in     *io.PipeWriter
	lines  chan jsonrpc.Message
	done   chan error // what ServeStdio returned
	cancel context.CancelCauseFunc

	mu  sync.Mutex
	log []string // every line the server wrote
}

// serve starts a server and returns the client's end.
func serve(t *testing.T, h *server.MCPServer, opts wire.ServeOptions) *testClient {
	t.Helper()
	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe()
	ctx, cancel := context.WithCancelCause(context.Background())
	w := &testClient{t: t, in: inWrite, lines: make(chan jsonrpc.Message, 10000), done: make(chan error, 1), cancel: cancel}
	opts.Logf = t.Logf
	served := make(chan struct{})
	go func() {
		defer close(served)
		w.done <- wire.ServeStdio(ctx, h, inRead, outWrite, opts)
		outWrite.Close()
	}()
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(w.lines)
		lines := jsonrpc.NewReader(outRead, 0)
		for {
			line, err := lines.ReadLine()
			if err != nil {
				return
			}
			w.mu.Lock()
			w.log = append(w.log, string(line))
			w.mu.Unlock()
			m, err := jsonrpc.Split(line)
			if err != nil {
				t.Errorf("the server wrote %q: %v", line, err)
				return
			}
			w.lines <- m
		}
	}()
	t.Cleanup(func() {
		cancel(wire.ErrStopped)
		inWrite.Close()
		outRead.Close()
		<-served
		<-read
	})
	return w
}

// send writes one line.
func (w *testClient) send(format string, args ...any) {
	w.t.Helper()
	_, err := fmt.Fprintf(w.in, format+"\n", args...)
	require.NoError(w.t, err)
}

// call sends tools/call.
func (w *testClient) call(id any, tool, args string) {
	w.t.Helper()
	w.send(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, toJSON(id), tool, args)
}

// next returns the next message of any kind.
func (w *testClient) next() jsonrpc.Message {
	w.t.Helper()
	select {
	case m, ok := <-w.lines:
		require.True(w.t, ok, "the server ended")
		return m
	case <-time.After(maxTestWait):
		require.FailNow(w.t, "the server says nothing")
		panic("unreachable")
	}
}

// answer returns the next message, which must be the answer to id.
func (w *testClient) answer(id any) jsonrpc.Message {
	w.t.Helper()
	m := w.next()
	require.Equal(w.t, jsonrpc.Response, m.Kind, "%s %s", m.Method, m.Params)
	require.Equal(w.t, toJSON(id), string(m.ID), "%s", m.Error)
	return m
}

// answers collects n answers in any order (defect 10: that is allowed, and
// an answer may come before initialize's, so clients match by id).
func (w *testClient) answers(n int) map[string]jsonrpc.Message {
	w.t.Helper()
	got := make(map[string]jsonrpc.Message, n)
	for range n {
		m := w.next()
		require.Equal(w.t, jsonrpc.Response, m.Kind, "%s", m.Method)
		require.NotContains(w.t, got, string(m.ID))
		got[string(m.ID)] = m
	}
	return got
}

// end closes the input, waits for the server, and returns the remaining
// messages.
func (w *testClient) end() (rest []jsonrpc.Message, err error) {
	w.t.Helper()
	w.in.Close()
	return w.wait()
}

func (w *testClient) wait() (rest []jsonrpc.Message, err error) {
	w.t.Helper()
	select {
	case err = <-w.done:
		w.done <- err
	case <-time.After(maxTestWait):
		require.FailNow(w.t, "the server does not end")
	}
	for m := range w.lines {
		rest = append(rest, m)
	}
	return rest, err
}

// handshake sends the opening messages of a legacy client.
func (w *testClient) handshake(capabilities string) {
	w.t.Helper()
	w.send(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":%s,"clientInfo":{"name":"old","version":"1"}}}`, capabilities)
	w.answer("init")
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// modern returns the _meta of a modern request.
func modern(client string) string {
	return `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"` + client + `","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{}}`
}

func toJSON(v any) string {
	if raw, ok := v.(json.RawMessage); ok {
		return string(raw)
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// text returns the text of a tool's answer.
func text(t *testing.T, m jsonrpc.Message) string {
	t.Helper()
	require.Nil(t, m.Error, "%s", m.Error)
	var res struct{ Content []struct{ Text string } }
	require.NoError(t, json.Unmarshal(m.Result, &res))
	var b strings.Builder
	for _, c := range res.Content {
		b.WriteString(c.Text)
	}
	return b.String()
}

// errorCode returns the code of an error answer.
func errorCode(t *testing.T, m jsonrpc.Message) int {
	t.Helper()
	require.NotNil(t, m.Error, "%s", m.Result)
	var e struct{ Code int }
	require.NoError(t, json.Unmarshal(m.Error, &e))
	return e.Code
}

// tool adds a tool to a plain mcp-go server.
func tool(h *server.MCPServer, name string, fn func(ctx context.Context, req mcp.CallToolRequest) string) {
	h.AddTool(mcp.NewTool(name), func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(fn(ctx, req)), nil
	})
}

// newServer returns a plain mcp-go server with a tool echo.
func newServer(opts ...server.ServerOption) *server.MCPServer {
	h := server.NewMCPServer("test", "1", append([]server.ServerOption{server.WithToolCapabilities(false)}, opts...)...)
	tool(h, "echo", func(_ context.Context, req mcp.CallToolRequest) string { return req.GetString("text", "") })
	return h
}

// A gate is a tool that reports when it runs and waits to be released.
type gate struct {
	running chan string // the argument "n" of each call that runs
	release chan struct{}
}

func addGate(h *server.MCPServer) *gate {
	g := &gate{running: make(chan string, 10000), release: make(chan struct{})}
	tool(h, "gate", func(ctx context.Context, req mcp.CallToolRequest) string {
		g.running <- req.GetString("n", "")
		select {
		case <-g.release:
			return "released"
		case <-ctx.Done():
			return "ended: " + context.Cause(ctx).Error()
		}
	})
	return g
}

// waitRunning waits for n calls to run and returns them in order.
func (g *gate) waitRunning(t *testing.T, n int) []string {
	t.Helper()
	var names []string
	for range n {
		select {
		case name := <-g.running:
			names = append(names, name)
		case <-time.After(maxTestWait):
			require.FailNow(t, "calls do not run", "%d of %d do", len(names), n)
		}
	}
	return names
}
