package gitfile_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/gitfile"
)

func TestGitPrograms(t *testing.T) {
	require.Equal(t, []string{"../d/e", "./a", "/abs/c", "/z", "b.py", "d/e", "~/x", "~/y"}, gitfile.ProgramPaths([]string{
		"core.fsmonitor=./a", "filter.x.clean=python3 'b.py' %f --opt=/abs/c", "alias.t=!cd x && ../d/e -v",
		"core.hookspath=hooks/x", "include.path=y/z", "credential.helper=store", "alias.wip=!git add notes.txt", "diff.x.textconv=$HOME/x ~/y -f/z",
	}))
}

// The shell makes the beginning of the path, or enters its directory.
func TestProgramsOfShellCommands(t *testing.T) {
	for command, want := range map[string][]string{
		`"$PWD/tools/mon"`: {"./tools/mon"},
		`${PWD}/tools/mon`: {"./tools/mon"},
		`"$PWD"/tools/mon`: {"./tools/mon"},
		`!$(git rev-parse --show-toplevel)/tools/lint`:                {"./tools/lint"},
		"!`git rev-parse --show-toplevel`/tools/lint":                 {"./tools/lint"},
		`ssh -Ftools/cfg -p22 --x/y`:                                  {"tools/cfg"},
		`python3 -m tools.clean`:                                      {"tools.clean", "tools/__init__.py", "tools/clean.py", "tools/clean/__init__.py", "tools/clean/__main__.py"},
		`!cd tools && ./lint`:                                         {"./lint", "tools/lint"},
		`!cd "$(git rev-parse --show-toplevel)/tools"; sh lint.sh -x`: {"./tools", "lint.sh", "tools/lint.sh"},
	} {
		require.Equal(t, want, gitfile.ProgramPaths([]string{"alias.x=" + command}), command)
	}
}
