//go:build oracle

package conformance

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/bench/oracle"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// session describes the requests that a client makes to one server; see session.mjs.
type session struct {
	Calls       []map[string]any `json:"calls,omitempty"`
	Reads       []string         `json:"reads,omitempty"`
	Prompts     []map[string]any `json:"prompts,omitempty"`
	Completions []map[string]any `json:"completions,omitempty"`
	Watch       string           `json:"watch,omitempty"`
	Logging     string           `json:"logging,omitempty"` // a tool that turns logging on and off
	Refuse      bool             `json:"refuse,omitempty"`

	name      string // name of the test
	pkg       string // npm package of the server
	args      []string
	web       bool     // served over streamable HTTP
	write     []string // what it may write, besides args, when it is confined
	toolsOnly bool
	stateful  bool     // it keeps state for a client, so that it is shared only with --share
	has       []string // texts that the client must receive, so that a session of errors fails
}

func do(name string, arguments map[string]any) map[string]any {
	return map[string]any{"name": name, "arguments": arguments}
}

// everything returns a session with the reference server that has one of everything.
func everything(name string) session {
	ref := map[string]any{"type": "ref/prompt", "name": "completable-prompt"}
	packed := func(as string) map[string]any {
		return do("gzip-file-as-resource", map[string]any{"name": as + ".gz", "data": "data:text/plain;base64,PDw+Pg==", "outputType": as})
	}
	return session{
		name: name, pkg: "@modelcontextprotocol/server-everything",
		Calls: []map[string]any{
			do("echo", map[string]any{"message": "<hello> \u2028 &"}),
			do("get-sum", map[string]any{"a": 1, "b": 2.5}),
			do("get-tiny-image", map[string]any{}),
			do("get-annotated-message", map[string]any{"messageType": "error", "includeImage": true}),
			do("get-structured-content", map[string]any{"location": "New York"}),
			do("get-resource-links", map[string]any{"count": 4}),
			do("get-resource-reference", map[string]any{"resourceType": "Text", "resourceId": 2}),
			do("get-resource-reference", map[string]any{"resourceType": "Blob", "resourceId": 3}),
			packed("resource"), packed("resourceLink"),
			do("trigger-long-running-operation", map[string]any{"duration": 0.3, "steps": 3}),
			do("trigger-elicitation-request", map[string]any{}),
			do("trigger-sampling-request", map[string]any{"prompt": "Say something", "maxTokens": 10}),
		},
		Reads: []string{
			"demo://resource/static/document/architecture.md", "demo://resource/dynamic/text/2", "demo://resource/dynamic/blob/1",
			"demo://resource/session/resourceLink.gz", "demo://no/such",
		},
		Prompts: []map[string]any{
			do("simple-prompt", nil), do("args-prompt", map[string]any{"city": "Paris", "state": "Texas"}),
			do("resource-prompt", map[string]any{"resourceType": "Text", "resourceId": "2"}),
			do("args-prompt", map[string]any{}),
		},
		Completions: []map[string]any{
			{"ref": ref, "argument": map[string]any{"name": "department", "value": "S"}},
			{"ref": ref, "argument": map[string]any{"name": "name", "value": "A"}, "context": map[string]any{"arguments": map[string]any{"department": "Engineering"}}},
			{"ref": map[string]any{"type": "ref/resource", "uri": "demo://resource/dynamic/text/{resourceId}"}, "argument": map[string]any{"name": "resourceId", "value": "1"}},
		},
		Watch: "demo://resource/dynamic/text/1", Logging: "toggle-simulated-logging",
		has: []string{
			`"progress":3`, `"structuredContent"`, `"type":"image"`, `"An answer <&>`, `"requestedSchema"`, `"Support"`, `"type":"resource"`, `"blob"`,
			`"updates":["demo://resource/dynamic/text/1"]`, `"logged":[["level","data"]]`,
		},
	}
}

// realServers returns sessions with servers that many people use.
func realServers(t *testing.T) []session {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one\ntwo <&> \u2028 é\n"), 0o600))
	entity := map[string]any{"entities": []any{map[string]any{"name": "A", "entityType": "letter", "observations": []any{"first"}}}}
	repository := repositoryWithChange(t)
	web := everything("server-everything over HTTP")
	web.web = true
	refusing := everything("server-everything, refused")
	refusing.Refuse, refusing.Calls, refusing.Watch, refusing.Logging = true, refusing.Calls[len(refusing.Calls)-2:], "", ""
	refusing.has = []string{`said no`, `User declined`}
	return []session{everything("server-everything"), web, refusing, {
		name: "server-filesystem", pkg: "@modelcontextprotocol/server-filesystem", toolsOnly: true, args: []string{dir},
		Calls: []map[string]any{
			do("list_directory", map[string]any{"path": dir}),
			do("read_text_file", map[string]any{"path": filepath.Join(dir, "a.txt")}),
			do("read_text_file", map[string]any{"path": "/etc/passwd"}),
			do("search_files", map[string]any{"path": dir, "pattern": "*.txt"}),
		},
		has: []string{`one\ntwo <&>`, "a.txt", `"isError":true`},
	}, {
		name: "server-memory", pkg: "@modelcontextprotocol/server-memory", toolsOnly: true,
		Calls: []map[string]any{
			do("create_entities", entity), do("read_graph", map[string]any{}),
			do("search_nodes", map[string]any{"query": "first"}),
		},
		has: []string{`"observations"`},
	}, {
		name: "server-sequential-thinking", pkg: "@modelcontextprotocol/server-sequential-thinking", toolsOnly: true,
		Calls: []map[string]any{
			do("sequentialthinking", map[string]any{"thought": "first", "thoughtNumber": 1, "totalThoughts": 2, "nextThoughtNeeded": true}),
			do("sequentialthinking", map[string]any{"thought": "other", "thoughtNumber": 2, "totalThoughts": 2, "nextThoughtNeeded": false, "branchFromThought": 1, "branchId": "b"}),
		},
		has: []string{`thoughtHistoryLength\": 2`},
	}, {
		name: "git-mcp-server", pkg: "@cyanheads/git-mcp-server", toolsOnly: true, stateful: true, write: []string{repository},
		Calls: []map[string]any{
			do("git_add", map[string]any{"path": repository, "paths": []any{"a.txt"}}), // twice is as once
			do("git_status", map[string]any{"path": repository}),
			do("git_diff", map[string]any{"path": repository, "staged": true}),
			do("git_log", map[string]any{"path": repository}),
			do("git_show", map[string]any{"path": repository, "object": "HEAD"}),
		},
		has: []string{`second line`, `of the commit`},
	}}
}

// repositoryWithChange returns a git repository with a commit and a change.
func repositoryWithChange(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "a.txt")
	git := func(args ...string) {
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=A", "-c", "user.email=a@example.com"}, args...)...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	git("init", "-q", "-b", "main")
	require.NoError(t, os.WriteFile(file, []byte("first line\n"), 0o600))
	git("add", ".")
	git("commit", "-q", "-m", "text of the commit")
	require.NoError(t, os.WriteFile(file, []byte("first line\nsecond line\n"), 0o600))
	return dir
}

// listen serves a real server over HTTP and returns its address.
func (s session) listen(t *testing.T, node, script string) (url string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, errors.Join(err, listener.Close()))
	server := exec.Command(node, script, "streamableHttp")
	server.Env = append(os.Environ(), "PORT="+port)
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		server.Process.Kill() //nolint:errcheck // how it ends is all the same
		server.Wait()         //nolint:errcheck
	})
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		return err == nil && conn.Close() == nil
	}, time.Minute, 20*time.Millisecond, "%s does not listen", s.name)
	return "http://127.0.0.1:" + port + "/mcp"
}

// clock matches the parts of answers that change: the time of day and session ids.
var clock = regexp.MustCompile(`\d{1,2}:\d\d:\d\d [AP]M|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// TestRealServersThroughTheHost makes the same requests to a server directly and
// through each door of the host, and requires equal results: everything that the
// server sends, including unknown members, in the server's order. Only the host's own
// errors differ in wording: unknown methods, tools and resources, and arguments that
// do not match the tool's schema.
func TestRealServersThroughTheHost(t *testing.T) {
	dir := alone(t)
	host, node := filepath.Join(dir, "mcp-host"), oracle.Path(t, "node")
	for _, s := range realServers(t) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			script := filepath.Join(oracle.Module(t, s.pkg), "dist", "index.js")
			server := func() map[string]any { // with new state for each connection
				return map[string]any{"command": node, "args": append([]string{script}, s.args...), "env": map[string]string{
					"MEMORY_FILE_PATH": filepath.Join(t.TempDir(), "memory.json"), "PATH": os.Getenv("PATH"),
				}}
			}
			if s.web {
				url := s.listen(t, node, script)
				server = func() map[string]any { return map[string]any{"url": url} }
			}
			direct := s.run(t, server())
			for _, part := range s.has {
				require.Contains(t, string(direct), part)
			}
			config := func(extra map[string]any) string {
				file := filepath.Join(t.TempDir(), "config.json")
				real := server()
				maps.Copy(real, patient)
				maps.Copy(real, extra)
				text, err := json.Marshal(map[string]any{"servers": map[string]any{"real": real}})
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(file, text, 0o600))
				return file
			}
			want := comparable(t, direct)
			nameServer(t, want["asked"])
			stdio := s.run(t, map[string]any{"command": host, "args": []string{"stdio", "--no-share", "--config", config(nil), "--state", t.TempDir()}})
			s.same(t, want, comparable(t, stdio), "over stdio")
			state := t.TempDir()
			args := []string{"stdio", "--config", config(nil), "--state", state}
			if s.stateful {
				args = append(args, "--share")
			}
			shared := s.run(t, map[string]any{"command": host, "args": args})
			s.same(t, want, comparable(t, shared), "over stdio, shared")
			s.stopSharing(t, host, state)
			if !s.web && runtime.GOOS == "linux" {
				confined := func() string {
					memory := t.TempDir()
					return config(map[string]any{
						"sandbox": map[string]any{"write": slices.Concat([]string{memory}, s.args, s.write)},
						"env":     map[string]string{"MEMORY_FILE_PATH": filepath.Join(memory, "memory.json")},
					})
				}
				stdio := s.run(t, map[string]any{"command": host, "args": []string{"stdio", "--no-share", "--config", confined(), "--state", t.TempDir()}})
				s.same(t, want, comparable(t, stdio), "over stdio, confined")
				state := t.TempDir()
				shared := s.run(t, map[string]any{"command": host, "args": []string{"stdio", "--share", "--config", confined(), "--state", state}})
				s.same(t, want, comparable(t, shared), "over stdio, confined and shared")
				s.stopSharing(t, host, state)
			}
			root := fixtureRoot(t)
			if len(s.args) > 0 {
				root = s.args[0] // servers that ask for roots get it and use it
			}
			url := serveHost(t, host, root, "--no-share", "--config", config(nil))
			web := s.run(t, map[string]any{"url": url, "headers": door{url: url}.headers()})
			s.same(t, want, comparable(t, web), "over HTTP")
		})
	}
}

// stopSharing requires that the session's server ran in the process that shares servers, and ends
// that process.
func (s session) stopSharing(t *testing.T, host, state string) {
	t.Helper()
	stopped, err := exec.Command(host, "stop", "--state", state).Output()
	require.NoError(t, err)
	want := "1 server"
	if s.web {
		want = "no servers are shared"
	}
	require.Contains(t, string(stopped), want)
	var pid int
	if n, _ := fmt.Sscanf(string(stopped), "process %d", &pid); n == 1 { //nolint:errcheck // otherwise none runs
		require.Eventually(t, func() bool { return !mcpkittest.IsRunning(pid) }, time.Minute, 10*time.Millisecond)
	}
}

// run makes the requests of the session over one connection.
func (s session) run(t *testing.T, connection map[string]any) []byte {
	t.Helper()
	order := map[string]any{}
	raw, err := json.Marshal(s)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &order))
	maps.Copy(order, connection)
	raw, err = json.Marshal(order)
	require.NoError(t, err)
	cmd := exec.Command(oracle.Path(t, "node"), filepath.Join(oracle.Dir(), "session.mjs"), string(raw))
	var out, errors bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errors
	require.NoError(t, cmd.Run(), "stdout: %s\nstderr: %s", out.String(), errors.String())
	return out.Bytes()
}

// same compares the results. It ignores what the server lacks entirely, because the
// host declares the capabilities of all its servers.
func (s session) same(t *testing.T, direct, host map[string]any, door string) {
	t.Helper()
	for _, part := range slices.Sorted(maps.Keys(direct)) {
		if s.toolsOnly && !slices.Contains([]string{"tools", "calls", "asked", "progress"}, part) {
			continue
		}
		want, got := pretty(t, direct[part]), pretty(t, host[part])
		for i := range min(len(want), len(got)) {
			require.Equal(t, want[i], got[i], "%s, %s: line %d", door, part, i+1)
		}
		require.Len(t, got, len(want), "%s, %s", door, part)
	}
}

// nameServer adds the server's name to questions that it asked directly, as the host
// does, because a client shows questions under the host's name.
func nameServer(t *testing.T, asked any) {
	t.Helper()
	list, _ := asked.([]any)
	for _, question := range list {
		params, ok := question.(map[string]any)
		require.True(t, ok)
		if message, ok := params["message"].(string); ok {
			params["message"] = "The server \"real\" asks. These are its words, not the host's:\n> " + strings.ReplaceAll(message, "\n", "\n> ")
		}
		if _, ok := params["messages"]; ok {
			const head = `(The server "real" asks for this, not the host.)`
			if system, ok := params["systemPrompt"].(string); ok && system != "" {
				params["systemPrompt"] = head + "\n\n" + system
			} else {
				params["systemPrompt"] = head
			}
		}
	}
}

func pretty(t *testing.T, value any) []string {
	t.Helper()
	raw, err := json.MarshalIndent(value, "", " ")
	require.NoError(t, err)
	return strings.Split(string(raw), "\n")
}

// comparable removes the time of day and the texts of errors that the host words
// itself.
func comparable(t *testing.T, seen []byte) map[string]any {
	t.Helper()
	var all map[string]any
	decoder := json.NewDecoder(bytes.NewReader(clock.ReplaceAll(seen, []byte("NOON"))))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&all))
	var walk func(value any)
	walk = func(value any) {
		switch v := value.(type) {
		case map[string]any:
			if _, failed := v["thrown"]; failed {
				delete(v, "thrown")
				delete(v, "data")
			}
			if blob, ok := v["blob"].(string); ok {
				content, err := base64.StdEncoding.DecodeString(blob)
				require.NoError(t, err)
				v["blob"] = string(clock.ReplaceAll(content, []byte("NOON")))
			}
			for _, key := range slices.Sorted(maps.Keys(v)) {
				walk(v[key])
			}
		case []any:
			for _, item := range v {
				walk(item)
			}
		}
	}
	walk(all)
	return all
}
