//go:build unix

package config_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/config"
)

// A pipe in the working directory keeps nobody waiting.
func TestAPipeIsNoConfiguration(t *testing.T) {
	cwd := t.TempDir()
	t.Chdir(cwd)
	require.NoError(t, syscall.Mkfifo("toolroom.yaml", 0o600))
	c, err := config.Load(config.Flags{State: cwd}, cwd, "1", env(), nil)
	require.NoError(t, err)
	require.Contains(t, c.Notices[0], "is not a regular file")
}
