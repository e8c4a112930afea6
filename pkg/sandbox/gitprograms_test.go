package sandbox_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func TestGitPrograms(t *testing.T) {
	require.Equal(t, []string{"../d/e", "./a", "/abs/c", "b.py", "~/y"}, sandbox.GitPrograms([]string{
		"core.fsmonitor=./a", "filter.x.clean=python3 'b.py' %f --opt=/abs/c", "alias.t=!cd x && ../d/e -v",
		"core.hookspath=hooks/x", "include.path=y/z", "credential.helper=store", "alias.wip=!git add notes.txt", "diff.x.textconv=$HOME/x ~/y -f/z",
	}))
}

// TestProgramsOfGitAreProtected: file tools do not write a program that git's
// settings name.
func TestProgramsOfGitAreProtected(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		tr.write(t, "root/.git/HEAD", "ref: refs/heads/main\n")
		tr.write(t, "root/.git/config", "[filter \"x\"]\n\tclean = sh t/clean %f\n\tsmudge = ./new\n")
		fs := open(t, box, tr.root)
		for name, refused := range map[string]bool{"t/clean": true, "t/other": false, "clean": false, "new": true} {
			if name != "new" {
				tr.write(t, "root/"+name, "old")
			}
			_, err := put(fs, name, "new", sandbox.ReplaceOptions{})
			if refused {
				requireCode(t, toolerr.DeniedPath, err)
				require.ErrorContains(t, err, "is a program that settings of git run")
			} else {
				require.NoError(t, err)
			}
		}
	})
}

// TestSettingsBehindLinksAreProtected: file tools do not write the target of a
// link that is a project's settings.
func TestSettingsBehindLinksAreProtected(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		tr.write(t, "root/conf/mcp.json", "old")
		tr.write(t, "root/p/shared/claude/settings.json", "old")
		tr.link(t, "conf/mcp.json", "root/.mcp.json")
		tr.link(t, "shared/claude", "root/p/.claude")
		tr.link(t, "env/rc", "root/.envrc")
		fs := open(t, box, tr.root)
		for name, refused := range map[string]bool{
			"conf/mcp.json": true, "p/shared/claude/settings.json": true, "p/shared/claude/new": true, "env/rc": true,
			"conf/other.json": false, "p/shared/x": false, "mcp.json": false,
		} {
			_, err := put(fs, name, "new", sandbox.ReplaceOptions{MakeParents: true})
			if refused {
				requireCode(t, toolerr.DeniedPath, err)
				require.ErrorContains(t, err, "is reached through the link")
			} else {
				require.NoError(t, err, name)
			}
		}
	})
}
