package gitfile_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/gitfile"
)

func TestGitSteps(t *testing.T) {
	const todo = "pick 1 exec a\n# exec no\n \texec\tmake  test \nx a; b\r\nexecute no\nexec\nxno\npick 2 two\nx last"
	require.Equal(t, []string{"make  test", "a; b", "", "last"}, gitfile.ExecSteps([]byte(todo)))
	require.Equal(t, "pick 1 exec a\n# exec no\nx a; b\r\nexecute no\nxno\npick 2 two\n", string(gitfile.KeepAllowedSteps([]byte(todo), []string{"a; b"})))
	require.Equal(t, todo, string(gitfile.KeepAllowedSteps([]byte(todo), gitfile.ExecSteps([]byte(todo)))))
	require.Empty(t, gitfile.KeepAllowedSteps(nil, nil))
}

func TestGitOptionsRun(t *testing.T) {
	for _, c := range []struct {
		name, content string
		runs, ok      bool
	}{
		{"strategy", "ort\n", false, true}, {"strategy", "../x\n", true, true}, {"strategy", "", false, true},
		{"opts", "[options]\n\tstrategy = ort\n\tstrategy-option = subtree=a/b\n", false, true},
		{"opts", "[options]\n\tstrategy = ../x\n", true, true}, {"opts", "[OPTIONS]\n\tStrategy = \"..\"/x\n", true, true},
		{"opts", "[options", false, false},
		{"opts", "[options]\n\tstrategy = resolve\n\tstrategy-option = index-output=/x\n", true, true},
		{"strategy_opts", " --ours '--find-renames=50%' \"--subtree=a/b\"\n", false, true}, {"strategy_opts", "", false, true},
		{"strategy_opts", "--index-output=/x", true, true}, {"strategy_opts", "--ours '--subtree=a\\' b'", true, true},
		{"strategy", "file", true, true}, {"opts", "[options]\n\tstrategy = file\n", true, true}, {"opts", "[options]\n\tstrategy = index\n", true, true},
		{"apply-opt", "", false, true}, {"apply-opt", " '--whitespace=fix' '-C1' '-p0' '--ignore-whitespace'\n", false, true},
		{"apply-opt", "'--directory=.git/hooks'", true, true}, {"apply-opt", "'--build-fake-ancestor=/x'", true, true},
		{"msgnum", "12\n", false, true}, {"end", "", false, true}, {"next", "0001", false, true}, {"msgnum", "$(touch x)\n", true, true},
		{"last", "1`touch x`", true, true}, {"next", "1\n$(touch x)\n", true, true}, {"end", "$x", true, true},
		{"apply-opt", "'-p1''--directory=x'", true, true}, {"apply-opt", "-p1", true, true},
	} {
		runs, ok := gitfile.OptionsMayRun(c.name, []byte(c.content))
		require.Equal(t, [2]bool{c.runs, c.ok}, [2]bool{runs, ok}, "%+v", c)
	}
}
