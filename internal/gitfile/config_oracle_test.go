//go:build oracle

package gitfile_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/bench/oracle"
	"github.com/toolroom-mcp/toolroom/internal/gitfile"
)

// Whatever git finds in a file, the parser finds too.
func TestGitRunsReadsAsGitDoes(t *testing.T) {
	harmless, dangerous := configs(t)
	git := oracle.Path(t, "git")
	for i, config := range slices.Concat(harmless, dangerous) {
		path := filepath.Join(t.TempDir(), "config")
		require.NoError(t, os.WriteFile(path, []byte(config), 0o644))
		cmd := exec.Command(git, "config", "--file", path, "--no-includes", "--list", "--null")
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull)
		out, err := cmd.Output()
		mine, ok := gitfile.AllSettings([]byte(config))
		require.Equal(t, err == nil, ok, "%d: %q", i, config)
		if err != nil {
			continue
		}
		var theirs []string
		for entry := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
			if entry != "" {
				name, value, _ := strings.Cut(entry, "\n")
				theirs = append(theirs, name+"="+value)
			}
		}
		require.Equal(t, theirs, mine, "%q", config)
	}
}
