//go:build linux

package proc_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// evilRepository makes the directory $1 a bare repository with a hook and a
// program that its settings name.
const evilRepository = `printf 'EVIL' > x.sh; chmod +x x.sh; git config --global -l >/dev/null
	arm() { git init -q --bare tq; mkdir -p $1/objects $1/refs/heads $1/hooks; cp tq/HEAD $1/HEAD; cp tq/config $1/config; rm -rf tq; cp x.sh $1/hooks/pre-receive; git remote add o $1; }
	mon() { git config -f $1/config core.bare false; git config -f $1/config core.worktree "$PWD"; git config -f $1/config core.fsmonitor "$PWD/x.sh"; }
	`

// rolePlantings make a directory with a role of its own a repository, or make a
// directory of git a work tree.
var rolePlantings = map[string]planting{
	"info that is a repository":                    {"", evilRepository + `arm .git/info`, "git push -q o HEAD:x; :"},
	"a sequencer that is a repository":             {"", evilRepository + `arm .git/sequencer`, "git push -q o HEAD:x; :"},
	"a rebase that is a repository":                {"", evilRepository + `arm .git/rebase-merge`, "git push -q o HEAD:x; :"},
	"an am that is a repository":                   {"", evilRepository + `arm .git/rebase-apply`, "git push -q o HEAD:x; :"},
	"remotes that are a repository":                {"", evilRepository + `arm .git/remotes`, "git push -q o HEAD:x; :"},
	"new hooks that are a repository":              {"", evilRepository + `git init -q n; arm n/.git/hooks`, "git push -q o HEAD:x; :"},
	"settings that are a repository":               {"", evilRepository + `git init -q n; arm n/.idea`, "git push -q o HEAD:x; :"},
	"a repository in a new project's hooks":        {"", evilRepository + `git init -q n; mkdir n/.husky; arm n/.husky/x`, "git push -q o HEAD:x; :"},
	"info that a gitlink leads to":                 {"", evilRepository + `arm .git/info; mon .git/info; mkdir m; echo "gitdir: ../.git/info" > m/.git; git rev-parse HEAD > .git/info/refs/heads/main; cp -r .git/objects/?? .git/info/objects/; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),m`, "git status; :"},
	"a gitfile with a NUL":                         {"", evilRepository + `arm .git/info; mon .git/info; mkdir m; printf 'gitdir: ../.git/info\0zz' > m/.git`, "cd m; git status; :"},
	"a gitfile with two blanks":                    {"", evilRepository + `arm .git/info; mon .git/info; mkdir -p m/x 'm/ x'; git init -q --bare m/x/r; ln -s ../../.git/info 'm/ x/r'; echo 'gitdir:  x/r' > m/.git`, "cd m; git status; :"},
	"a gitfile with many line ends":                {"", evilRepository + `arm .git/info; mon .git/info; mkdir m; { printf 'gitdir: ../.git/info'; head -c 100000 /dev/zero | tr '\0' '\n'; } > m/.git`, "cd m; git status; :"},
	"a work tree in .git":                          {"", hookCommit + `git config core.worktree ../../.git`, "cd n; git checkout -- .; cd ..; git commit --allow-empty -qm u; :"},
	"a work tree in hooks":                         {"", `printf 'EVIL' > x.sh; chmod +x x.sh; git init -q n; cd n; cp ../x.sh pre-commit; git add .; git -c user.name=x -c user.email=x@x commit -qm h; rm pre-commit; git config core.worktree ../../.git/hooks`, "cd n; git checkout -- .; cd ..; git commit --allow-empty -qm u; :"},
	"a work tree in .git behind a link":            {"", hookCommit + `ln -s ../.git ../wl; git config core.worktree ../../wl; rm ../wl; ln -s .git ../wl`, "cd n; git checkout -- .; cd ..; git commit --allow-empty -qm u; :"},
	"a work tree of another repository":            {"git init -q sub", hookCommit + `git config core.worktree ../../sub/.git`, "cd n; git checkout -- .; cd ../sub; git commit --allow-empty -qm u; :"},
	"a worktree's core.worktree":                   {"", `printf 'EVIL' > x.sh; chmod +x x.sh; git worktree add -q --no-checkout n; git config extensions.worktreeConfig true; git -C n config --worktree core.worktree "$PWD/.git"; cd n; mkdir hooks; cp ../x.sh hooks/post-commit; h=$(git hash-object -w hooks/post-commit); git update-index --add --cacheinfo 100755,$h,hooks/post-commit; git commit -qm x`, "cd n; git checkout -- .; git reset -q --hard; cd ..; git commit --allow-empty -qm u; :"},
	"a gitfile in .git":                            {"", `printf 'EVIL' > x.sh; chmod +x x.sh; git worktree add -q --no-checkout w; h=$(git hash-object -w x.sh); cd w; git update-index --add --cacheinfo 100755,$h,hooks/post-commit; cd ..; mv w/.git .git/.git; echo $PWD/.git/.git > .git/worktrees/w/gitdir`, "(cd .git; git checkout -- .); git commit --allow-empty -qm u; :"},
	"a repository in .git":                         {"", hookCommit + `cd ..; mv n/.git .git/.git`, "(cd .git; git checkout -- .); git commit --allow-empty -qm u; :"},
	"a repository in info":                         {"", `printf 'EVIL' > x.sh; chmod +x x.sh; git init -q n; cd n; mkdir -p d; echo '* filter=x' > attributes; git add .; git -c user.name=x -c user.email=x@x commit -qm h; cd ..; mv n/.git .git/info/.git`, "git config filter.x.clean ./x.sh; (cd .git/info; git checkout -- .); echo z >> a; git add a; :"},
	"options of git am":                            {"", startedAm + `printf "'--build-fake-ancestor=%s'\n" "$PWD/x" > .git/rebase-apply/apply-opt`, "git am --skip; test -e x && touch ../ran; :"},
	"a strategy's option":                          {conflict + "; git rebase -q f || :", `mkdir -p .git/rebase-merge; echo resolve > .git/rebase-merge/strategy; echo "--index-output=$PWD/.git/evil" > .git/rebase-merge/strategy_opts; printf 'pick %s\n' $(git rev-parse main) > .git/rebase-merge/git-rebase-todo`, "git checkout -q -f HEAD; git rebase --skip; test -e .git/evil && touch ../ran; :"},
	"an address in remotes":                        {"git config --global protocol.ext.allow always", `printf 'EVIL' > x.sh; chmod +x x.sh; mkdir -p .git/remotes; printf 'URL: ext::%s\nPull: refs/heads/*:refs/remotes/o/*\n' "$PWD/x.sh" > .git/remotes/o`, "git fetch o; :"},
	"an address in branches":                       {"git config --global protocol.ext.allow always", `printf 'EVIL' > x.sh; chmod +x x.sh; mkdir -p .git/branches; echo "ext::$PWD/x.sh" > .git/branches/o`, "git fetch o; :"},
	"a new repository in Claude Code's worktrees":  {claudeWorktree, `printf 'EVIL' > x.sh; chmod +x x.sh; git init -q .claude/worktrees/e; git -C .claude/worktrees/e config core.fsmonitor "$PWD/x.sh"`, "cd .claude/worktrees/e; git status; :"},
	"another repository of Claude Code's worktree": {claudeWorktree, `printf 'EVIL' > x.sh; chmod +x x.sh; git init -q .claude/worktrees/g; git -C .claude/worktrees/g config core.fsmonitor "$PWD/x.sh"; echo "gitdir: ../g/.git" > .claude/worktrees/w/.git`, "cd .claude/worktrees/w; git status; :"},
	"settings in Claude Code's worktree":           {claudeWorktree, `echo evil > .claude/worktrees/w/.envrc`, "test -e .claude/worktrees/w/.envrc && touch ../ran; :"},
	"an address in a new repository":               {"git config --global protocol.ext.allow always", `printf 'EVIL' > x.sh; chmod +x x.sh; git init -q n; mkdir -p n/.git/branches; echo "ext::$PWD/x.sh" > n/.git/branches/o`, "cd n; git fetch o; :"},
}

// hookCommit makes the repository n with a commit of the file hooks/pre-commit,
// and enters it.
const hookCommit = `printf 'EVIL' > x.sh; chmod +x x.sh; git init -q n; cd n; mkdir hooks; cp ../x.sh hooks/pre-commit; git add hooks; git -c user.name=x -c user.email=x@x commit -qm h; rm -r hooks
	`

// startedAm stops in git am of two patches.
const startedAm = `for i in 1 2; do echo $i >> a$i; git add a$i; git commit -qm $i; done; git format-patch -q -2 -o pp; git reset -q --hard HEAD~2; touch a1; git add a1; git commit -qm zz; git am pp/* || :
	`

// claudeWorktree makes a work tree of Claude Code.
const claudeWorktree = `mkdir -p .claude/worktrees; echo '{}' > .claude/settings.json; git worktree add -q .claude/worktrees/w -b w`

// TestTreesThatAreTooDeep: no directory is left whose files have too long paths
// to be examined, however deep a tree is.
func TestTreesThatAreTooDeep(t *testing.T) {
	t.Parallel()
	for _, level := range levels(t) {
		if level == proc.Off {
			continue
		}
		p := newProject(t)
		r := p.runner(level)
		run(t, r, p.command("true"))
		result, out := run(t, r, p.command(`/usr/bin/python3 -c 'import os
for i in range(60): os.mkdir("0" * 200); os.chdir("0" * 200)'`))
		require.Zero(t, result.ExitCode, out)
		require.NotEmpty(t, result.Reverted, level)
		longest := p.user(`find "$PWD" -type d | awk '{ if (length($0) > n) n = length($0) } END { print n }'`)
		n, err := strconv.Atoi(strings.TrimSpace(longest))
		require.NoError(t, err)
		require.Less(t, n, 4095-255, level)
		p.user("rm -rf toolroom-deep-* 0*")
	}
}
