package gitfile_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/internal/gitfile"
)

func TestGitPrograms(t *testing.T) {
	require.Equal(t, []string{"../d/e", "./a", "/abs/c", "b.py", "~/y"}, gitfile.Programs([]string{
		"core.fsmonitor=./a", "filter.x.clean=python3 'b.py' %f --opt=/abs/c", "alias.t=!cd x && ../d/e -v",
		"core.hookspath=hooks/x", "include.path=y/z", "credential.helper=store", "alias.wip=!git add notes.txt", "diff.x.textconv=$HOME/x ~/y -f/z",
	}))
}
