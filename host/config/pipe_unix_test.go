//go:build unix

package config_test

import (
	"os"
	"path/filepath"
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

// Nor does a file that becomes one while it is watched.
func TestAFileThatBecomesAPipeIsNotWaitedFor(t *testing.T) {
	file := filepath.Join(t.TempDir(), "toolroom.yaml")
	write(t, file, "servers: {a: {command: ./a}}")
	w := watch(t, file, nil)
	require.NoError(t, syscall.Mkfifo(file+"~", 0o600))
	require.NoError(t, os.Rename(file+"~", file))
	require.ErrorContains(t, w.next().Err, "is not a regular file any more")
	replace(t, file, "servers: {b: {command: ./b}}")
	require.Equal(t, []string{"b"}, w.next().Added)
}
