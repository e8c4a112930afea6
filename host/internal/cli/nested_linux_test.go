package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// nest is a home directory with scripts that start hosts, and a log with a
// line for each start.
type nest struct {
	dir string
	env []string
}

func newNest(t *testing.T) nest {
	n := nest{dir: t.TempDir()}
	n.env = append(os.Environ(), "HOME="+n.dir, "XDG_CONFIG_HOME="+n.dir+"/config", "XDG_STATE_HOME="+n.dir+"/state")
	require.NoError(t, os.MkdirAll(n.dir+"/config/toolroom", 0o700))
	return n
}

// script makes a script that logs and runs a command line, in which $host is
// the host. The name is not in the text, as it is not in that of npx.
func (n nest) script(t *testing.T, name, line string) string {
	host, err := exec.LookPath("mcp-host")
	require.NoError(t, err)
	path := filepath.Join(n.dir, name)
	text := fmt.Sprintf("#!/bin/sh\necho $$ >> '%s/log'\nhost='%s/mcp-'; host=${host}host\n%s\n", n.dir, filepath.Dir(host), line)
	mcpkittest.WriteProgram(t, path, []byte(text))
	return path
}

func (n nest) config(t *testing.T, name, text string) string {
	path := filepath.Join(n.dir, name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func (n nest) run(t *testing.T, args ...string) string {
	cmd := exec.CommandContext(t.Context(), "mcp-host", args...)
	cmd.Env, cmd.Dir = n.env, n.dir
	out, _ := cmd.CombinedOutput() //nolint:errcheck // servers that are offline make it fail
	return string(out)
}

// state returns the state and the error of a server in the output of servers test.
func (n nest) state(t *testing.T, server string, args ...string) (state, message string) {
	cmd := exec.CommandContext(t.Context(), "mcp-host", append([]string{"servers", "test", "--json"}, args...)...)
	cmd.Env, cmd.Dir, cmd.Stderr = n.env, n.dir, io.Discard
	out, _ := cmd.Output() //nolint:errcheck // see run
	var all []struct {
		Name, State string
		Error       string
		LastFailure struct{ Message string }
	}
	require.NoError(t, json.Unmarshal(out, &all), "%s", out)
	for _, s := range all {
		if s.Name == server {
			return s.State, s.Error + s.LastFailure.Message
		}
	}
	t.Fatalf("no server %s in %s", server, out)
	return "", ""
}

func (n nest) starts(t *testing.T) int {
	text, err := os.ReadFile(n.dir + "/log")
	if os.IsNotExist(err) {
		return 0
	}
	require.NoError(t, err)
	require.NoError(t, os.Remove(n.dir+"/log"))
	return strings.Count(string(text), "\n")
}

// Whatever starts the host again: it is started once at most, and the server
// says why it is offline.
func TestAHostIsNoServerOfItself(t *testing.T) {
	n := newNest(t)
	host, err := exec.LookPath("mcp-host")
	require.NoError(t, err)
	link, renamed := filepath.Join(n.dir, "link"), filepath.Join(n.dir, "renamed")
	require.NoError(t, os.Symlink(host, link))
	mcpkittest.CopyProgram(t, host, renamed)
	for _, sub := range []string{"copied", "linked"} {
		require.NoError(t, os.Mkdir(filepath.Join(n.dir, sub), 0o700))
	}
	require.NoError(t, os.Symlink(host, filepath.Join(n.dir, "linked", "mcp-host")))
	mcpkittest.CopyProgram(t, host, filepath.Join(n.dir, "copied", "mcp-host")) // the test's binary goes by its name
	clean := "cd '" + n.dir + "' && exec env -i HOME=\"$PWD\" XDG_CONFIG_HOME=\"$PWD/config\" XDG_STATE_HOME=\"$PWD/state\" "
	for _, c := range []struct {
		name    string
		command []string
		starts  int
	}{
		{"directly", []string{"mcp-host", "stdio"}, 0},
		{"with other roots", []string{host, "stdio", "--root", n.dir}, 0},
		{"link", []string{link, "stdio"}, 0},
		{"copy", []string{renamed, "--root=/", "stdio"}, 0},
		{"env", []string{"env", "A=b", "mcp-host", "stdio"}, 0},
		{"shell", []string{"sh", "-c", "exec mcp-host stdio"}, 0},
		{"serve", []string{host, "serve", "--listen", "127.0.0.1:0"}, 0},
		{"wrapper that names it", []string{n.script(t, "named", "exec '"+host+`' stdio "$@"`)}, 0},
		{"wrapper", []string{n.script(t, "wrapper", `exec "$host" stdio`)}, 1},
		{"wrapper that waits", []string{n.script(t, "waits", `"$host" stdio`+"\nexit $?")}, 1},
		{"npx", []string{n.script(t, "npx", `shift; exec "$host" stdio`), "-y", "some-tools"}, 1},
		{"env -i", []string{n.script(t, "clean", clean+`"$host" stdio`)}, 1},
		{"env -i of a copy", []string{n.script(t, "cleancopy", clean+"./copied/mcp-''host stdio")}, 1},
		{"env -i of a link", []string{n.script(t, "cleanlink", clean+"./linked/mcp-''host stdio")}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			raw, err := json.Marshal(map[string]any{"servers": map[string]any{"inner": map[string]any{"command": c.command}}})
			require.NoError(t, err)
			n.config(t, "config/toolroom/toolroom.yaml", string(raw))
			state, message := n.state(t, "inner")
			require.Equal(t, "offline", state)
			require.Regexp(t, "starts itself|in an endless loop|is started by itself", message)
			require.Contains(t, message, "remove th", "what to do")
			require.Equal(t, c.starts, n.starts(t))
			require.Contains(t, n.run(t, "doctor"), "remove th")
			require.Equal(t, c.starts, n.starts(t))
			if c.starts == 0 {
				require.Contains(t, n.run(t, "config", "check"), "starts this host again")
			}
		})
	}
}

// Hosts with configurations of their own may follow each other, as long as
// they do not lead back.
func TestDifferentHostsInARow(t *testing.T) {
	n := newNest(t)
	n.config(t, "last", `{"servers":{"x":{"command":"fixture"}}}`)
	n.config(t, "inner", fmt.Sprintf(`{"servers":{"last":{"command":%q}}}`, n.script(t, "start-last", `exec "$host" stdio --config '`+n.dir+"/last'")))
	outer := n.config(t, "outer", fmt.Sprintf(`{"servers":{"inner":{"command":"mcp-host","args":["stdio","--config",%q]}}}`, n.dir+"/inner"))
	require.Contains(t, n.run(t, "call", "--config", outer, "inner__last__x__echo", `{"text":"through three"}`), "through three")
	require.Equal(t, 1, n.starts(t))

	// a → b → a
	a := n.config(t, "a", fmt.Sprintf(`{"servers":{"b":{"command":%q},"x":{"command":"fixture"}}}`, n.script(t, "start-b", `exec "$host" stdio --config '`+n.dir+"/b'")))
	n.config(t, "b", fmt.Sprintf(`{"servers":{"a":{"command":%q},"y":{"command":"fixture"}}}`, n.script(t, "start-a", `exec "$host" stdio --config '`+n.dir+"/a'")))
	tools := n.run(t, "tools", "--config", a)
	require.Contains(t, tools, "b__y__echo")
	require.NotContains(t, tools, "b__a__")
	require.Equal(t, 2, n.starts(t))

	// A new configuration each time: the depth ends it.
	n.script(t, "next", fmt.Sprintf(`c=$(mktemp '%[1]s/c.XXXXXX'); echo '{"servers":{"n":{"command":"%[1]s/next"}}}' > "$c"; exec "$host" stdio --config "$c"`, n.dir))
	first := n.config(t, "first", fmt.Sprintf(`{"servers":{"n":{"command":%q}}}`, n.dir+"/next"))
	n.run(t, "tools", "--config", first)
	require.LessOrEqual(t, n.starts(t), 4)
}

// A command is no server: it may run below a host that uses the same files,
// as in bash.
func TestACommandBelowAHost(t *testing.T) {
	n := newNest(t)
	n.config(t, "config/toolroom/toolroom.yaml", fmt.Sprintf(`{"servers":{"x":{"command":"fixture"},"shell":{"command":%q}}}`,
		n.script(t, "shell", `"$host" call x__echo text=below > '`+n.dir+"/out' 2>&1")))
	n.run(t, "servers", "test")
	out, err := os.ReadFile(n.dir + "/out")
	require.NoError(t, err)
	require.Contains(t, string(out), "below")
}

func TestAHostIsNoServerOfItselfOverHTTP(t *testing.T) {
	// Other programs take the ports of 127.0.0.1 at any time.
	pid := os.Getpid()
	own := fmt.Sprintf("127.%d.%d.%d", 1+pid>>16&127, pid>>8&255, 1|pid&255)
	l, err := net.Listen("tcp", own+":0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	dir := t.TempDir()
	config := filepath.Join(dir, "c.yaml")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, "servers:\n  own: {url: 'http://%s/mcp'}\n  x: {command: fixture}\n", address), 0o600))
	s := serve(t, "--listen", address, "--allow-host", own, "--config", config, "--state", filepath.Join(dir, "state"), "--no-token")
	status, text := s.post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	require.Equal(t, http.StatusOK, status, text)
	require.Contains(t, text, "x__echo")
	require.NotContains(t, text, "own__")
	out, _ := exec.Command("mcp-host", "servers", "--config", config, "--state", filepath.Join(dir, "state")).CombinedOutput() //nolint:errcheck // it is offline
	require.Contains(t, string(out), "configured as a server of itself")
}

// An entry that starts the host is not imported, and said to be left out.
func TestImportLeavesTheHostOut(t *testing.T) {
	n := newNest(t)
	file := n.config(t, "claude.json", fmt.Sprintf(`{"mcpServers":{
		"toolroom":{"command":"mcp-host","args":["stdio"]},
		"npx":{"command":"npx","args":["-y","@toolroom/mcp-host@1.2.3","stdio"]},
		"wrapped":{"command":%q},
		"other":{"command":"mcp-host","args":["stdio","--config","/srv/other.yaml"]},
		"files":{"command":"fixture"}}}`, n.script(t, "named", "exec /opt/bin/mcp-host stdio")))
	target := n.dir + "/config/toolroom/toolroom.yaml"
	out := n.run(t, "config", "import", file, "--write")
	for _, name := range []string{"toolroom", "npx", "wrapped"} {
		require.Regexp(t, "server "+name+": starts mcp-host itself", out)
	}
	text, err := os.ReadFile(target)
	require.NoError(t, err)
	require.Contains(t, string(text), "files:")
	require.Contains(t, string(text), "other:")
	for _, name := range []string{"toolroom:", "npx:", "wrapped:"} {
		require.NotContains(t, string(text), name)
	}
}
