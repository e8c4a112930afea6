package sandbox_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// TestLinkedSettings: values are masked in the file that a name of settings leads to,
// and a file that a name of a credential store leads to is refused, under every name.
func TestLinkedSettings(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need rights there")
	}
	for name, c := range map[string]struct {
		file   string // in the place
		link   func(old, name string) error
		links  [][2]string // name and target
		opened []string    // relative to the root
		denied bool
	}{
		"a link of a home":        {"root/dotfiles/npmrc", os.Symlink, [][2]string{{"home/.npmrc", "../root/dotfiles/npmrc"}}, []string{"dotfiles/npmrc"}, false},
		"at a root's top":         {"root/conf/env", os.Symlink, [][2]string{{"root/.env", "conf/env"}}, []string{"conf/env", ".env"}, false},
		"deeper in a root":        {"root/conf/env", os.Symlink, [][2]string{{"root/a/b/.env.local", "../../conf/env"}}, []string{"conf/env", "a/b/.env.local"}, false},
		"a chain":                 {"root/4", os.Symlink, [][2]string{{"root/.env", "0"}, {"root/0", "1"}, {"root/1", "2"}, {"root/2", "3"}, {"root/3", "4"}}, []string{"0", "2", "4"}, false},
		"through a directory":     {"root/dotfiles/npmrc", os.Symlink, [][2]string{{"home/.npmrc", "d/npmrc"}, {"home/d", "../root/dotfiles"}}, []string{"dotfiles/npmrc"}, false},
		"to such a link":          {"root/1/2/3/4/5/6/x", os.Symlink, [][2]string{{"root/1/2/3/4/5/6/.env", "x"}, {"root/y", "1/2/3/4/5/6/.env"}}, []string{"y"}, false},
		"to a link of a secret":   {"root/1/2/3/4/5/6/x", os.Symlink, [][2]string{{"root/1/2/3/4/5/6/.netrc", "x"}, {"root/y", "1/2/3/4/5/6/.netrc"}}, []string{"y"}, true},
		"a hard link":             {"root/a/x", os.Link, [][2]string{{"root/.env", "root/a/x"}}, []string{"a/x"}, false},
		"a hard link of settings": {"root/a/x", os.Link, [][2]string{{"root/.vscode/.env", "root/a/x"}}, []string{"a/x"}, false},
		"of a repository's hooks": {"root/a/x", os.Link, [][2]string{{"root/b/.git/hooks/.env", "root/a/x"}}, []string{"a/x"}, false},
		"of a hidden directory":   {"root/a/x", os.Link, [][2]string{{"root/b/.docker/sub/.env", "root/a/x"}}, []string{"a/x"}, false},
		"a link of settings":      {"root/conf/env", os.Symlink, [][2]string{{"root/b/.devcontainer/.env", "../../conf/env"}}, []string{"conf/env", "b/.devcontainer/.env"}, false},
		"a store of settings":     {"root/conf/k", os.Symlink, [][2]string{{"root/.zed/.netrc", "../conf/k"}}, []string{"conf/k"}, true},
		"a hard link of a home":   {"root/a/x", os.Link, [][2]string{{"home/.npmrc", "root/a/x"}}, []string{"a/x"}, false},
		"a hard link, denied":     {"root/a/x", os.Link, [][2]string{{"home/.netrc", "root/a/x"}}, []string{"a/x"}, true},
		"deep in a store":         {"root/k", os.Symlink, [][2]string{{"home/.ssh/a/b/c/d/e/f/k", "../../../../../../../../root/k"}}, []string{"k"}, true},
		"a denied link, deeper":   {"root/k", os.Symlink, [][2]string{{"root/a/b/.netrc", "../../k"}}, []string{"k"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
				dir, err := filepath.EvalSymlinks(t.TempDir())
				require.NoError(t, err)
				file := filepath.Join(dir, c.file)
				for _, path := range []string{file, filepath.Join(dir, "root/plain/x")} {
					require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
					require.NoError(t, os.WriteFile(path, []byte("CREDENTIAL\n"), 0o644))
				}
				for _, l := range c.links {
					link, target := filepath.Join(dir, l[0]), l[1]
					require.NoError(t, os.MkdirAll(filepath.Dir(link), 0o755))
					if strings.HasPrefix(target, "root/") { // a hard link
						target = filepath.Join(dir, target)
					}
					require.NoError(t, c.link(target, link))
				}
				fs, err := box(sandbox.Config{Roots: []string{filepath.Join(dir, "root")}, Getenv: func(name string) string {
					return map[string]string{"HOME": filepath.Join(dir, "home")}[name]
				}}).FS(t.Context())
				require.NoError(t, err)
				for _, name := range c.opened {
					f, err := fs.Open(name)
					if c.denied {
						require.Equal(t, toolerr.DeniedPath, toolerr.CodeOf(err), "%s: %v", name, err)
					} else {
						require.NoError(t, err, name)
						require.True(t, f.Masked, name)
						require.NoError(t, f.Close())
					}
					target, err := fs.OpenForWrite(name)
					if err == nil {
						f, err = target.Open()
						require.Equal(t, c.denied, err != nil, "%s: %v", name, err)
						if err == nil {
							require.True(t, f.Masked, name)
							require.NoError(t, f.Close())
						}
						require.NoError(t, target.Close())
					}
				}
				plain, err := fs.Open("plain/x")
				require.NoError(t, err)
				require.False(t, plain.Masked)
				require.NoError(t, plain.Close())
				if c.denied && name != "to a link of a secret" {
					require.Equal(t, []string{filepath.Join(dir, "root/plain/x")}, walked(t, fs, filepath.Join(dir, "root")))
				}
			})
		})
	}
}
