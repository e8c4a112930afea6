package core

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
)

func TestServersThatKeepStateAreNotShared(t *testing.T) {
	yes, no := true, false
	server := func(scope string, share *bool, command ...string) config.Server {
		return config.Server{Config: upstream.Config{Name: "s", Command: command}, Spec: dialect.Server{Scope: scope, Share: share}}
	}
	for _, c := range []struct {
		server config.Server
		shared bool
	}{
		{server("", nil, "/usr/bin/npx", "-y", "@modelcontextprotocol/server-memory"), true},
		{server("shared", nil, "/usr/bin/node", "report.js"), true},
		{server("session", nil, "/usr/bin/node", "x.js"), false},
		{server("call", nil, "/usr/bin/node", "x.js"), false},
		{server("", nil, "/usr/bin/npx", "@playwright/mcp@latest"), false},
		{server("", nil, "/usr/bin/npx", "chrome-devtools-mcp"), false},
		{server("", nil, "/usr/bin/uvx", "mcp-python-repl"), false},
		{server("", nil, "/opt/mcp-bash", "--root=/x"), false},
		{server("", nil, "/opt/mcp-grep", "--root=/x"), true},
		{server("", &yes, "/usr/bin/npx", "@playwright/mcp@latest"), true},
		{server("", &no, "/usr/bin/npx", "@modelcontextprotocol/server-memory"), false},
	} {
		a := &App{}
		a.Config.State = t.TempDir()
		cfg := c.server.Config
		a.setSharing(&cfg, c.server, config.Config{Share: &yes})
		require.Equal(t, c.shared, cfg.Share != nil, c.server.Command)
		cfg = c.server.Config
		a.setSharing(&cfg, c.server, config.Config{Share: &no})
		require.Nil(t, cfg.Share, "share_servers is off")
	}
}

// Without share_servers, only the servers are shared that are known to keep nothing for a client, and those
// whose entry says so.
func TestServersThatAreSharedWithoutASetting(t *testing.T) {
	if !canCheckPeers {
		t.Skip("no server is shared here")
	}
	yes, no := true, false
	modules := filepath.Join(t.TempDir(), "node_modules")
	install := func(parts ...string) string {
		file := filepath.Join(append([]string{modules}, parts...)...)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, nil, 0o700))
		return file
	}
	known, fork := install("@modelcontextprotocol", "server-memory", "dist", "index.js"), install("server-memory", "index.js")
	nested := install("@modelcontextprotocol", "server-memory", "node_modules", "zod", "index.js")
	link := filepath.Join(modules, "mcp-server-memory")
	require.NoError(t, os.Symlink(known, link))
	const memory = "@modelcontextprotocol/server-memory"
	for _, c := range []struct {
		command []string
		shared  bool
	}{
		{[]string{"/usr/bin/npx", "-y", memory}, true},
		{[]string{"/usr/bin/npx", "--yes", "--", memory + "@latest", "more"}, true},
		{[]string{"/usr/bin/npx", memory + "@^2026.8.31"}, true},
		{[]string{"/usr/bin/bunx", memory}, true},
		{[]string{"/usr/bin/npm", "exec", "-y", memory}, true},
		{[]string{"/usr/bin/pnpm", "dlx", memory}, true},
		{[]string{"/usr/bin/uvx", "mcp-server-time==2026.1.1", "--local-timezone=UTC"}, true},
		{[]string{"/usr/bin/uv", "tool", "run", "mcp-server-time"}, true},
		{[]string{"/usr/bin/node", known}, true},
		{[]string{link}, true},

		{[]string{"/usr/bin/npx", "-y", "my-server"}, false},
		{[]string{"/usr/bin/npx", "-y", "@other/server-memory"}, false},
		{[]string{"/usr/bin/npx", "-y", memory + "-of-mine"}, false},
		{[]string{"/usr/bin/npx", "-y", memory + "@npm:another@1"}, false},
		{[]string{"/usr/bin/npx", "-y", memory + "@file:../mine"}, false},
		{[]string{"/usr/bin/npx", "-p", memory, "another"}, false},
		{[]string{"/usr/bin/npx", "--registry=https://mine.example", memory}, false},
		{[]string{"/usr/bin/npm", "install", memory}, false},
		{[]string{"/usr/bin/npx"}, false},
		{[]string{"/usr/bin/uvx", "--from", "another", "mcp-server-time"}, false},
		{[]string{"/usr/bin/node", "--require", "x.js", known}, false},
		{[]string{"/usr/bin/node", fork}, false},
		{[]string{"/usr/bin/node", nested}, false},
		{[]string{"/usr/bin/node", "server.js"}, false},
		{[]string{"/usr/bin/node", filepath.Join(modules, "missing", "index.js")}, false},
		{[]string{"/bin/sh", "-c", "npx " + memory}, false},
		{[]string{"/opt/mcp-grep", "--root=/x"}, false},
	} {
		server := config.Server{Config: upstream.Config{Name: "s", Command: c.command}}
		shared := func(scope string, share *bool) bool {
			server.Spec = dialect.Server{Scope: scope, Share: share}
			return isShared(server, config.Config{})
		}
		require.Equal(t, c.shared, shared("", nil), c.command)
		require.True(t, shared("", &yes), c.command)
		require.False(t, shared("", &no), c.command)
		require.True(t, shared("shared", nil), c.command)
		require.False(t, shared("session", nil), c.command)
		require.False(t, shared("call", nil), c.command)
	}
	browser := config.Server{Config: upstream.Config{Command: []string{"/usr/bin/npx", "@playwright/mcp"}}, Spec: dialect.Server{Scope: "shared"}}
	require.False(t, isShared(browser, config.Config{}))
	bundled := config.Server{Config: upstream.Config{Command: []string{"/opt/mcp-grep"}}, Bundled: true}
	require.False(t, isShared(bundled, config.Config{}))
}

func TestSharedServersGetNoSessionVariables(t *testing.T) {
	env := []string{"HOME=/h", "TERM=xterm", "SHLVL=2", "SSH_AUTH_SOCK=/s", "SSH_TTY=/dev/pts/1", "CLAUDE_PROJECT_DIR=/p", "CLAUDE_CODE_SSE_PORT=1", "TERM_PROGRAM=x", "API_TOKEN=t"}
	require.Equal(t, []string{"HOME=/h", "SSH_AUTH_SOCK=/s", "CLAUDE_PROJECT_DIR=/p", "API_TOKEN=t"}, withoutSessionVariables(env, config.Server{}))
	configured := config.Server{Spec: dialect.Server{Env: map[string]secret.Text{"TERM": "dumb"}}}
	require.Equal(t, []string{"TERM=dumb"}, withoutSessionVariables([]string{"TERM=dumb", "SHLVL=1"}, configured))
}
