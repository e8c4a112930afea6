package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// everyKind declares a tool of each kind over a web service and the fixture.
const everyKind = `
servers: {fix: {command: fixture, args: [-era, legacy]}}
policy: {rules: [{tool: fix__fail, do: deny, why: it always fails}, {tool: denied, do: deny}]}
manifests: [tools]
timeout: {tools: {sleeps: 300ms}}
tools:
  fixed: {description: Fixed., mock_result: {ok: true}}
  denied: {mock_result: 1}
  web:
    description: Asks a service.
    version: "3"
    input_schema: {type: object, properties: {id: {type: string}}, required: [id]}
    output_schema: {type: object, properties: {id: {type: string}}, required: [id]}
    http: {url: "%[1]s/item/{id}", method: GET, allow_private: true, headers: {X-Key: "${SERVICE_KEY}"}, redact: [password]}
  post: {http: {url: "%[1]s/item/x", method: POST, allow_private: true}}
  private: {http: {url: "%[1]s/", method: GET}}
  program: {exec: {command: fixture, args: [-start, crash]}}
  sleeps: {exec: {command: fixture, args: [-start, hang]}}
  again: {description: The fixture's echo., mcp: {server: fix, tool: echo}}
  alias_of_denied: {mcp: {server: fix, tool: fail}}
  both:
    input_schema: {type: object, properties: {id: {type: string}}, required: [id]}
    chain:
      steps:
        - {id: item, tool: web, args: {id: "${args.id}"}}
        - {id: said, tool: again, args: {said: "${steps.item.result.id}"}}
      result: {item: "${steps.item.result}", said: "${steps.said.result.said}"}
  chain_of_denied: {chain: [{tool: fix__fail}]}
  yours: {description: Run by the caller., client: {}}
`

// service is what the tools ask: an item is not there at first, and posts are
// counted.
func service(t *testing.T) (url string, posts *atomic.Int32) {
	t.Helper()
	posts = new(atomic.Int32)
	var first atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			posts.Add(1)
			w.WriteHeader(http.StatusServiceUnavailable)
		case r.Header.Get("X-Key") != "sekrit":
			w.WriteHeader(http.StatusForbidden)
		case !first.Swap(true):
			w.WriteHeader(http.StatusServiceUnavailable)
		case strings.HasSuffix(r.URL.Path, "/odd"):
			io.WriteString(w, `{"id":7}`) //nolint:errcheck // a test's
		default:
			fmt.Fprintf(w, `{"id":%q,"password":"hidden"}`, filepath.Base(r.URL.Path)) //nolint:errcheck // a test's
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, posts
}

func TestDeclaredToolsAtEveryDoor(t *testing.T) {
	url, posts := service(t)
	dir, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
	t.Setenv("SERVICE_KEY", "sekrit")
	t.Setenv("TOOLROOM_TOKEN", "")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "tools"), 0o700))
	config := filepath.Join(dir, "toolroom.yaml")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, everyKind, url), 0o600))
	web := serveProcess(t, "--config", config, "--state", state)
	stdio := start(t, nil, "stdio", "--config", config, "--state", state)
	doors := map[string]func(body string) string{
		"http":  func(body string) string { _, answer := web.post(t, body); return answer },
		"stdio": func(body string) string { return stdio.say(t, body) },
		"cli": func(body string) string {
			var name, args string
			_, err := fmt.Sscanf(strings.NewReplacer(`"`, " ", ",", " ").Replace(body[strings.Index(body, `"name":`)+7:]), "%s", &name)
			require.NoError(t, err)
			args = body[strings.Index(body, `"arguments":`)+12 : len(body)-2]
			out, _ := exec.Command("mcp-host", "call", "--json", "--config", config, "--state", state, name, args).Output() //nolint:errcheck // it fails where the tool does
			return string(out)
		},
	}
	for _, c := range []struct{ tool, args, want string }{
		{"fixed", `{}`, `"text":"{\"ok\":true}"`},
		{"web", `{"id":"a b/c?"}`, `{"id":"c?","password":"[REDACTED]"}`},
		{"web", `{}`, `code":"MISSING_PARAMETER"`},
		{"web", `{"id":"odd"}`, `code":"RESULT_INVALID"`},
		{"private", `{}`, `code":"POLICY_DENIED"`},
		{"denied", `{}`, `code":"POLICY_DENIED"`},
		{"program", `{}`, `cannot find my configuration`},
		{"sleeps", `{}`, `code":"TIMEOUT"`},
		{"again", `{"f": 1.50}`, `{"content":[{"type":"text","text":"{\"f\": 1.50}"}]}`},
		{"alias_of_denied", `{}`, `code":"POLICY_DENIED"`},
		{"chain_of_denied", `{}`, `code":"POLICY_DENIED"`},
		{"both", `{"id":"x"}`, `"text":"{\"item\":{\"id\":\"x\",\"password\":\"[REDACTED]\"},\"said\":\"x\"}"`},
		{"yours", `{"a":1}`, `"reason":"client_tool"`},
	} {
		for door, ask := range doors {
			answer := ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, c.tool, c.args))
			require.Contains(t, answer, c.want, "%s at %s", c.tool, door)
			require.NotContains(t, answer, "sekrit")
		}
	}
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	require.Contains(t, doors["http"](list), `"_meta":{"io.github.toolroom-mcp/tool":{"version":"3"}}`)
	require.JSONEq(t, doors["http"](list), doors["stdio"](list))

	doors["http"](`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"post","arguments":{}}}`)
	require.Equal(t, int32(1), posts.Load(), "a POST is not sent again")

	require.Eventually(t, func() bool {
		files, err := filepath.Glob(filepath.Join(state, "audit", "*.jsonl"))
		require.NoError(t, err)
		text := ""
		for _, file := range files {
			raw, err := os.ReadFile(file)
			require.NoError(t, err)
			text += string(raw)
		}
		return strings.Contains(text, `"both"`) && strings.Contains(text, `"web"`) && strings.Contains(text, `"fix__echo"`) && !strings.Contains(text, "sekrit")
	}, time.Minute, 5*time.Millisecond, "a chain, its steps and what an alias leads to are written down")
}

func TestDeclaredToolsFollowTheirFiles(t *testing.T) {
	dir, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
	t.Setenv("TOOLROOM_TOKEN", "")
	tools := filepath.Join(dir, "tools")
	require.NoError(t, os.Mkdir(tools, 0o700))
	config := filepath.Join(dir, "toolroom.yaml")
	require.NoError(t, os.WriteFile(config, []byte("manifests: [tools]\ntools: {stays: {mock_result: 1}}"), 0o600))
	host := serveProcess(t, "--config", config, "--state", state)
	asked := func(tool string) string {
		_, answer := host.post(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q}}`, tool))
		return answer
	}
	becomes := func(tool, want string) {
		t.Helper()
		require.Eventually(t, func() bool { return strings.Contains(asked(tool), want) }, time.Minute, 5*time.Millisecond, "%s: %s", tool, want)
	}
	manifest := func(result string) string {
		return "apiVersion: promptkit.altairalabs.ai/v1\nkind: Tool\nmetadata: {name: new}\nspec: {mock_result: " + result + "}\n"
	}
	require.Contains(t, asked("stays"), `"text":"1"`)
	require.Contains(t, asked("new"), "unknown tool")
	edit(t, filepath.Join(tools, "new.yaml"), manifest("first"))
	becomes("new", `"text":"first"`)
	edit(t, filepath.Join(tools, "new.yaml"), manifest("second"))
	becomes("new", `"text":"second"`)
	edit(t, filepath.Join(tools, "new.yaml"), manifest("x, mode: nonsense"))
	host.log.waitFor(t, "tool new: spec.mode: is nonsense")
	require.Contains(t, asked("new"), `"text":"second"`, "what is wrong changes nothing")
	require.NoError(t, os.Remove(filepath.Join(tools, "new.yaml")))
	becomes("new", "unknown tool")
	require.Contains(t, asked("stays"), `"text":"1"`)

	// Tools that another process registers or forgets are so for this one, too.
	other := func(args ...string) {
		t.Helper()
		out, err := exec.Command("mcp-host", append([]string{"--config", config, "--state", state, "tools"}, args...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	file := filepath.Join(dir, "registered.yaml")
	register := func(name, result string) {
		t.Helper()
		require.NoError(t, os.WriteFile(file, []byte(strings.Replace(manifest(result), "name: new", "name: "+name, 1)), 0o600))
		other("register", file)
	}
	listed := func() string {
		_, list := host.post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		return list
	}
	require.NotContains(t, listed(), `"name":"found"`)
	register("found", "third")
	require.Contains(t, asked("found"), `"text":"third"`, "by its name")
	register("also", "fourth")
	require.Contains(t, listed(), `"name":"also"`, "in a list")
	require.Contains(t, listed(), `"name":"found"`)
	register("found", "fifth")
	require.Contains(t, asked("found"), `"text":"fifth"`)
	other("unregister", "found")
	require.Contains(t, asked("found"), "unknown tool")
	require.Contains(t, asked("also"), `"text":"fourth"`)
	other("unregister", "also")
	require.NotContains(t, listed(), `"name":"also"`)
	require.Contains(t, listed(), `"name":"stays"`)
}

// TestProfilesMeanToolsByEveryName is about renamed tools, other names of them,
// and what a profile blocks or allows by either name.
func TestProfilesMeanToolsByEveryName(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TOOLROOM_TOKEN", "")
	config := filepath.Join(dir, "toolroom.yaml")
	require.NoError(t, os.WriteFile(config, []byte(`
servers:
  fix: {command: fixture, args: [-era, legacy], tools: {rename: {echo: say}, block: [fix__fail]}}
tools:
  alias: {mcp: {server: fix, tool: echo}}
  alias_of_alias: {mcp: {server: alias, tool: alias}}
  other: {mock_result: 1}
profiles:
  blocks_own: {block: [fix__echo]}
  blocks_served: {block: [say]}
  allows_own: {allow: [fix__echo]}
  allows_served: {allow: [say]}
  allows_alias: {allow: [alias]}
`), 0o600))
	host := serveProcess(t, "--config", config, "--state", filepath.Join(t.TempDir(), "state"))
	for profile, names := range map[string][]string{
		"":              {"say", "alias", "alias_of_alias", "other"},
		"blocks_own":    {"other"},
		"blocks_served": {"other"},
		"allows_own":    {"say"},
		"allows_served": {"say"},
		"allows_alias":  {"alias"},
	} {
		door := host
		if profile != "" {
			door.url += "/" + profile
		}
		for _, tool := range []string{"say", "alias", "alias_of_alias", "other"} {
			shown := slices.Contains(names, tool)
			require.Equal(t, shown, strings.Contains(door.call(t, tool, `{}`), `"result"`), "%s in %q", tool, profile)
			_, list := door.post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
			require.Equal(t, shown, strings.Contains(list, `"name":"`+tool+`"`), "%s in %q", tool, profile)
			require.NotContains(t, list, "fix__fail", "which is blocked by its served name")
		}
	}
}

// TestAClientRunsItsOwnTools is asked by elicitation for what its tool gives.
func TestAClientRunsItsOwnTools(t *testing.T) {
	config := filepath.Join(t.TempDir(), "toolroom.yaml")
	require.NoError(t, os.WriteFile(config, []byte("tools: {yours: {client: {message: 'Where are you?'}, output_schema: {type: object, properties: {place: {type: string}}, required: [place]}}}"), 0o600))
	host := start(t, nil, "stdio", "--config", config, "--state", filepath.Join(t.TempDir(), "state"))
	host.say(t, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"x","version":"1"}}}`)
	_, err := io.WriteString(host.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	require.NoError(t, err)
	for id, c := range []struct{ answer, want string }{
		{`{"action":"accept","content":{"place":"Bern"}}`, `"structuredContent":{"place":"Bern"}`},
		{`{"action":"accept","content":{"place":7}}`, `code":"RESULT_INVALID"`},
		{`{"action":"decline"}`, `"isError":true`},
	} {
		question := host.say(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"yours","arguments":{"a":1}}}`, id+2))
		require.Contains(t, question, `"method":"elicitation/create"`)
		require.Contains(t, question, `Where are you?`)
		var asked struct {
			ID json.RawMessage `json:"id"`
		}
		require.NoError(t, json.Unmarshal([]byte(question), &asked))
		require.Contains(t, host.say(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, asked.ID, c.answer)), c.want)
	}
}
