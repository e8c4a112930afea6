package core_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/policy"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/middleware"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// goTools makes a tool that answers with what f does.
func goTools(t *testing.T, name string, f func(ctx context.Context) (*mcpkit.Result, error)) *mcpkit.Tool {
	t.Helper()
	tool, err := mcpkit.NewTool(mcpkit.Def{Name: name, Description: name}, func(ctx context.Context, _ map[string]any) (*mcpkit.Result, error) {
		return f(ctx)
	})
	require.NoError(t, err)
	return tool
}

func says(text string) func(context.Context) (*mcpkit.Result, error) {
	return func(context.Context) (*mcpkit.Result, error) { return &mcpkit.Result{Text: text}, nil }
}

func TestRegisteredToolsComeAndGo(t *testing.T) {
	a := open(t, config.Config{}, dialect.Server{})
	require.NoError(t, a.Register(goTools(t, "one", says("1"))))
	answer, err := a.Call(t.Context(), "one", nil)
	require.NoError(t, err)
	require.Equal(t, "1", answer.Text)
	require.Equal(t, "configured", a.Servers()[0].Status().State, "other servers are not started for it")

	require.NoError(t, a.Register(goTools(t, "two", says("2")), goTools(t, "three", says("3"))))
	answer, err = a.Call(t.Context(), "three", nil)
	require.NoError(t, err)
	require.Equal(t, "3", answer.Text)

	for _, name := range []string{"two", "new"} {
		require.ErrorContains(t, a.Register(goTools(t, "new", says("4")), goTools(t, name, says("5"))), fmt.Sprintf("tool %q already exists", name))
	}
	_, ok := a.Get(t.Context(), "new")
	require.False(t, ok, "all or none")
	require.ErrorContains(t, a.Register(nil), "a tool is nil")

	require.True(t, a.Unregister("two"))
	require.False(t, a.Unregister("two"))
	_, err = a.Call(t.Context(), "two", nil)
	require.Equal(t, toolerr.ToolNotFound, toolerr.CodeOf(err))
	require.NoError(t, a.Register(goTools(t, "two", says("again"))))
	answer, err = a.Call(t.Context(), "two", nil)
	require.NoError(t, err)
	require.Equal(t, "again", answer.Text)

	var names []string
	for _, tool := range a.List(t.Context()) {
		if tool.Server == core.GoToolServer {
			names = append(names, tool.Name)
		}
	}
	require.Equal(t, []string{"one", "three", "two"}, names)
}

func TestRegisteredToolsMeetEveryStage(t *testing.T) {
	a, err := core.Open(config.Config{State: t.TempDir(), Stages: config.Stages{Policy: policy.Config{Block: []string{"no"}}}})
	require.NoError(t, err)
	defer a.Close()
	ran := false
	require.NoError(t, a.Register(
		goTools(t, "no", func(context.Context) (*mcpkit.Result, error) { ran = true; return &mcpkit.Result{}, nil }),
		goTools(t, "fail", func(context.Context) (*mcpkit.Result, error) {
			return nil, toolerr.New(toolerr.NotFound, "nowhere to be seen")
		}),
		goTools(t, "boom", func(context.Context) (*mcpkit.Result, error) { panic("boom") }),
	))
	_, err = a.Call(t.Context(), "no", nil)
	require.Equal(t, toolerr.PolicyDenied, toolerr.CodeOf(err))
	require.False(t, ran)

	answer, err := a.Call(t.Context(), "fail", nil)
	var failed *core.FailedError
	require.True(t, errors.As(err, &failed))
	require.Equal(t, toolerr.NotFound, toolerr.CodeOf(err))
	require.Equal(t, "nowhere to be seen", answer.Text)
	_, err = a.Call(t.Context(), "boom", nil)
	require.Equal(t, toolerr.Internal, toolerr.CodeOf(err))
	_, err = a.Call(t.Context(), "fail", func() {})
	require.ErrorIs(t, err, toolerr.ErrInvalidArguments)

	errs := map[string]int64{}
	for _, row := range a.Stats() {
		errs[row.Tool] = int64(row.Errors)
	}
	require.Equal(t, map[string]int64{"no": 1, "fail": 1, "boom": 1}, errs)
}

func TestRegisteredToolsReportProgressAndAreCancelled(t *testing.T) {
	a, err := core.Open(config.Config{})
	require.NoError(t, err)
	defer a.Close()
	begun, ended := make(chan struct{}), make(chan error, 1)
	require.NoError(t, a.Register(goTools(t, "wait", func(ctx context.Context) (*mcpkit.Result, error) {
		mcpkit.Progress(ctx, 1, 2, "half")
		close(begun)
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil, ctx.Err()
	})))
	tool, ok := a.Get(t.Context(), "wait")
	require.True(t, ok)
	ctx, cancel := context.WithCancel(t.Context())
	progress := make(chan string, 8)
	over := make(chan error, 1)
	go func() {
		_, err := a.Handler(ctx, &call.Request{
			Tool: tool, Params: json.RawMessage(`{"name":"wait","_meta":{"progressToken":7}}`),
			OnNotify: func(method string, params json.RawMessage) { progress <- method + string(params) },
		})
		over <- err
	}()
	<-begun
	require.Contains(t, <-progress, `"half"`)
	cancel()
	require.ErrorIs(t, <-ended, wire.ErrCancelled)
	require.ErrorIs(t, <-over, context.Canceled)
}

func TestNamesOfRegisteredToolsAreTheirs(t *testing.T) {
	a, err := core.Open(config.Config{Servers: []config.Server{server(t, "echo", true)}})
	require.NoError(t, err)
	defer a.Close()
	require.ErrorContains(t, a.Register(goTools(t, "echo", says(""))), `a bundled tool is named "echo"`)

	prefix := ""
	bare := server(t, "bare", false)
	bare.Spec = dialect.Server{Name: "bare", Prefix: &prefix}
	c, err := core.Open(config.Config{Servers: []config.Server{bare}})
	require.NoError(t, err)
	defer c.Close()
	require.Len(t, c.List(t.Context()), 24)
	require.ErrorContains(t, c.Register(goTools(t, "fine", says("")), goTools(t, "echo", says(""))), `a tool of server bare is named "echo"`)
	_, ok := c.Get(t.Context(), "fine")
	require.False(t, ok, "all or none")
	require.NoError(t, c.Register(goTools(t, "fine", says(""))))

	b, err := core.Open(config.Config{Servers: []config.Server{server(t, core.GoToolServer, false)}})
	require.NoError(t, err)
	defer b.Close()
	require.ErrorContains(t, b.Register(goTools(t, "x", says(""))), "server custom of the configuration has the name of the server of registered tools")
}

// A server's tools as Go values: changed, wrapped, and served again.
func TestAServersToolsAreImported(t *testing.T) {
	a := open(t, config.Config{}, dialect.Server{})
	calls := 0
	tools, err := mcpkit.Import(t.Context(), a.Session("s"), func(d *mcpkit.ToolOverride) bool {
		keep := d.Name == "s__echo" || d.Name == "s__fail"
		d.Name = "my_" + d.Name[len("s__"):]
		d.Description = "mine"
		return keep
	})
	require.NoError(t, err)
	require.Len(t, tools, 2)
	for i := range tools {
		tools[i] = tools[i].With(middleware.Metrics(func(context.Context, middleware.Observation) { calls++ }))
	}
	require.NoError(t, a.Register(tools...))
	answer, err := a.Call(t.Context(), "my_echo", map[string]int{"a": 1})
	require.NoError(t, err)
	require.Equal(t, `{"content":[{"type":"text","text":"{\"a\":1}"}]}`, string(answer.Raw))
	_, err = a.Call(t.Context(), "my_fail", nil)
	require.ErrorAs(t, err, new(*core.FailedError))
	require.Equal(t, 2, calls)
	tool, ok := a.Get(t.Context(), "my_echo")
	require.True(t, ok)
	require.Contains(t, string(tool.Definition), `"description":"mine"`)

	_, err = mcpkit.Import(t.Context(), a.Session("nobody"), nil)
	require.Equal(t, toolerr.NotFound, toolerr.CodeOf(err))
	_, err = a.Session("s").CallTool(t.Context(), "my_echo", nil)
	require.Equal(t, toolerr.ToolNotFound, toolerr.CodeOf(err))
	all, err := a.Session("").ListTools(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 26)

	b, err := core.Open(config.Config{Servers: []config.Server{server(t, "broken", false, "-start", "crash")}})
	require.NoError(t, err)
	defer b.Close()
	for _, name := range []string{"", "broken"} {
		_, err = b.Session(name).ListTools(t.Context())
		require.ErrorContains(t, err, "broken")
	}
}

// Clients see them as any other tool, and are told of those that come.
func TestRegisteredToolsAreServedAtTheDoors(t *testing.T) {
	a, err := core.Open(config.Config{})
	require.NoError(t, err)
	defer a.Close()
	require.NoError(t, a.Register(goTools(t, "one", says("1"))))
	in, said := io.Pipe()
	heard, out := io.Pipe()
	over := make(chan error, 1)
	go func() { over <- a.Gateway.ServeStdio(t.Context(), in, out, t.Logf) }()
	lines := bufio.NewScanner(heard)
	ask := func(line, want string) {
		t.Helper()
		_, err := io.WriteString(said, line+"\n")
		require.NoError(t, err)
		for want != "" && lines.Scan() {
			if strings.Contains(lines.Text(), want) {
				return
			}
		}
		require.NoError(t, lines.Err())
	}
	ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`, `"id":1`)
	ask(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, "")
	ask(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, `"name":"one"`)
	ask(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"one"}}`, `"text":"1"`)
	go a.Register(goTools(t, "two", says("2"))) //nolint:errcheck // the client sees it
	ask(`{"jsonrpc":"2.0","id":4,"method":"ping"}`, "notifications/tools/list_changed")
	ask(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"two"}}`, `"text":"2"`)
	go io.Copy(io.Discard, heard) //nolint:errcheck // what else there is
	require.NoError(t, said.Close())
	require.NoError(t, <-over)
	require.NoError(t, heard.Close())
}
