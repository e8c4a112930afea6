package core_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog/toolsearch"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/alias"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/manifest"
	"github.com/toolroom-mcp/toolroom/host/internal/gateway"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/policy"
	"github.com/toolroom-mcp/toolroom/host/internal/store/backend"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A door makes a call and returns the code of its refusal; "": it was made.
type door func(t *testing.T, tool, arguments string) toolerr.Code

func message(tool, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, arguments)
}

func modernMessage(tool, arguments string) string {
	return strings.TrimSuffix(message(tool, arguments), "}}") +
		`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
}

// codeIn is the code of a refusal in an answer of MCP.
func codeIn(t *testing.T, answer string) toolerr.Code {
	t.Helper()
	var m struct {
		Result struct {
			IsError bool
			Meta    struct {
				Code toolerr.Code `json:"toolroom/code"`
			} `json:"_meta"`
		}
		Error json.RawMessage
	}
	require.NoError(t, json.Unmarshal([]byte(answer), &m), answer)
	require.Empty(t, m.Error, answer)
	require.Equal(t, m.Result.IsError, m.Result.Meta.Code != "", answer)
	return m.Result.Meta.Code
}

// doors are all ways to call a tool of a host.
func doors(t *testing.T, a *core.App) map[string]door {
	stdioIn, say := io.Pipe()
	hear, stdioOut := io.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		a.Gateway.ServeStdio(t.Context(), stdioIn, stdioOut, t.Logf) //nolint:errcheck // its input ends
	}()
	t.Cleanup(func() {
		say.Close() //nolint:errcheck // a pipe
		<-served
	})
	lines := bufio.NewReader(hear)
	stdio := func(t *testing.T, line string) string {
		fmt.Fprintln(say, line) //nolint:errcheck // the answer tells
		answer, err := lines.ReadString('\n')
		require.NoError(t, err)
		return answer
	}
	web := httptest.NewUnstartedServer(nil)
	web.Config.Handler = a.Gateway.HTTP(gateway.HTTPConfig{Hosts: []string{web.Listener.Addr().String()}})
	web.Start()
	t.Cleanup(web.Close)
	post := func(t *testing.T, path, body string, headers ...string) string {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL+path, strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return string(answer)
	}
	handler := func(c call.Caller) door {
		return func(t *testing.T, tool, arguments string) toolerr.Code {
			found, ok := a.Catalog.Lookup(t.Context(), tool)
			require.True(t, ok, tool)
			_, err := a.Handler(t.Context(), &call.Request{Tool: found, Params: json.RawMessage(`{"arguments":` + arguments + `}`), Caller: c})
			return toolerr.CodeOf(err)
		}
	}
	all := map[string]door{
		"stdio": func(t *testing.T, tool, arguments string) toolerr.Code {
			return codeIn(t, stdio(t, message(tool, arguments)))
		},
		"stdio, modern": func(t *testing.T, tool, arguments string) toolerr.Code {
			return codeIn(t, stdio(t, modernMessage(tool, arguments)))
		},
		"call_tool": func(t *testing.T, tool, arguments string) toolerr.Code {
			return codeIn(t, stdio(t, message("call_tool", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments))))
		},
		"http": func(t *testing.T, tool, arguments string) toolerr.Code {
			return codeIn(t, post(t, "/mcp", message(tool, arguments)))
		},
		"http, modern": func(t *testing.T, tool, arguments string) toolerr.Code {
			return codeIn(t, post(t, "/mcp", modernMessage(tool, arguments), "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", tool))
		},
		"a profile": func(t *testing.T, tool, arguments string) toolerr.Code {
			return codeIn(t, post(t, "/mcp/all", message(tool, arguments)))
		},
		"the command line": handler(call.Caller{EntryPoint: "cli"}),
		"a turn of a model": func(t *testing.T, tool, arguments string) toolerr.Code {
			return handler(a.Policy().Turn(call.Caller{EntryPoint: "http", ID: "model"}).Caller())(t, tool, arguments)
		},
		"an agent": func(t *testing.T, tool, arguments string) toolerr.Code {
			tools := a.Toolset(call.Caller{EntryPoint: "cli", ID: "agent"}, nil)
			require.NoError(t, tools.Begin())
			_, err := tools.Call(t.Context(), &llm.ToolCall{Name: tool, Args: json.RawMessage(arguments)}, nil)
			return toolerr.CodeOf(err)
		},
		"an alias": func(t *testing.T, tool, arguments string) toolerr.Code {
			_, err := a.Call(t.Context(), "alias_"+tool, json.RawMessage(arguments))
			return toolerr.CodeOf(err)
		},
		"the library": func(t *testing.T, tool, arguments string) toolerr.Code {
			_, err := a.Call(t.Context(), tool, json.RawMessage(arguments))
			return toolerr.CodeOf(err)
		},
		"the private socket": func(t *testing.T, tool, arguments string) toolerr.Code {
			agent, ok := a.Catalog.Lookup(t.Context(), "dispatch_agent")
			require.True(t, ok)
			res, err := a.Handler(t.Context(), &call.Request{Tool: agent, Params: json.RawMessage(`{"arguments":{"say":[` + message(tool, arguments) + `]}}`)})
			require.NoError(t, err)
			var r struct{ Content []struct{ Text string } }
			require.NoError(t, json.Unmarshal(res.Raw, &r))
			heard := strings.Split(r.Content[0].Text, "\n")
			return codeIn(t, heard[len(heard)-1])
		},
	}
	maps.Copy(all, apiDoors(t, a))
	return all
}

// doored is a host with a server, and the same once more under other names.
func doored(t *testing.T, p policy.Config) *core.App {
	state := t.TempDir()
	renamed := server(t, "r", false, "-era", "legacy")
	renamed.Spec.Tools.Rename = map[string]string{"echo": "parrot", "env": "surroundings"}
	var aliases []manifest.Tool
	for name, of := range map[string]alias.Config{
		"s__echo": {Server: "s", Tool: "echo"}, "s__env": {Server: "s", Tool: "env"},
		"parrot": {Server: "r", Tool: "echo"}, "surroundings": {Server: "r", Tool: "env"},
	} {
		aliases = append(aliases, manifest.Tool{Name: "alias_" + name, Mode: manifest.MCP, MCP: &of, Input: json.RawMessage(`{"type":"object"}`)})
	}
	a, err := core.Open(config.Config{
		Declared: aliases,
		State:    state, Store: backend.Config{Dir: state},
		Models:   aModel(),
		Servers:  []config.Server{agent(), server(t, "s", false, "-era", "legacy"), renamed},
		Profiles: []catalog.Profile{{Name: "all"}},
		Offer:    toolsearch.Config{MaxTools: 3},
		Stages:   config.Stages{Policy: p},
	})
	require.NoError(t, err)
	t.Cleanup(a.Close)
	require.NoError(t, a.Listen("test"))
	return a
}

// The same call meets the same rule, whichever door it comes through and
// whatever the tool is called.
func TestEveryDoorMeetsTheSameRules(t *testing.T) {
	a := doored(t, policy.Config{
		Block: []string{"*__env"},
		Rules: []policy.Rule{
			{Tool: "*__echo", Args: map[string]string{"text": "secret*"}, Do: policy.Deny},
			{Tool: "*__echo", Args: map[string]string{"text": "loud*"}, Do: policy.Ask},
		},
	})
	all := doors(t, a)
	for name, try := range all {
		for _, tools := range [][2]string{{"s__echo", "s__env"}, {"parrot", "surroundings"}} {
			echo, env := tools[0], tools[1]
			for _, c := range []struct {
				tool, arguments string
				want            toolerr.Code
			}{
				{echo, `{"text":"fine"}`, ""},
				{echo, `{"text":"secret plan"}`, toolerr.PolicyDenied},
				{echo, `{"Text":"secret plan"}`, toolerr.PolicyDenied},
				{echo, `{"text":"se\u0063ret"}`, toolerr.PolicyDenied},
				{echo, `{"text":"loud"}`, toolerr.PendingApproval},
				{env, `{"text":"HOME"}`, toolerr.PolicyDenied},
			} {
				require.Equal(t, c.want, try(t, c.tool, c.arguments), "%s: %s %s", name, c.tool, c.arguments)
			}
		}
	}
}

func TestEveryDoorMeetsTheSameLimits(t *testing.T) {
	for want, p := range map[toolerr.Code]policy.Config{
		toolerr.PolicyDenied: {ToolChoice: "s__echo"},
		toolerr.RateLimited:  {MaxCallsPerMinute: map[string]int{"s__echo": 1 << 10, "*__echo": 1}},
	} {
		a := doored(t, p)
		all := doors(t, a)
		if want == toolerr.RateLimited {
			require.Empty(t, all["stdio"](t, "parrot", `{}`))
		}
		for name, try := range all {
			if name == "the private socket" && want == toolerr.PolicyDenied {
				continue // dispatch_agent is not the tool that is chosen
			}
			require.Equal(t, want, try(t, "parrot", `{}`), name)
		}
	}
}
