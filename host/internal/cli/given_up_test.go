package cli_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/cli"
)

// Who gives a call up is told so with a code, in words and as JSON.
func TestACallThatIsGivenUp(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	file := writeConfig(t, map[string][]string{"fix": {"-era", "legacy"}})
	for _, c := range []struct{ flag, out, err string }{
		{"--json", `{"content":[{"type":"text","text":"CANCELLED: cancelled; the call may have taken effect"}],"isError":true,"_meta":{"toolroom/code":"CANCELLED"}}` + "\n", ""},
		{"--json=false", "", "mcp-host: cancelled; the call may have taken effect\n"},
	} {
		state := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			defer cancel()
			for ctx.Err() == nil && !begun(state) {
				time.Sleep(5 * time.Millisecond)
			}
		}()
		var out, said bytes.Buffer
		status := cli.Run(ctx, []string{"call", "fix__hang", c.flag, "--config", file, "--state", state}, strings.NewReader(""), &out, &said)
		require.Equal(t, 1, status)
		require.Equal(t, c.out, out.String())
		require.Equal(t, c.err, said.String())
	}
}

// begun reports whether the audit log of a state directory has a call that has begun.
func begun(state string) bool {
	files, _ := filepath.Glob(filepath.Join(state, "audit", "*")) //nolint:errcheck // the pattern is one
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && bytes.Contains(text, []byte("tool.call.started")) {
			return true
		}
	}
	return false
}
