package config_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
)

// A configuration that other users read, such as /etc/toolroom.yaml, stays readable. A file that
// may get secrets does not.
func TestPermissionsOfReplacedFiles(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the system has no such permissions")
	}
	file := filepath.Join(t.TempDir(), "toolroom.yaml")
	mode := func() os.FileMode {
		info, err := os.Stat(file)
		require.NoError(t, err)
		return info.Mode().Perm()
	}
	require.NoError(t, config.EditFile(file, []byte("a")))
	require.Equal(t, os.FileMode(0o600), mode(), "a new file")
	require.NoError(t, os.Chmod(file, 0o664))
	require.NoError(t, config.EditFile(file, []byte("b")))
	require.Equal(t, os.FileMode(0o664), mode())
	require.NoError(t, config.ReplaceFile(file, []byte("c")))
	require.Equal(t, os.FileMode(0o600), mode())
}
