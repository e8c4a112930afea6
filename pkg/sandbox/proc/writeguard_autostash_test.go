//go:build linux

package proc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

const (
	hooksInTree = `mkdir th; printf '#!/bin/sh\n' > th/pre-commit; chmod +x th/pre-commit; git add -A; git commit -qm 2; git config core.hooksPath th`
	// evilStash makes a stash, $S, with another hook and project settings.
	evilStash = `export GIT_INDEX_FILE=$TMPDIR/i; git read-tree HEAD; B=$(printf 'EVIL' | git hash-object -w --stdin); git update-index --cacheinfo "100755,$B,th/pre-commit"
		X=$(echo evil | git hash-object -w --stdin); git update-index --add --cacheinfo "100644,$X,.envrc"; T=$(git write-tree); unset GIT_INDEX_FILE
		I=$(git commit-tree -m i -p HEAD 'HEAD^{tree}'); S=$(git commit-tree -m W -p HEAD -p "$I" "$T"); `
	evilMerge  = evilStash + `git rev-parse HEAD~1 > .git/MERGE_HEAD; echo m > .git/MERGE_MSG; echo "$S" > .git/MERGE_AUTOSTASH`
	evilRebase = evilStash + `d=.git/rebase-merge; mkdir $d; H=$(git rev-parse HEAD); echo $H > $d/orig-head; echo $H > $d/onto; echo refs/heads/main > $d/head-name
		touch $d/interactive $d/done; echo noop > $d/git-rebase-todo; echo 1 > $d/msgnum; echo 1 > $d/end; echo $S > $d/autostash`
	commitAfter = `; git commit -q --allow-empty -m x; test -e .envrc && touch ../ran; :`
)

// autostashPlantings are stashes that git applies at the end of an operation.
var autostashPlantings = map[string]planting{
	"a stash of a merge":                    {hooksInTree, evilMerge, "git commit -q --no-edit" + commitAfter},
	"a stash of a merge that is aborted":    {hooksInTree, evilMerge, "git merge --abort" + commitAfter},
	"a stash of a merge that is reset":      {hooksInTree, evilMerge, "git reset -q --hard; git stash list | grep -q . && touch ../ran" + commitAfter},
	"a stash of a rebase that is aborted":   {hooksInTree, evilRebase, "git rebase --abort" + commitAfter},
	"a stash of a rebase that is continued": {hooksInTree, evilRebase, "git rebase --continue" + commitAfter},
	"a stash that is a link":                {hooksInTree, evilMerge + `; mv .git/MERGE_AUTOSTASH s; ln -s ../s .git/MERGE_AUTOSTASH`, "git commit -q --no-edit" + commitAfter},
}

// TestStashesOfOneOperation: a stash that git applies at the end of a rebase is
// applied if commands begin and end the rebase. A user's stays.
func TestStashesOfOneOperation(t *testing.T) {
	t.Parallel()
	for _, level := range levels(t) {
		p := newProject(t)
		p.user("echo b > b; git add b; git commit -qm b; " + conflict + "; git checkout -q f; echo mine > b")
		r := p.runner(level)
		result, out := run(t, r, p.command("git rebase --autostash main; test -s .git/rebase-merge/autostash"))
		require.Zero(t, result.ExitCode, "%s: %s", level, out)
		if level != proc.Off {
			require.Equal(t, []string{p.root + "/.git/rebase-merge/autostash"}, result.Reverted, level)
			p.user("test ! -e .git/rebase-merge/autostash; git status")
		}
		result, out = run(t, r, p.command("test -s .git/rebase-merge/autostash && grep -qx b b"))
		require.Zero(t, result.ExitCode, "%s: %s", level, out)
		require.Empty(t, result.Reverted, level)
		result, out = run(t, r, p.command(goOn+"; grep -qx mine b"))
		require.Zero(t, result.ExitCode, "%s: %s", level, out)
		require.Empty(t, result.Reverted, level)

		p.user("git commit -qam mine; git checkout -q -B f main~; echo f > a; git commit -qam f; echo mine > b; ! git rebase --autostash main")
		result, out = run(t, r, p.command("git status"))
		require.Zero(t, result.ExitCode, "%s: %s", level, out)
		require.Empty(t, result.Reverted, level)
		p.user(goOn + "; grep -qx mine b")
	}
}
