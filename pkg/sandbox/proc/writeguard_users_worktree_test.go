//go:build linux

package proc_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// TestWorktreesOfTheUserStay: what git worktree add of the user writes into a
// root while a command runs there stays.
func TestWorktreesOfTheUserStay(t *testing.T) {
	t.Parallel()
	for _, level := range levels(t) {
		if level == proc.Off {
			continue
		}
		for name, c := range map[string]struct{ before, user, after string }{
			"outside":      {"", "git worktree add -q ../wt; echo new > ../wt/new; git -C ../wt add new", "git worktree prune; git gc -q --prune=now; git -C ../wt status --short | grep -qx 'A  new'"},
			"in the root":  {"git init -q ../o; git -C ../o commit -q --allow-empty -m o", "git -C ../o worktree add -q ../root/wt; echo new > wt/new; git -C wt add new", "git -C ../o worktree prune; git -C wt status --short | grep -qx 'A  new'"},
			"moved around": {"git worktree add -q ../wt", "git worktree move ../wt ../wt2", "git worktree prune; git -C ../wt2 status"},
		} {
			t.Run(string(level)+"/"+name, func(t *testing.T) {
				t.Parallel()
				p := newProject(t)
				p.user(c.before + "\n:")
				r := p.runner(level)
				done := make(chan proc.Result, 1)
				go func() {
					result, _ := run(t, r, p.command("touch begun; sleep 2"))
					done <- result
				}()
				require.Eventually(t, func() bool { _, err := os.Stat(filepath.Join(p.root, "begun")); return err == nil }, 20e9, 1e7)
				p.user(c.user)
				result := <-done
				require.Empty(t, result.Reverted)
				p.user(c.after)
			})
		}
	}
}

// TestSplitIndexIsRemovedAsAWhole: the index that refers to a removed shared
// index is removed, too, so that git reset repairs the repository.
func TestSplitIndexIsRemovedAsAWhole(t *testing.T) {
	t.Parallel()
	for _, level := range levels(t) {
		if level == proc.Off {
			continue
		}
		p := newProject(t)
		p.user("git update-index --split-index; ls .git/sharedindex.*")
		r := p.runner(level)
		run(t, r, p.command("true"))
		result, out := run(t, r, p.command(`f=$(echo .git/sharedindex.*); chmod u+w "$f"; head -c 40 "$f" > s; cat s > "$f"`))
		require.Zero(t, result.ExitCode, "%s: %s", level, out)
		require.Contains(t, result.Reverted, p.root+"/.git/index", level)
		require.Len(t, result.Reverted, 2, level)
		p.user("git reset -q; git status --short | grep -v '?? s'; git diff --exit-code HEAD")
	}
}
