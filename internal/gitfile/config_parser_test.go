package gitfile_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/gitfile"
)

// configs returns configuration files: those that make git run nothing, and
// those that make it run something or that it cannot parse.
func configs(t testing.TB) (harmless, dangerous []string) {
	raw, err := os.ReadFile(filepath.Join("testdata", "configs.json"))
	require.NoError(t, err)
	var files struct{ Harmless, Dangerous []string }
	require.NoError(t, json.Unmarshal(raw, &files))
	require.NotEmpty(t, files.Harmless)
	require.NotEmpty(t, files.Dangerous)
	return files.Harmless, files.Dangerous
}

func TestGitRuns(t *testing.T) {
	harmless, dangerous := configs(t)
	for _, config := range harmless {
		settings, ok := gitfile.DangerousSettings([]byte(config))
		require.True(t, ok, config)
		require.Empty(t, settings, config)
	}
	for _, config := range dangerous {
		settings, ok := gitfile.DangerousSettings([]byte(config))
		require.True(t, len(settings) > 0 || !ok, config)
	}
	for _, config := range []string{"[core", "[core]\n\tx = \"y\n", "[core]\n\t= x", "[core]\nx = \\q\n", "[core]\n\x00", "[a \"b\n\"]\n", "[core]\nx y = z"} {
		_, ok := gitfile.DangerousSettings([]byte(config))
		require.False(t, ok, config)
	}
}
