package core

import (
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
		a.setSharing(&cfg, c.server, config.Config{Share: true})
		require.Equal(t, c.shared, cfg.Share != nil, c.server.Command)
		cfg = c.server.Config
		a.setSharing(&cfg, c.server, config.Config{})
		require.Nil(t, cfg.Share, "share_servers is off")
	}
}

func TestSharedServersGetNoSessionVariables(t *testing.T) {
	env := []string{"HOME=/h", "TERM=xterm", "SHLVL=2", "SSH_AUTH_SOCK=/s", "SSH_TTY=/dev/pts/1", "CLAUDE_PROJECT_DIR=/p", "CLAUDE_CODE_SSE_PORT=1", "TERM_PROGRAM=x", "API_TOKEN=t"}
	require.Equal(t, []string{"HOME=/h", "SSH_AUTH_SOCK=/s", "CLAUDE_PROJECT_DIR=/p", "API_TOKEN=t"}, withoutSessionVariables(env, config.Server{}))
	configured := config.Server{Spec: dialect.Server{Env: map[string]secret.Text{"TERM": "dumb"}}}
	require.Equal(t, []string{"TERM=dumb"}, withoutSessionVariables([]string{"TERM=dumb", "SHLVL=1"}, configured))
}
