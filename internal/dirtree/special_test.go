//go:build unix

package dirtree_test

import (
	"net"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/dirtree"
)

func TestSpecialFilesHaveTheirType(t *testing.T) {
	root := tree(t, map[string]string{"a": ""})
	require.NoError(t, syscall.Mkfifo(filepath.Join(root, "pipe"), 0o644))
	t.Chdir(root) // the path of a socket must be short
	l, err := net.Listen("unix", "sock")
	require.NoError(t, err)
	defer l.Close()
	require.Equal(t, lines(".: 3 entries, depth 2", "a  [0]", "pipe  (fifo)", "sock  (socket)"), text(t, root, "", dirtree.Options{}))
	require.Equal(t, lines("pipe: fifo", "pipe  (fifo)"), text(t, root, "pipe", dirtree.Options{}))
}
