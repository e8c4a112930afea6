//go:build linux

package proc_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// TestStepsOfARebase: commands run the steps of a rebase that a command or the
// user began. The user's git rebase --continue only runs the user's steps.
func TestStepsOfARebase(t *testing.T) {
	t.Parallel()
	const begin = `! git rebase -q -x 'echo step >> ../root/steps' f`
	for _, level := range levels(t) {
		if level == proc.Off {
			continue
		}
		for name, c := range map[string]struct {
			before string
			taken  bool     // the first script begins the rebase
			then   []string // further commands
			after  string   // the user's
			steps  string
		}{
			"a command continues":                         {"", true, []string{"ls", "! grep -q zzz a; git status", goOn}, "", "step\n"},
			"the user continues":                          {"", true, []string{"ls"}, goOn, ""},
			"the user aborts, and begins the same rebase": {"", true, nil, "git rebase --abort; " + begin + "; " + goOn, "step\n"},
			"the user's, which a command continues":       {begin, false, []string{goOn}, "", "step\n"},
			"the user's, which the user continues":        {begin, false, []string{"ls"}, goOn, "step\n"},
		} {
			t.Run(string(level)+"/"+name, func(t *testing.T) {
				t.Parallel()
				p := newProject(t)
				p.user(conflict + "; " + c.before + "\n:")
				r := p.runner(level)
				todo := filepath.Join(p.root, ".git/rebase-merge/git-rebase-todo")
				run(t, r, p.command("true"))
				if c.taken {
					result, out := run(t, r, p.command(begin))
					require.Equal(t, []string{todo}, result.Reverted, out)
				}
				for _, script := range c.then {
					result, out := run(t, r, p.command(script))
					require.Empty(t, result.Reverted, out)
				}
				p.user(c.after + "\n:")
				steps, _ := os.ReadFile(filepath.Join(p.root, "steps"))
				require.Equal(t, c.steps, string(steps))
				require.NoDirExists(t, filepath.Dir(todo))
			})
		}
	}
}
