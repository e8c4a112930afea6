package core_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog/toolsearch"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/control"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/lookup"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/audit"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/policy"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// aModel is a configuration with a model, without which no agent is served.
func aModel() lookup.Config {
	return lookup.Config{Providers: []lookup.Provider{{Name: "command", Kind: lookup.Command}}}
}

// agent is a server with one tool, dispatch_agent: it enters the host's
// private socket with what the call brings, says there the lines of its
// argument, and answers with all it heard, a line each, after where it was.
func agent() config.Server { return dispatching(errand) }

// dispatching is a server with one tool, dispatch_agent, that answers with what do says
// of the params of a call.
func dispatching(do func(params json.RawMessage) string) config.Server {
	serve := func(_ context.Context, in io.Reader, out io.Writer) error {
		lines := bufio.NewReader(in)
		var mu sync.Mutex
		var calls sync.WaitGroup
		defer calls.Wait()
		write := func(id, result json.RawMessage) {
			mu.Lock()
			defer mu.Unlock()
			out.Write(append(jsonrpc.AppendResult(nil, id, result), '\n')) //nolint:errcheck // the host is gone
		}
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return nil
			}
			m, err := jsonrpc.Split(line)
			if err != nil || m.Kind != jsonrpc.Request {
				continue
			}
			result := json.RawMessage(`{}`)
			switch m.Method {
			case "initialize":
				result = json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"agent","version":"1"}}`)
			case "tools/list":
				result = json.RawMessage(`{"tools":[{"name":"dispatch_agent","inputSchema":{"type":"object"}}]}`)
			case "tools/call":
				calls.Go(func() {
					text := do(m.Params)
					write(m.ID, append(jsonrpc.AppendString([]byte(`{"content":[{"type":"text","text":`), text), `}]}`...))
				})
				continue
			}
			write(m.ID, result)
		}
	}
	return config.Server{Bundled: true, Config: upstream.Config{Name: "dispatch_agent", Serve: serve, Era: upstream.Legacy}}
}

// errand is one call of the agent's.
func errand(params json.RawMessage) string {
	var p struct {
		Arguments struct {
			Say []json.RawMessage `json:"say"`
		} `json:"arguments"`
		Meta struct {
			Host struct{ Socket, Token string } `json:"io.github.toolroom-mcp/host"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return err.Error()
	}
	dir, err := os.Open(filepath.Dir(p.Meta.Host.Socket))
	if err != nil {
		return err.Error()
	}
	defer dir.Close()
	path := p.Meta.Host.Socket
	if len(path) > 100 && runtime.GOOS == "linux" { // longer than connect takes
		path = fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path))
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(30 * time.Second)) //nolint:errcheck // the test hangs otherwise, and says where
	heard := []string{p.Meta.Host.Socket, p.Meta.Host.Token}
	answers := bufio.NewReader(conn)
	enter := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":0,"method":"toolroom/enter","params":{"token":%q}}`, p.Meta.Host.Token)
	for _, line := range append([]json.RawMessage{enter}, p.Arguments.Say...) {
		if _, err := conn.Write(append(line, '\n')); err != nil {
			return err.Error()
		}
		answer, err := answers.ReadString('\n')
		if err != nil {
			return err.Error()
		}
		heard = append(heard, strings.TrimSpace(answer))
	}
	return strings.Join(heard, "\n")
}

// An agent that a call started calls in the name of who made that call, one
// level deeper: under the same policy, counted for the same caller, with the
// same part of the catalogue, and written down.
func TestAnAgentCallsForItsCaller(t *testing.T) {
	state := t.TempDir()
	a, err := core.Open(config.Config{
		State:    state,
		Models:   aModel(),
		Servers:  []config.Server{agent(), server(t, "s", false, "-era", "legacy")},
		Profiles: []catalog.Profile{{Name: "few", Allow: []string{"s__echo", "s__fail", "dispatch_agent"}}},
		Stages: config.Stages{Policy: policy.Config{
			Rules: []policy.Rule{{Tool: "s__fail", Caller: "http/her", Do: policy.Deny, Why: "not for her"}},
		}},
	})
	require.NoError(t, err)
	defer a.Close()
	require.NoError(t, a.Listen("test"))

	tool, ok := a.Catalog.Lookup(t.Context(), "dispatch_agent")
	require.True(t, ok)
	say := func(caller call.Caller) []string {
		res, err := a.Handler(t.Context(), &call.Request{Tool: tool, Caller: caller, Params: json.RawMessage(`{"name":"dispatch_agent","arguments":{"say":[
			{"jsonrpc":"2.0","id":1,"method":"tools/list"},
			{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"s__echo","arguments":{"a":1.0}}},
			{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"s__fail"}},
			{"jsonrpc":"2.0","id":4,"method":"toolroom/servers"}
		]}}`)})
		require.NoError(t, err)
		var r struct{ Content []struct{ Text string } }
		require.NoError(t, json.Unmarshal(res.Raw, &r))
		return strings.Split(r.Content[0].Text, "\n")
	}
	heard := say(call.Caller{EntryPoint: "http", ID: "her", Profile: "few"})
	require.Len(t, heard, 7, heard)
	require.Equal(t, `{"jsonrpc":"2.0","id":0,"result":{}}`, heard[2])
	require.Equal(t, 3, strings.Count(heard[3], `"inputSchema"`), heard[3])
	require.Equal(t, `{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"{\"a\":1.0}"}]}}`, heard[4])
	require.Contains(t, heard[5], "not for her")
	require.Contains(t, heard[6], `"code":-32601`, "who has entered controls nothing")
	other := say(call.Caller{EntryPoint: "http", ID: "him"})
	require.Contains(t, other[5], "it failed")
	require.Greater(t, strings.Count(other[3], `"inputSchema"`), 20)
	require.NotEqual(t, heard[1], other[1], "each call has a token of its own")

	hosts, err := control.Find(t.Context(), state)
	require.NoError(t, err)
	require.Equal(t, []control.Host{{Socket: heard[0], PID: os.Getpid()}}, hosts)
	err = hosts[0].Ask(t.Context(), control.Enter, map[string]string{"token": heard[1]}, nil)
	require.Equal(t, toolerr.AuthFailed, toolerr.CodeOf(err), "it was good for the call")

	a.Close()
	var events []string
	_, err = audit.Read(core.AuditDir(state), time.Time{}, func(e audit.Event) {
		if e.Event == "tool.call.started" {
			events = append(events, fmt.Sprintf("%s %s %d", e.Tool, e.Caller, e.Depth))
		}
	})
	require.NoError(t, err)
	her, him := audit.Caller("http", "her"), audit.Caller("http", "him")
	require.Equal(t, []string{
		"dispatch_agent " + her + " 0", "s__echo " + her + " 1", "s__fail " + her + " 1",
		"dispatch_agent " + him + " 0", "s__echo " + him + " 1", "s__fail " + him + " 1",
	}, events)
}

// Where a list would be too long for clients, an agent still has its tools: those that
// stand in for the others are none of them.
func TestAnAgentIsOfferedTheToolsThemselves(t *testing.T) {
	a, err := core.Open(config.Config{
		State: t.TempDir(), Offer: toolsearch.Config{MaxTools: 3},
		Models:  aModel(),
		Servers: []config.Server{agent(), server(t, "s", false, "-era", "legacy")},
	})
	require.NoError(t, err)
	defer a.Close()
	require.NoError(t, a.Listen("test"))
	tool, ok := a.Catalog.Lookup(t.Context(), "dispatch_agent")
	require.True(t, ok)
	res, err := a.Handler(t.Context(), &call.Request{Tool: tool, Caller: call.Caller{
		EntryPoint: "stdio", ID: "stdio", Tools: func(name string) bool { return name == "s__echo" || name == "call_tool" },
	}, Params: json.RawMessage(`{"name":"dispatch_agent","arguments":{"say":[
		{"jsonrpc":"2.0","id":1,"method":"tools/list"},
		{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"call_tool","arguments":{"name":"s__fail"}}}
	]}}`)})
	require.NoError(t, err)
	require.Contains(t, string(res.Raw), `s__echo`)
	require.NotContains(t, string(res.Raw), `search_tools`)
	require.Contains(t, string(res.Raw), `unknown tool`)
}

// Where the socket cannot be had no agent is begun: it would work beside the host, and
// what holds for its caller would not hold for it.
func TestNoAgentWithoutTheSocket(t *testing.T) {
	state := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(state, "hosts"), nil, 0o600))
	begun := false
	a, err := core.Open(config.Config{State: state, Models: aModel(), Servers: []config.Server{dispatching(func(json.RawMessage) string {
		begun = true
		return ""
	})}})
	require.NoError(t, err)
	defer a.Close()
	require.Error(t, a.Listen("test"))
	tool, ok := a.Catalog.Lookup(t.Context(), "dispatch_agent")
	require.True(t, ok)
	_, err = a.Handler(t.Context(), &call.Request{Tool: tool, Params: json.RawMessage(`{"name":"dispatch_agent"}`), Caller: call.Caller{EntryPoint: "stdio", ID: "stdio"}})
	require.ErrorContains(t, err, "agents cannot reach this host's tools")
	require.False(t, begun)
}

// Agents of agents go only so deep.
func TestDepthIsBounded(t *testing.T) {
	a, err := core.Open(config.Config{State: t.TempDir(), Models: aModel(), Servers: []config.Server{agent()}})
	require.NoError(t, err)
	defer a.Close()
	require.NoError(t, a.Listen("test"))
	tool, ok := a.Catalog.Lookup(t.Context(), "dispatch_agent")
	require.True(t, ok)
	params := `{"name":"dispatch_agent"}`
	for range 3 {
		params = `{"name":"dispatch_agent","arguments":{"say":[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + params + `}]}}`
	}
	res, err := a.Handler(t.Context(), &call.Request{Tool: tool, Params: json.RawMessage(params), Caller: call.Caller{EntryPoint: "stdio", ID: "stdio"}})
	require.NoError(t, err)
	require.Contains(t, string(res.Raw), "LIMIT_REACHED")
	require.Contains(t, string(res.Raw), "is nested in 2 calls, the maximum is 1")
}

func TestWhatARunningHostSays(t *testing.T) {
	state := t.TempDir()
	a := open(t, config.Config{Version: "1", State: state, Files: []string{"/c.yaml"}}, dialect.Server{})
	require.NoError(t, a.Listen("http://here/mcp"))
	_, err := callTool(t.Context(), a, "s__echo", `{}`)
	require.NoError(t, err)
	hosts, err := control.Find(t.Context(), state)
	require.NoError(t, err)
	require.Len(t, hosts, 1)
	ask := func(method string, params, result any) error {
		return hosts[0].Ask(t.Context(), method, params, result)
	}

	var running core.RunningHost
	require.NoError(t, ask(core.MethodHost, nil, &running))
	require.WithinDuration(t, time.Now(), running.Since, time.Hour)
	running.Since = time.Time{}
	require.Equal(t, core.RunningHost{PID: os.Getpid(), Version: "1", EntryPoint: "http://here/mcp", Files: []string{"/c.yaml"}}, running)

	var servers []upstream.Status
	require.NoError(t, ask(core.MethodServers, nil, &servers))
	require.Len(t, servers, 1)
	require.Equal(t, upstream.Ready, servers[0].State)
	require.Positive(t, servers[0].Latency)
	before := servers[0].PID
	var again upstream.Status
	require.NoError(t, ask(core.MethodReconnect, map[string]string{"server": "s"}, &again))
	require.NotEqual(t, before, again.PID)
	require.Equal(t, 1, again.Restarts)
	err = ask(core.MethodReconnect, map[string]string{"server": "t"}, &again)
	require.Equal(t, toolerr.NotFound, toolerr.CodeOf(err))
	err = ask(core.MethodReconnect, map[string]int{"server": 1}, &again)
	require.Equal(t, toolerr.InvalidParams, toolerr.CodeOf(err))

	var counts core.HostStatus
	require.NoError(t, ask(core.MethodStats, nil, &counts))
	require.Equal(t, os.Getpid(), counts.PID)
	require.EqualValues(t, 1, counts.Tools[0].Calls)
	require.Equal(t, "s", counts.Loads[0].Server)
	require.Positive(t, counts.Process.Goroutines)
}

// Who can be read as saying what only the host says is not heard at all.
func TestAClientSaysNothingInTheHostsPlace(t *testing.T) {
	a, err := core.Open(config.Config{State: t.TempDir(), Models: aModel(), Servers: []config.Server{agent()}})
	require.NoError(t, err)
	defer a.Close()
	require.NoError(t, a.Listen("test"))
	tool, ok := a.Catalog.Lookup(t.Context(), "dispatch_agent")
	require.True(t, ok)
	_, err = a.Handler(t.Context(), &call.Request{Tool: tool, Params: json.RawMessage(`{"name":"dispatch_agent","arguments":{},"_meta":{"a":1,"a":2,"io.github.toolroom-mcp/host":{"socket":"/mine"}}}`)})
	require.Equal(t, toolerr.InvalidParams, toolerr.CodeOf(err))
}
