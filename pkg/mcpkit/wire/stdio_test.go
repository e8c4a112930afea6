package wire_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
)

// Defect 1: mcp-go's StdioServer cancels running calls when its input ends
// and drops a last line without a newline.
func TestEndOfInputAnswersEverything(t *testing.T) {
	h := newServer()
	slow := make(chan struct{})
	tool(h, "slow", func(ctx context.Context, _ mcp.CallToolRequest) string {
		select {
		case <-slow:
			return "done"
		case <-ctx.Done():
			return "cancelled"
		}
	})
	var in strings.Builder
	for i := range 300 {
		name := "echo"
		if i%100 == 0 {
			name = "slow"
		}
		fmt.Fprintf(&in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{"text":"t%d"}}}`+"\n", i, name, i)
	}
	var out bytes.Buffer
	timer := time.AfterFunc(50*time.Millisecond, func() { close(slow) })
	defer timer.Stop()
	input := strings.NewReader(strings.TrimSuffix(in.String(), "\n"))
	require.NoError(t, wire.ServeStdio(t.Context(), h, input, &out, wire.ServeOptions{}))

	seen := map[string]string{}
	for line := range strings.Lines(out.String()) {
		m, err := jsonrpc.Split([]byte(line))
		require.NoError(t, err)
		seen[string(m.ID)] = text(t, m)
	}
	require.Len(t, seen, 300)
	require.Equal(t, "done", seen["0"])
	require.Equal(t, "done", seen["200"])
	require.Equal(t, "t299", seen["299"])
}

// Defect 1: a call is ended by its own deadline, not by the end of the input.
func TestEndOfInputKeepsDeadlines(t *testing.T) {
	h := newServer()
	tool(h, "patient", func(ctx context.Context, _ mcp.CallToolRequest) string {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
		defer cancel()
		<-ctx.Done()
		return ctx.Err().Error()
	})
	w := serve(t, h, wire.ServeOptions{})
	w.call(1, "patient", `{}`)
	rest, err := w.end()
	require.NoError(t, err)
	require.Len(t, rest, 1)
	require.Equal(t, context.DeadlineExceeded.Error(), text(t, rest[0]))
}

// Defect 1: an open subscription does not keep the server alive.
func TestEndOfInputDoesNotWaitForListen(t *testing.T) {
	h := newServer(server.WithToolCapabilities(true))
	w := serve(t, h, wire.ServeOptions{})
	w.send(`{"jsonrpc":"2.0","id":"sub","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},%s}}`, modern("new"))
	require.Equal(t, "notifications/subscriptions/acknowledged", w.next().Method)
	w.call(1, "echo", `{"text":"x"}`)
	rest, err := w.end()
	require.NoError(t, err)
	require.NotEmpty(t, rest)
	require.Equal(t, "1", string(rest[0].ID), "the call is answered before the stream is closed")
}

// Defect 2: notifications passed a channel of 100 slots and were sent after the
// answer, where clients drop them.
func TestNotificationsComeBeforeTheAnswer(t *testing.T) {
	const n = 500
	h := newServer(server.WithLogging())
	left := make(chan context.Context, 1)
	tool(h, "talk", func(ctx context.Context, _ mcp.CallToolRequest) string {
		for i := range n {
			err := server.ServerFromContext(ctx).SendNotificationToClient(ctx, "notifications/progress",
				map[string]any{"progressToken": 1, "progress": i})
			if err != nil {
				return err.Error()
			}
		}
		left <- ctx
		return "said"
	})
	w := serve(t, h, wire.ServeOptions{})
	w.handshake(`{}`)
	w.call(1, "talk", `{}`)
	for i := range n {
		m := w.next()
		require.Equal(t, jsonrpc.Notification, m.Kind, "after %d", i)
		require.Contains(t, string(m.Params), `"progress":`+strconv.Itoa(i)+`,`)
	}
	require.Equal(t, "said", text(t, w.answer(1)))

	ctx := <-left // a goroutine that continues after the answer
	require.Error(t, server.ServerFromContext(ctx).SendNotificationToClient(ctx, "notifications/late", nil))
	require.False(t, wire.Notify(ctx, "notifications/late", nil))
	wire.Progress(ctx, 1, 2, "late")
	rest, err := w.end()
	require.NoError(t, err)
	require.Empty(t, rest)
}

// Defect 3: with 5 workers and a queue of 100 slots, calls ran on the goroutine
// that reads, and pings and cancellations waited for them.
func TestOthersPassCalls(t *testing.T) {
	h := newServer()
	g := addGate(h)
	w := serve(t, h, wire.ServeOptions{})
	w.handshake(`{}`)
	const n = 500
	for i := range n {
		w.call(i, "gate", fmt.Sprintf(`{"n":"%d"}`, i))
	}
	running := g.waitRunning(t, wire.DefaultMaxConcurrent)
	require.Len(t, running, wire.DefaultMaxConcurrent)
	w.send(`{"jsonrpc":"2.0","id":"ping","method":"ping"}`)
	w.answer("ping")
	w.send(`{"jsonrpc":"2.0","id":"list","method":"tools/list"}`)
	require.Contains(t, string(w.answer("list").Result), `"echo"`)
	require.Empty(t, g.running, "no more than the bound run")
	close(g.release)
	w.answers(n)
}

// Defect 3: calls begin in order of arrival.
func TestCallsRunInOrder(t *testing.T) {
	h := newServer()
	g := addGate(h)
	w := serve(t, h, wire.ServeOptions{MaxConcurrent: 1})
	const n = 1500
	for i := range n {
		w.call(i, "gate", fmt.Sprintf(`{"n":"%d"}`, i))
	}
	close(g.release)
	for i, name := range g.waitRunning(t, n) {
		require.Equal(t, strconv.Itoa(i), name)
	}
	w.answers(n)
}

// Malformed lines are answered, and the server continues.
func TestMalformedLines(t *testing.T) {
	w := serve(t, newServer(), wire.ServeOptions{MaxLine: 10_000})
	for line, code := range map[string]int{
		`{"jsonrpc":"2.0","id":1,`: jsonrpc.CodeParse,
		`garbage`:                  jsonrpc.CodeParse,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}": jsonrpc.CodeParse,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`:         jsonrpc.CodeInvalidRequest,
		`[]`: jsonrpc.CodeInvalidRequest,
		`7`:  jsonrpc.CodeInvalidRequest,
		`{}`: jsonrpc.CodeInvalidRequest,
		`{"jsonrpc":"2.0","id":null,"method":"ping"}`:                                            jsonrpc.CodeInvalidRequest,
		`{"jsonrpc":"2.0","id":1,"method":"ping","Id":2}`:                                        jsonrpc.CodeInvalidRequest,
		strings.Repeat("x", 20_000):                                                              jsonrpc.CodeInvalidRequest,
		`{"jsonrpc":"2.0","id":1,"method":"no/such"}`:                                            jsonrpc.CodeMethodNotFound,
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}`:                                   jsonrpc.CodeInvalidParams,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"no such tool"}}`:        jsonrpc.CodeInvalidParams,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","Name":"x"}}`:     jsonrpc.CodeInvalidParams,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","name":"x"}}`:     jsonrpc.CodeInvalidParams,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","ARGUMENTS":{}}}`: jsonrpc.CodeInvalidParams,
	} {
		w.send("%s", strings.ReplaceAll(line, "%", "%%"))
		m := w.next()
		require.Equal(t, code, errorCode(t, m), line)
	}
	// Blank lines, unexpected answers and unknown notifications are not errors.
	w.send("\n  \n\r\n" + `{"jsonrpc":"2.0","id":5,"result":{}}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/unknown"}`)
	w.call(2, "echo", `{"text":"alive"}`)
	require.Equal(t, "alive", text(t, w.answer(2)))
}

// Long lines: 5 MB, 3 MB of arguments.
func TestLongLines(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	w := serve(t, newServer(), wire.ServeOptions{})
	big := strings.Repeat("0123456789", 300_000)
	w.call(1, "echo", `{"text":"`+big+`"}`)
	require.Equal(t, big, text(t, w.answer(1)))
	w.send("%s", `{"jsonrpc":"2.0","id":2,"method":"ping"`+strings.Repeat(" ", 5_000_000)+`}`)
	w.answer(2)
	w.send("%s", strings.Repeat("z", 5_000_000))
	require.Equal(t, jsonrpc.CodeParse, errorCode(t, w.next()))
}

// A client that writes everything before it reads anything does not deadlock:
// its answers, more than the writer holds, wait for it.
func TestClientReadsLate(t *testing.T) {
	inRead, inWrite, err := os.Pipe()
	require.NoError(t, err)
	outRead, outWrite, err := os.Pipe()
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		done <- wire.ServeStdio(context.Background(), newServer(), inRead, outWrite, wire.ServeOptions{MaxConcurrent: 4})
		outWrite.Close()
	}()
	n := 40
	big := strings.Repeat("0123456789", 50_000)
	if mcpkittest.RaceEnabled {
		n = 20 // 10 MB, which is more than maxWriteBacklog
	}
	for i := range n {
		_, err := fmt.Fprintf(inWrite, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"text":"%s"}}}`+"\n", i, big)
		require.NoError(t, err)
	}
	inWrite.Close()
	lines := jsonrpc.NewReader(outRead, 0)
	for range n {
		line, err := lines.ReadLine()
		require.NoError(t, err)
		m, err := jsonrpc.Split(line)
		require.NoError(t, err)
		require.Len(t, text(t, m), len(big))
	}
	require.NoError(t, <-done)
	inRead.Close()
	outRead.Close()
}

// A panic of a handler ends its call, not the server; its text and stack appear
// only in the log.
func TestPanicsAreAnswered(t *testing.T) {
	h := newServer()
	tool(h, "panic", func(context.Context, mcp.CallToolRequest) string { panic("secret state") })
	h.AddNotificationHandler("notifications/panic", func(context.Context, mcp.JSONRPCNotification) { panic("again") })
	w := serve(t, h, wire.ServeOptions{})
	w.call(1, "panic", `{}`)
	m := w.answer(1)
	require.Equal(t, jsonrpc.CodeInternal, errorCode(t, m))
	require.NotContains(t, string(m.Error), "secret")
	require.NotContains(t, string(m.Error), "goroutine")
	w.send(`{"jsonrpc":"2.0","method":"notifications/panic"}`)
	w.call(2, "echo", `{"text":"alive"}`)
	w.answer(2)
}

// When told to stop, the server cancels running calls with a cause that says
// so.
func TestStop(t *testing.T) {
	h := newServer()
	g := addGate(h)
	w := serve(t, h, wire.ServeOptions{})
	w.call(1, "gate", `{"n":"1"}`)
	g.waitRunning(t, 1)
	w.cancel(fmt.Errorf("%w: test", wire.ErrStopped))
	_, err := w.wait()
	require.ErrorIs(t, err, wire.ErrStopped)
}

// A tool that ignores its context delays the end only by the grace period.
func TestStopDoesNotWaitForTheDeaf(t *testing.T) {
	h := newServer()
	began, release := make(chan struct{}), make(chan struct{})
	tool(h, "deaf", func(context.Context, mcp.CallToolRequest) string { close(began); <-release; return "" })
	defer close(release)
	w := serve(t, h, wire.ServeOptions{Grace: time.Millisecond})
	w.call(1, "deaf", `{}`)
	<-began
	w.cancel(wire.ErrStopped)
	_, err := w.wait()
	require.ErrorIs(t, err, wire.ErrStopped)
}

type brokenWriter struct{ writes atomic.Int32 }

func (b *brokenWriter) Write([]byte) (int, error) {
	b.writes.Add(1)
	return 0, errors.New("broken pipe")
}

// A client that is gone ends the server and its running calls.
func TestOutputFails(t *testing.T) {
	h := newServer()
	g := addGate(h)
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"gate"}}` + "\n" +
		`{"jsonrpc":"2.0","id":2,"method":"ping"}` + "\n")
	out := &brokenWriter{}
	err := wire.ServeStdio(t.Context(), h, in, out, wire.ServeOptions{})
	require.ErrorContains(t, err, "broken pipe")
	g.waitRunning(t, 1)
	require.EqualValues(t, 1, out.writes.Load())
}

// A server that must stop waits for its listen streams and for pending messages
// to them and to the client.
func TestStopLeavesNoGoroutine(t *testing.T) {
	h := newServer(server.WithToolCapabilities(true))
	w := serve(t, h, wire.ServeOptions{})
	w.handshake(`{}`)
	w.send(`{"jsonrpc":"2.0","id":"sub","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},%s}}`, modern("new"))
	require.Equal(t, "notifications/subscriptions/acknowledged", w.next().Method)
	h.SendNotificationToAllClients("notifications/tools/list_changed", nil)
	require.Equal(t, "notifications/tools/list_changed", w.next().Method)
	w.cancel(wire.ErrStopped)
	_, err := w.wait()
	require.ErrorIs(t, err, wire.ErrStopped)
	w.end() //nolint:errcheck // the goroutine that reads ends with the input
}
