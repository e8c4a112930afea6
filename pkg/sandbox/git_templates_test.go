package sandbox_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// File tools do not write what git copies into the user's new repositories.
func TestTemplatesOfGitAreProtected(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		home := filepath.Join(tr.base, "home")
		tr.write(t, "home/.gitconfig", "[init]\n\ttemplateDir = ~/../root/tpl\n[include]\n\tpath = more\n")
		tr.write(t, "home/more", "[init]\n\ttemplateDir = "+filepath.ToSlash(tr.root)+"/link\n")
		tr.write(t, "root/real/x", "")
		tr.link(t, "real", "root/link")
		with := func(template, root string) *sandbox.FS {
			return open(t, func(c sandbox.Config) *sandbox.Sandbox {
				c.Getenv = func(name string) string { return map[string]string{"HOME": home, "GIT_TEMPLATE_DIR": template}[name] }
				return box(c)
			}, root)
		}
		fs := with(filepath.Join(tr.root, "env"), tr.root)
		for name, refused := range map[string]bool{
			"tpl/hooks/pre-commit": true, "tpl/config": true, "real/hooks/post-checkout": true, "env/info/attributes": true, "env/x": true,
			"tpl2/hooks/x": false, "hooks/pre-commit": false, "config": false,
		} {
			_, err := put(fs, name, "x", sandbox.ReplaceOptions{MakeParents: true})
			if refused {
				requireCode(t, toolerr.DeniedPath, err)
				require.ErrorContains(t, err, "new repositories", name)
			} else {
				require.NoError(t, err, name)
			}
		}
		// The root is the template directory.
		fs = with(filepath.Join(tr.root, "own"), filepath.Join(tr.root, "real"))
		for name, refused := range map[string]bool{"hooks/pre-commit": true, "config": true, "commondir": true, "README.md": false, "src/config": false} {
			_, err := put(fs, name, "x", sandbox.ReplaceOptions{MakeParents: true})
			require.Equal(t, refused, toolerr.Is(err, toolerr.DeniedPath), "%s: %v", name, err)
		}
	})
}
