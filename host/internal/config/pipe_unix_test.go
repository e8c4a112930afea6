//go:build unix

package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
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

// Nor does one that appears there later stop the reload of the user's own.
func TestAPipeStopsNoReload(t *testing.T) {
	xdg, cwd := t.TempDir(), t.TempDir()
	t.Chdir(cwd)
	file := filepath.Join(xdg, "toolroom", "toolroom.yaml")
	write(t, file, "servers: {a: {command: ./a}}")
	w := watch(t, "", func() (config.Config, error) {
		return config.Load(config.Flags{State: xdg}, xdg, "1", env("XDG_CONFIG_HOME", xdg), nil)
	})
	require.NoError(t, syscall.Mkfifo("toolroom.json", 0o600))
	replace(t, file, "servers: {b: {command: ./b}}")
	require.Equal(t, []string{"b"}, w.next().Added)
}

// Nor does a file that becomes one while it is watched.
func TestAFileThatBecomesAPipeIsNotWaitedFor(t *testing.T) {
	file := filepath.Join(t.TempDir(), "toolroom.yaml")
	write(t, file, "servers: {a: {command: ./a}}")
	w := watch(t, file, nil)
	require.NoError(t, syscall.Mkfifo(file+"~", 0o600))
	require.NoError(t, os.Rename(file+"~", file))
	require.ErrorContains(t, w.next().Err, "is no longer a regular file")
	replace(t, file, "servers: {b: {command: ./b}}")
	require.Equal(t, []string{"b"}, w.next().Added)
}

// Nor does a pipe in place of a file that a command reads.
func TestAPipeIsNotWaitedFor(t *testing.T) {
	file := filepath.Join(t.TempDir(), "toolroom.yaml")
	require.NoError(t, syscall.Mkfifo(file, 0o600))
	_, err := config.Import(file, env())
	require.ErrorContains(t, err, "is not a regular file")
	_, err = config.PlanMigration(file, dialect.Migrate)
	require.ErrorContains(t, err, "is not a regular file")
	_, err = config.ReadRegular(file)
	require.ErrorContains(t, err, "is not a regular file")
	_, _, err = (&config.Imported{}).Write(file)
	require.ErrorContains(t, err, "is not a regular file")
}

// The pipes of a shell are read: somebody writes to them.
func TestImportReadsAPipeOfTheShell(t *testing.T) {
	from, to, err := os.Pipe()
	require.NoError(t, err)
	defer from.Close()
	_, err = to.WriteString(`{"mcpServers": {"x": {"command": "ls"}}}`)
	require.NoError(t, err)
	require.NoError(t, to.Close())
	found, err := config.Import(fmt.Sprintf("/dev/fd/%d", from.Fd()), env())
	require.NoError(t, err)
	require.Len(t, found.Servers, 1)
}
