package sandbox_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// outsideMark is in every file outside the roots: a test that reads it has
// found a way out.
const outsideMark = "OUTSIDE-7f3a91"

// tree is root/ and second/, the two roots, among directories that are none.
type tree struct{ base, root, second string }

func newTree(t *testing.T) tree {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	return newTreeIn(t, base)
}

func newTreeIn(t *testing.T, base string) tree {
	t.Helper()
	tr := tree{base: base, root: filepath.Join(base, "root"), second: filepath.Join(base, "second")}
	for name, content := range map[string]string{
		"root/a.txt":              "a",
		"root/dir/b.txt":          "b",
		"root/dir/sub/c.txt":      "c",
		"root/..dots/d.txt":       "d",
		"root/...":                "dots",
		"root/~":                  "tilde",
		"root/%2e%2e/e.txt":       "encoded",
		"second/s.txt":            "s",
		"root-evil/secret.txt":    outsideMark,
		"outside/secret.txt":      outsideMark,
		"outside/dir/secret.txt":  outsideMark,
		"outside/.ssh/id_rsa":     outsideMark,
		"outside/root/secret.txt": outsideMark,
	} {
		tr.write(t, name, content)
	}
	return tr
}

// memoryDir returns a temporary directory, in memory if the machine has such a
// file system, for tests that make and rename many files.
func memoryDir(t *testing.T) string {
	t.Helper()
	if dir, err := os.MkdirTemp("/dev/shm", "sandbox"); err == nil {
		t.Cleanup(func() { os.RemoveAll(dir) })
		if fs, err := sandbox.New(sandbox.Config{Roots: []string{dir}, Getenv: noEnv}).FS(context.Background()); err == nil {
			fs.Close()
			return dir
		}
	}
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	return base
}

// write makes a file, and the directories above it, beneath the base.
func (tr tree) write(t *testing.T, name, content string) {
	t.Helper()
	path := filepath.Join(tr.base, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
}

// link makes a symbolic link beneath the base.
func (tr tree) link(t *testing.T, target, name string) {
	t.Helper()
	path := filepath.Join(tr.base, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.Symlink(target, path))
}

// eachWay runs a test over the kernel's resolver and over the portable one.
func eachWay(t *testing.T, test func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox)) {
	t.Helper()
	t.Run("fastest", func(t *testing.T) { test(t, sandbox.New) })
	t.Run("portable", func(t *testing.T) { test(t, sandbox.NewPortable) })
}

// noEnv is an environment without any variable.
func noEnv(string) string { return "" }

// open makes the FS of roots, and fails the test if it cannot.
func open(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox, roots ...string) *sandbox.FS {
	t.Helper()
	fs, err := box(sandbox.Config{Roots: roots, Getenv: noEnv}).FS(context.Background())
	require.NoError(t, err)
	return fs
}

// read returns the content of a file opened through the sandbox.
func read(t *testing.T, fs *sandbox.FS, name string) (string, error) {
	t.Helper()
	f, err := fs.Open(name)
	if err != nil {
		require.Nil(t, f)
		return "", err
	}
	defer f.Close()
	content, err := io.ReadAll(f)
	require.NoError(t, err)
	require.NotContains(t, string(content), outsideMark, "ESCAPE through %q", name)
	return string(content), nil
}

// requireCode checks an error's code and that its text leaks nothing.
func requireCode(t *testing.T, want toolerr.Code, err error) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, want, toolerr.CodeOf(err), "%v", err)
	require.NotContains(t, err.Error(), outsideMark)
	require.Equal(t, err.Error(), strings.ToValidUTF8(err.Error(), ""))
}

// put replaces a file through the sandbox.
func put(fs *sandbox.FS, name, content string, o sandbox.ReplaceOptions) (*sandbox.Written, error) {
	t, err := fs.OpenForWrite(name)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	return t.Replace(context.Background(), sandbox.Bytes([]byte(content)), o)
}

// onDisk is the content of a file beneath the base.
func (tr tree) onDisk(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(tr.base, name))
	require.NoError(t, err)
	return string(content)
}
