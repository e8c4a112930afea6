//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// TestUndoRestoresNoPlant: an undo record may hold what another command planted
// while the recorded one ran. Undo restores it, and the write guard reverts it.
func TestUndoRestoresNoPlant(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	const first = "git init -q n; rm -f n/.git/hooks/*; mkdir m; cp .git/config good; cp .git/config evil; git config -f evil core.fsmonitor $PWD/x.sh; "
	for name, c := range map[string]struct{ plant, wait, clean, look string }{
		"settings":                          {"cp evil .git/config", "grep -q fsmonitor .git/config", "cat good > .git/config", "git status"},
		"a hook":                            {"cp x.sh n/.git/hooks/pre-commit", "[ -s n/.git/hooks/pre-commit ]", "rm -f n/.git/hooks/pre-commit", "cd n; git commit -q --allow-empty -m u"},
		"a .git that leads out of the root": {"echo gitdir: $PWD/../o/.git > m/.git", "[ -s m/.git ]", "rm -f m/.git", "cd m; git status"},
	} {
		for _, level := range confinedLevels(t) {
			t.Run(name+"/"+level, func(t *testing.T) {
				p := newTrapped(t)
				p.user("git init -q ../o; cp x.sh ../o; git -C ../o config core.fsmonitor $PWD/../o/x.sh")
				s := p.serve("--undo", "--sandbox", level)
				require.False(t, s.bash(first).IsError)
				held := false
				for try := 0; try < 5 && !held; try++ {
					os.Remove(filepath.Join(p.root, "stop"))
					job := text(t, s.bash("while [ ! -e stop ]; do "+c.plant+"; sleep 0.01; done 2>/dev/null", "run_in_background", true), "job_id")
					id := text(t, s.bash("for i in $(seq 20000); do if "+c.wait+" 2>/dev/null; then "+c.clean+"; break; fi; done; touch stop; sleep 0.1; "+c.clean), "changes")
					within(t, "the job ends", func() bool {
						return s.job("action", "poll", "job_id", job, "wait_ms", 5000).Meta["running"] != true
					})
					r := s.job("action", "undo", "job_id", id)
					held = strings.Contains(r.Text, "put back as it was")
				}
				p.user(c.look)
				require.NoFileExists(t, p.mark)
				if !held {
					t.Log("the record held no plant")
				}
			})
		}
	}
}

// TestUndoRestoresNoSteps: undoing the end of a rebase restores its steps
// without those that run a program.
func TestUndoRestoresNoSteps(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	for _, level := range confinedLevels(t) {
		p := newTrapped(t)
		p.user("git checkout -q -b f; echo f > a; git add a; git commit -qm f; git checkout -q -; echo m > a; git add a; git commit -qm m")
		s := p.serve("--undo", "--sandbox", level)
		r := s.bash("git rebase -q -x $PWD/x.sh f; test -e .git/rebase-merge/git-rebase-todo && echo stopped")
		require.Contains(t, r.Text, "stopped", level)
		id := text(t, s.bash("git rebase --quit"), "changes")
		r = s.job("action", "undo", "job_id", id)
		require.False(t, r.IsError, r.Text)
		require.Contains(t, r.Text, "put back as it was: .git/rebase-merge/git-rebase-todo", level)
		p.user("echo r > a; git add a; GIT_EDITOR=true git rebase --continue")
		require.NoFileExists(t, p.mark, level)
	}
}

// TestUndoRestoresTheUsersSettings: undo brings back the user's own settings of
// git that a command removed.
func TestUndoRestoresTheUsersSettings(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	for _, level := range confinedLevels(t) {
		p := newTrapped(t)
		p.user("git config alias.x '!ls'; git init -q sub; git -C sub config alias.y '!ls'; cp x.sh sub/.git/hooks/pre-commit")
		s := p.serve("--undo", "--sandbox", level)
		s.bash("git config --unset alias.x; rm -rf sub")
		r := s.job("action", "undo")
		require.False(t, r.IsError, r.Text)
		require.NotContains(t, r.Text, "put back", level)
		p.user("git config alias.x && git -C sub config alias.y && test -e sub/.git/hooks/pre-commit")
	}
}
