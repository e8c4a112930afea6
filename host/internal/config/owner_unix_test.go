//go:build unix

package config_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
)

// With sudo, root edits a file of the user, who must be able to read it afterwards.
func TestOwnerOfReplacedFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "toolroom.yaml")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	if err := os.Chown(file, 1234, 1235); err != nil {
		t.Skipf("only root can give files away: %v", err)
	}
	for _, write := range []func(string, []byte) error{config.EditFile, config.ReplaceFile} {
		require.NoError(t, write(file, []byte("a")))
		info, err := os.Stat(file)
		require.NoError(t, err)
		stat := info.Sys().(*syscall.Stat_t)
		require.Equal(t, []uint32{1234, 1235}, []uint32{stat.Uid, stat.Gid})
	}
}
