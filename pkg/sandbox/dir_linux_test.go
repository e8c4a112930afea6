package sandbox_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A fifo without a writer would block a plain open for ever.
func TestDirRefusesSpecialFiles(t *testing.T) {
	root, err := os.MkdirTemp("", "dir") // short: a socket's path is limited
	require.NoError(t, err)
	defer os.RemoveAll(root)
	require.NoError(t, unix.Mkfifo(filepath.Join(root, "fifo"), 0o600))
	listener, err := net.Listen("unix", filepath.Join(root, "socket"))
	require.NoError(t, err)
	defer listener.Close()
	d := openDir(t, root)
	for _, name := range []string{"fifo", "socket"} {
		_, _, err := d.Open(name)
		require.Equal(t, toolerr.SpecialFile, toolerr.CodeOf(err), name)
		_, _, err = d.ReadFile(name, nil, 100)
		require.Equal(t, toolerr.SpecialFile, toolerr.CodeOf(err), name)
		_, err = d.OpenDir(name)
		require.Equal(t, toolerr.NotADirectory, toolerr.CodeOf(err), name)
	}
}

// proc and the like are not walked into, wherever they are mounted.
func TestDirRefusesPseudoFileSystems(t *testing.T) {
	box, err := sandbox.New(sandbox.Config{Roots: []string{"/"}, AllowRootDir: true}).FS(context.Background())
	require.NoError(t, err)
	d, err := box.OpenDir(".")
	require.NoError(t, err)
	defer d.Close()
	for _, open := range []func(string) (*sandbox.Dir, error){d.OpenDir, d.OpenDirCached} {
		_, err = open("proc")
		require.Equal(t, toolerr.SpecialFile, toolerr.CodeOf(err))
	}
	tmp, err := d.OpenDir("usr")
	require.NoError(t, err)
	require.Equal(t, "/usr", tmp.Path())
	require.NoError(t, tmp.Close())
}
