package sandbox_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

func TestGitSteps(t *testing.T) {
	const todo = "pick 1 exec a\n# exec no\n \texec\tmake  test \nx a; b\r\nexecute no\nexec\nxno\npick 2 two\nx last"
	require.Equal(t, []string{"make  test", "a; b", "", "last"}, sandbox.GitSteps([]byte(todo)))
	require.Equal(t, "pick 1 exec a\n# exec no\nx a; b\r\nexecute no\nxno\npick 2 two\n", string(sandbox.GitStepsWithout([]byte(todo), []string{"a; b"})))
	require.Equal(t, todo, string(sandbox.GitStepsWithout([]byte(todo), sandbox.GitSteps([]byte(todo)))))
	require.Empty(t, sandbox.GitStepsWithout(nil, nil))
}

func TestGitStrategyRuns(t *testing.T) {
	for _, c := range []struct {
		name, content string
		runs, ok      bool
	}{
		{"strategy", "ort\n", false, true}, {"strategy", "../x\n", true, true}, {"strategy", "", false, true},
		{"opts", "[options]\n\tstrategy = ort\n\tstrategy-option = subtree=a/b\n", false, true},
		{"opts", "[options]\n\tstrategy = ../x\n", true, true}, {"opts", "[OPTIONS]\n\tStrategy = \"..\"/x\n", true, true},
		{"opts", "[options", false, false},
	} {
		runs, ok := sandbox.GitStrategyRuns(c.name, []byte(c.content))
		require.Equal(t, [2]bool{c.runs, c.ok}, [2]bool{runs, ok}, "%+v", c)
	}
}
