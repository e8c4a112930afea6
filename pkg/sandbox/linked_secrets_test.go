package sandbox_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// TestLinkedStores: what a link of a credential store leads to is a secret by its own
// name as well, for reading, writing, listing and walking (F06).
func TestLinkedStores(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need rights there")
	}
	for name, c := range map[string]struct{ file, link, target, dir string }{
		"a store":                {"root/dotfiles/aws/credentials", "home/.aws", "../root/dotfiles/aws", "dotfiles/aws"},
		"a key in a store":       {"root/keys/k", "home/.ssh/id_rsa", "../../root/keys/k", ""},
		"a linked .config":       {"root/config/gh/hosts.yml", "home/.config", "../root/config", "config/gh"},
		"a link in .config":      {"root/gh/hosts.yml", "home/.config/gh", "../../root/gh", "gh"},
		"a link at a root's top": {"root/dotfiles/netrc", "root/.netrc", "dotfiles/netrc", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			require.NoError(t, err)
			write := func(name, text string) {
				require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
			}
			write(c.file, "CREDENTIAL\n")
			write("root/plain/credentials", "nothing\n")
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, c.link)), 0o755))
			require.NoError(t, os.Symlink(c.target, filepath.Join(dir, c.link)))
			open := func(allow ...string) *sandbox.FS {
				fs, err := sandbox.New(sandbox.Config{Roots: []string{filepath.Join(dir, "root")}, AllowPaths: allow, Getenv: func(name string) string {
					if name == "HOME" {
						return filepath.Join(dir, "home")
					}
					return ""
				}}).FS(context.Background())
				require.NoError(t, err)
				return fs
			}
			fs, file := open(), filepath.Join(dir, c.file)
			_, err = fs.Open(file)
			require.Equal(t, toolerr.DeniedPath, toolerr.CodeOf(err), "%v", err)
			_, err = fs.OpenForWrite(file)
			require.Equal(t, toolerr.DeniedPath, toolerr.CodeOf(err), "%v", err)
			require.True(t, fs.Denied(file))
			if c.dir != "" {
				_, err = fs.OpenDir(c.dir)
				require.Equal(t, toolerr.DeniedPath, toolerr.CodeOf(err), "%v", err)
			}
			require.Empty(t, walked(t, fs, filepath.Join(dir, "root")))
			plain, err := fs.Open("plain/credentials")
			require.NoError(t, err)
			require.NoError(t, plain.Close())
			allowed, err := open(filepath.Base(c.file)).Open(file)
			require.NoError(t, err)
			require.NoError(t, allowed.Close())
		})
	}
}

// walked reads all files that a walk gets at, and lists those with a credential.
func walked(t *testing.T, fs *sandbox.FS, root string) (read []string) {
	top, err := fs.OpenDir(root)
	require.NoError(t, err)
	var walk func(d *sandbox.Dir)
	walk = func(d *sandbox.Dir) {
		defer d.Close()
		entries, err := d.ReadAll(nil)
		require.NoError(t, err)
		for _, e := range entries {
			if text, _, err := d.ReadFile(e.Name, nil, 1<<20); err == nil && string(text) == "CREDENTIAL\n" {
				read = append(read, filepath.Join(d.Path(), e.Name))
			}
			if child, err := d.OpenDir(e.Name); err == nil {
				walk(child)
			} else if fs.DeniedIn(d.Path(), e.Name) {
				require.True(t, e.MaybeSecret, e.Name)
			}
		}
	}
	walk(top)
	return read
}
