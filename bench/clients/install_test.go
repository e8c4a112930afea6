//go:build oracle

package clients

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/bench/oracle"
)

// listing is a client whose command line lists its servers, and whether they
// answer.
type listing struct {
	id, answers string
	command     func(t *testing.T) []string
	env         []string
}

func listings() []listing {
	return []listing{
		{"claude-code", `toolroom: .*mcp-host stdio .*Connected`, func(t *testing.T) []string {
			return []string{filepath.Join(oracle.Module(t, "@anthropic-ai/claude-code-"+platform(t)), "claude")}
		}, []string{"DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "MCP_TIMEOUT=240000"}},
		{"codex", `toolroom\s+\S*mcp-host\s+stdio --root .*enabled`, func(t *testing.T) []string {
			programs, err := filepath.Glob(filepath.Join(oracle.Module(t, "codex-"+platform(t)), "vendor", "*", "bin", "codex"))
			require.NoError(t, err)
			require.Len(t, programs, 1)
			return programs
		}, nil},
		{"gemini", `toolroom: .*mcp-host stdio .*Connected`, func(t *testing.T) []string {
			return []string{oracle.Path(t, "node"), filepath.Join(oracle.Module(t, "@google/gemini-cli"), "bundle", "gemini.js")}
		}, []string{"GEMINI_CLI_TRUST_WORKSPACE=true"}},
		{"opencode", `(?s)toolroom.*connected.*mcp-host stdio`, func(t *testing.T) []string {
			return []string{filepath.Join(oracle.Module(t, "opencode-"+platform(t)), "bin", "opencode")}
		}, []string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1"}},
	}
}

// Every client reads what install writes, and reaches the host with it where its
// command line tries that. After uninstall, it lists no server, and the
// configuration is as before.
func TestClientsReadWhatInstallWrites(t *testing.T) {
	bin := binaries(t)
	for _, c := range listings() {
		t.Run(c.id, func(t *testing.T) {
			t.Parallel()
			home, root := t.TempDir(), t.TempDir()
			program := c.command(t)
			run := func(args ...string) string {
				t.Helper()
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				cmd := exec.CommandContext(ctx, args[0], args[1:]...)
				cmd.Dir = root
				path := bin + ":/usr/bin:/bin"
				if c.id == "claude-code" {
					path = filepath.Dir(program[0]) + ":" + path
				}
				cmd.Env = append([]string{"HOME=" + home, "PATH=" + path, "TERM=dumb", "NO_COLOR=1"}, c.env...)
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, "%v: %s", args, out)
				return string(out)
			}
			list := append(program, "mcp", "list")
			require.NotContains(t, run(list...), "toolroom")
			before := configurations(t, home)
			run(filepath.Join(bin, "mcp-host"), "install", c.id, "--root", root)
			require.Regexp(t, c.answers, run(list...))
			require.Contains(t, run(filepath.Join(bin, "mcp-host"), "status"), c.id)
			run(filepath.Join(bin, "mcp-host"), "uninstall", c.id)
			require.NotContains(t, run(list...), "toolroom")
			if c.id != "claude-code" { // which writes counters and caches into the file
				require.Equal(t, before, configurations(t, home))
			}
		})
	}
}

// configurations returns the contents of the files that install writes, by path.
func configurations(t *testing.T, home string) map[string]string {
	all := map[string]string{}
	for _, name := range []string{".codex/config.toml", ".gemini/settings.json", ".config/opencode/opencode.json", ".config/opencode/opencode.jsonc", ".config/opencode/config.json"} {
		text, err := os.ReadFile(filepath.Join(home, name))
		if err == nil {
			all[name] = string(text)
		}
		if _, err := os.Stat(filepath.Join(home, name+".before-toolroom")); err == nil {
			t.Errorf("%s.before-toolroom is left", name)
		}
	}
	return all
}
