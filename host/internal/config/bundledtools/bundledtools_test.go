package bundledtools_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/config/bundledtools"
)

func TestSiblingsAreTheFixedNamesThatAreRunnable(t *testing.T) {
	dir := t.TempDir()
	suffix := ""
	if runtime.GOOS == "windows" {
		suffix = ".exe"
	}
	write := func(name string, mode os.FileMode) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+suffix), []byte("x"), mode))
	}
	write("mcp-view", 0o755)
	write("mcp-ls", 0o755)
	write("mcp-evil", 0o755) // not one of ours: never run
	require.NoError(t, os.Mkdir(filepath.Join(dir, "mcp-bash"+suffix), 0o755))
	if runtime.GOOS != "windows" {
		write("mcp-glob", 0o644)
		require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, "mcp-edit")))
	}

	found, missing := bundledtools.Siblings(dir)
	require.Equal(t, []bundledtools.Tool{
		{Name: "ls", Path: filepath.Join(dir, "mcp-ls"+suffix)},
		{Name: "view", Path: filepath.Join(dir, "mcp-view"+suffix)},
	}, found)
	require.Equal(t, []string{"glob", "grep", "edit", "replace", "bash", "dispatch_agent"}, missing)
}

func TestSiblingsOfAMissingDirectoryAreNone(t *testing.T) {
	found, missing := bundledtools.Siblings(filepath.Join(t.TempDir(), "no"))
	require.Empty(t, found)
	require.Len(t, missing, len(bundledtools.Names()))
}

func TestInANamedDirectoryAllAreTools(t *testing.T) {
	dir := t.TempDir()
	suffix := ""
	if runtime.GOOS == "windows" {
		suffix = ".exe"
	}
	for name, mode := range map[string]os.FileMode{"mcp-b": 0o755, "mcp-a": 0o755, "mcp-": 0o755, "mcp-host": 0o755, "other": 0o755} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+suffix), nil, mode))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "mcp-dir"+suffix), 0o755))
	found, err := bundledtools.In(dir)
	require.NoError(t, err)
	require.Equal(t, []bundledtools.Tool{
		{Name: "a", Path: filepath.Join(dir, "mcp-a"+suffix)},
		{Name: "b", Path: filepath.Join(dir, "mcp-b"+suffix)},
	}, found)
	_, err = bundledtools.In(filepath.Join(dir, "none"))
	require.Error(t, err)
}

func TestOthersAreNeitherBundledNorTheHost(t *testing.T) {
	dir := t.TempDir()
	suffix := ""
	if runtime.GOOS == "windows" {
		suffix = ".exe"
	}
	for _, name := range []string{"mcp-ls", "mcp-host", "mcp-wordcount", "mcp-dispatch_agent", "wordcount"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+suffix), nil, 0o755)) //nolint:gosec // a program
	}
	require.Equal(t, []bundledtools.Tool{{Name: "wordcount", Path: filepath.Join(dir, "mcp-wordcount"+suffix)}}, bundledtools.Others(dir))
	require.Empty(t, bundledtools.Others(filepath.Join(dir, "none")))
}
