package audit_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/audit"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/stagetest"
)

// The log uses the list of names of every other redaction. The session of
// bash is a name that the model chooses, that of other tools may open one.
func TestCredentialsStayOutOfTheLog(t *testing.T) {
	const args = `{"oauth":"s1","session":"main","clientSecret":"s2","X-Api-Key":"s3","Set-Cookie":"s4","sessionId":"s5","max_tokens":7,"command":"ls"}`
	for _, c := range []struct{ server, tool, session string }{{"web", "fetch", "***"}, {"web", "bash", "***"}, {"bash", "bash", "main"}} {
		cfg := audit.Config{Dir: filepath.Join(t.TempDir(), "audit")}
		l := audit.New(cfg, audit.NewFiles(cfg))
		req := stagetest.Request("a", args)
		req.Tool = &call.Tool{Name: c.tool, Server: c.server, Original: c.tool}
		_, err := l.Stage(answer)(t.Context(), req)
		require.NoError(t, err)
		require.NoError(t, l.Close())
		require.JSONEq(t, `{"oauth":"***","session":"`+c.session+`","clientSecret":"***","X-Api-Key":"***","Set-Cookie":"***","sessionId":"***","max_tokens":7,"command":"ls"}`,
			string(events(t, cfg.Dir)[0].Args))
	}
}
