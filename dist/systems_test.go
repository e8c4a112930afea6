//go:build oracle && linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// A format is a way to install a release on Linux.
type format struct {
	file     string   // of the release
	packages []string // of the system, which has nothing else
	without  []string // dependencies of these packages that it does not need
	bin      string   // of the system, where the programs are then
	// Both act as root of the system. The file of the release is in its directory /tmp.
	install func(t *testing.T, s system)
	remove  func(t *testing.T, s system)
}

// system is a root file system with a file of the release.
type system struct{ root, file string }

// run runs a command as root of the system.
func (s system) run(t *testing.T, command string) {
	t.Helper()
	succeed(t, entered(t, s.root, 0, []string{"FILE=" + s.file}, "sh", "-c", command))
}

func running(command string) func(*testing.T, system) {
	return func(t *testing.T, s system) { s.run(t, command) }
}

// formats returns the formats with the commands of docs/install.md.
func formats(t *testing.T) map[string]format {
	base := []string{"dash", "coreutils", "libc-bin", "base-files"}
	return map[string]format{
		"deb": {
			"toolroom_*_linux_ARCH.deb", append([]string{"dpkg", "diffutils"}, base...), nil, "/usr/bin",
			running(pageCommand(t, "dpkg -i ")), running(pageCommand(t, "dpkg --purge ") + ` && ! dpkg --status toolroom`),
		},
		"rpm": {
			"toolroom_*_linux_ARCH.rpm", append([]string{"rpm"}, base...), []string{"perl", "debugedit"}, "/usr/bin",
			running(pageCommand(t, "rpm -i ")), running(pageCommand(t, "rpm -e ") + ` && ! rpm --query toolroom`),
		},
		"apk": {
			"toolroom_*_linux_ARCH.apk", base, nil, "/usr/bin",
			func(t *testing.T, s system) { apkAdd(t, s.root, filepath.Join(s.root, s.file)) },
			func(t *testing.T, s system) { apkDel(t, s.root) },
		},
		"tar": {
			"toolroom_*_linux_ARCH.tar.gz", append([]string{"tar", "gzip"}, base...), nil, "/opt/toolroom",
			running(`mkdir /opt/toolroom && tar --extract --gzip --file "$FILE" --directory /opt/toolroom --strip-components=1`), running(`rm -r /opt/toolroom`),
		},
	}
}

// Each package is installed in a system that has only its package manager. There,
// Claude Code lists and calls the tools that mcp-host install added. Then everything is
// removed, and the system is as before.
func TestSystems(t *testing.T) {
	for name, f := range formats(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := system{debianSystem(t, f.packages, f.without...), "/tmp/" + filepath.Base(built(t, f.file))}
			prepare(t, s.root)
			content, err := os.ReadFile(built(t, f.file))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(s.root, s.file), content, 0o644))
			if name == "rpm" {
				// Debian's rpm keeps a database for each user.
				s.run(t, "mkdir -p /etc/rpm && echo '%_dbpath /var/lib/rpm' > /etc/rpm/macros && rpm --initdb")
			}
			if name == "apk" {
				ownLib(t, s.root)
			}
			before := snapshot(t, s.root)

			f.install(t, s)
			installed := snapshot(t, s.root)
			require.Greater(t, len(installed), len(before)+len(harmless))
			tryClaude(t, s.root, f.bin, installed)
			f.remove(t, s)

			require.Empty(t, differences(before, snapshot(t, s.root)))
		})
	}
}

// differences returns the names that are not the same in two snapshots, without the
// files that Claude Code makes, the data of the tools and dpkg's log: these stay, as in
// a system whose user has worked with them.
func differences(before, after map[string]string) (names []string) {
	all := maps.Clone(before)
	maps.Copy(all, after)
	for name := range all {
		kept := slices.ContainsFunc([]string{
			"home/user/.claude", "home/user/.claude.json", "home/user/.cache/claude-cli-nodejs", "tmp/claude-1000", "tmp/cc-socks",
			"home/user/.local/state/toolroom", "var/log/dpkg.log",
		}, func(dir string) bool { return strings.HasPrefix(name+"/", dir+"/") })
		if before[name] != after[name] && !kept {
			names = append(names, name)
		}
	}
	return names
}

const (
	user        = 1000
	claudeInDir = "/opt/claude"
)

// prepare adds a user, a project and the places of the mounts.
func prepare(t *testing.T, root string) {
	t.Helper()
	for _, dir := range []string{"proc", "dev", "tmp", "root", "opt/claude", "home/user/.cache", "home/user/.local/state", "project", "etc"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	for name, text := range map[string]string{
		"project/hello.txt": "hello\n", "opt/claude/claude": "", "etc/hosts": "127.0.0.1 localhost\n",
		"etc/passwd": fmt.Sprintf("root:x:0:0:root:/root:/bin/sh\nuser:x:%d:%d::/home/user:/bin/sh\n", user, user),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o644))
	}
	require.NoError(t, os.Chmod(filepath.Join(root, "tmp"), 0o777|os.ModeSticky))
	if os.Geteuid() == 0 {
		for _, name := range []string{"home/user", "home/user/.cache", "home/user/.local", "home/user/.local/state", "project", "project/hello.txt"} {
			require.NoError(t, os.Chown(filepath.Join(root, name), user, user))
		}
	}
	for dir := root; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755)) // the temporary directories are for their owner only
	}
	_, err := exec.Command("chroot", root, "go", "version").CombinedOutput()
	require.Error(t, err, "the system has no Go")
}

// entered returns a command that sees only the root file system, /proc, /dev and Claude
// Code's program. If this test is run by root, the command runs as the given user.
func entered(t *testing.T, root string, uid int, env []string, name string, args ...string) *exec.Cmd {
	t.Helper()
	const enter = `mount --rbind /proc "$0/proc" && mount --rbind /dev "$0/dev" && mount --bind "$claude" "$0` + claudeInDir + `/claude" && exec chroot $user "$0" "$@"`
	cmd := asRoot("sh", append([]string{"-c", enter, root, name}, args...)...)
	home := "/root"
	if uid != 0 {
		home = "/home/user"
	}
	cmd.Env = append([]string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + home, "claude=" + claudeProgram(t)}, env...)
	if os.Geteuid() == 0 {
		cmd.Env = append(cmd.Env, fmt.Sprintf("user=--userspec=%d:%d", uid, uid))
	}
	return cmd
}

func claudeProgram(t *testing.T) string {
	t.Helper()
	program := filepath.Join(oracles(t), "node_modules", "@anthropic-ai", "claude-code-linux-"+nodeArch[runtime.GOARCH], "claude")
	require.FileExists(t, program, "run make oracles")
	return program
}

// tryClaude adds the tools to Claude Code and removes them, first where its program is
// not found, then with its program.
func tryClaude(t *testing.T, root, bin string, installed map[string]string) {
	t.Helper()
	model := &scriptedModel{}
	local := httptest.NewServer(model)
	defer local.Close()
	const nowhere = "http://127.0.0.1:9"
	common := []string{
		"TERM=dumb", "NO_COLOR=1", "HTTP_PROXY=" + nowhere, "HTTPS_PROXY=" + nowhere, "NO_PROXY=127.0.0.1",
		"ANTHROPIC_BASE_URL=" + local.URL, "ANTHROPIC_API_KEY=none", "ENABLE_TOOL_SEARCH=false", "MCP_CONNECTION_NONBLOCKING=0",
		"MCP_CONNECT_TIMEOUT_MS=240000", "MCP_TIMEOUT=240000", "MCP_TOOL_TIMEOUT=240000",
		"DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1", "DISABLE_ERROR_REPORTING=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
	}
	run := func(path string, args ...string) string {
		t.Helper()
		enter := append([]string{"-c", `cd /project && export PATH="$P" && exec "$@"`, "sh"}, args...)
		return succeed(t, entered(t, root, user, append([]string{"P=" + path}, common...), "sh", enter...))
	}
	alone := "/usr/bin:/bin"
	run(alone, bin+"/mcp-host", "install", "claude-code")
	require.NotEqual(t, installed, snapshot(t, root))
	run(alone, bin+"/mcp-host", "uninstall", "claude-code")
	require.Equal(t, installed, snapshot(t, root))

	both := claudeInDir + ":" + alone
	run(both, bin+"/mcp-host", "install", "claude-code")
	out := run(both, "claude", "-p", "Call the tools.", "--model", "claude-sonnet-4-5", "--allowedTools", "mcp__toolroom__*")
	require.Empty(t, model.problems)
	require.Contains(t, out, "All calls are made.")
	for name := range harmless {
		require.Contains(t, model.offered, "mcp__toolroom__"+name, "Claude Code lists the tool")
	}
	require.Contains(t, model.result, "hello")
	run(both, bin+"/mcp-host", "uninstall", "claude-code")
	require.NotContains(t, run(both, "claude", "mcp", "list"), "toolroom")
	text, err := os.ReadFile(filepath.Join(root, "home/user/.claude.json"))
	require.NoError(t, err)
	require.NotContains(t, string(text), "mcp-host")
}

// scriptedModel answers in Anthropic's Messages API: it calls the tool view once.
type scriptedModel struct {
	mu       sync.Mutex
	offered  []string // the tools of the first request that has some
	result   string   // of the call
	problems []string
}

func (m *scriptedModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil || !strings.HasSuffix(r.URL.Path, "/v1/messages") {
		http.NotFound(w, r)
		return
	}
	var sent struct {
		Stream   bool
		Tools    []struct{ Name string }
		Messages []struct{ Content json.RawMessage }
	}
	if err := json.Unmarshal(body, &sent); err != nil {
		m.problems = append(m.problems, err.Error())
		return
	}
	var parts []struct {
		Type    string
		Content json.RawMessage
	}
	for _, message := range sent.Messages {
		if json.Unmarshal(message.Content, &parts) != nil {
			continue // a text
		}
		for _, part := range parts {
			if part.Type == "tool_result" {
				m.result = string(part.Content)
			}
		}
	}
	text := map[string]any{"type": "text", "text": "All calls are made."}
	if len(sent.Tools) > 0 && m.offered == nil {
		for _, tool := range sent.Tools {
			m.offered = append(m.offered, tool.Name)
		}
		m.write(w, sent.Stream, map[string]any{"type": "tool_use", "id": "toolu_1", "name": "mcp__toolroom__view", "input": harmless["view"]})
		return
	}
	m.write(w, sent.Stream, text)
}

// write answers with one block of content.
func (m *scriptedModel) write(w http.ResponseWriter, stream bool, block map[string]any) {
	stop := map[string]string{"text": "end_turn", "tool_use": "tool_use"}[block["type"].(string)]
	message := map[string]any{
		"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": []any{block},
		"stop_reason": stop, "stop_sequence": nil, "usage": map[string]any{"input_tokens": 1, "output_tokens": 1},
	}
	if !stream {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(message); err != nil {
			m.problems = append(m.problems, err.Error())
		}
		return
	}
	start, delta := maps.Clone(block), map[string]any{"type": "text_delta", "text": block["text"]}
	start["text"] = ""
	if input, ok := block["input"]; ok {
		arguments, err := json.Marshal(input)
		if err != nil {
			m.problems = append(m.problems, err.Error())
			return
		}
		delta = map[string]any{"type": "input_json_delta", "partial_json": string(arguments)}
		delete(start, "text")
		start["input"] = map[string]any{}
	}
	message["content"], message["stop_reason"] = []any{}, nil
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range []map[string]any{
		{"type": "message_start", "message": message},
		{"type": "content_block_start", "index": 0, "content_block": start},
		{"type": "content_block_delta", "index": 0, "delta": delta},
		{"type": "content_block_stop", "index": 0},
		{"type": "message_delta", "delta": map[string]any{"stop_reason": stop, "stop_sequence": nil}, "usage": map[string]any{"output_tokens": 1}},
		{"type": "message_stop"},
	} {
		text, err := json.Marshal(event)
		if err == nil {
			_, err = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event["type"], text)
		}
		if err != nil {
			m.problems = append(m.problems, err.Error())
		}
	}
}
