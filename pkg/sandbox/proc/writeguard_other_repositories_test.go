//go:build linux

package proc_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
)

// otherRepository is a planting in a root that a repository outside that root
// reads. The user's scripts run in the directory above the roots, the command's
// script in the last root.
type otherRepository struct {
	roots                []string
	before, script, look string
}

const (
	makeOuter = `git init -q outer; mkdir -p outer/tools/hooks; cd outer; printf '#!/bin/sh\ncat "$1" 2>/dev/null\n:' > tools/hooks/pre-commit; cp tools/hooks/pre-commit tools/run; chmod +x tools/hooks/* tools/run; echo a > a; git add -A; git commit -qm 1; `
	makeTree  = makeOuter + `git worktree add -q -b w ../wt; `
	commitIn  = `git status; echo x >> a; git add a; git commit -qm x; git commit --allow-empty -qm x; git status`
)

// otherRepositories work unconfined.
var otherRepositories = map[string]otherRepository{
	"hooks":             {[]string{"outer/tools"}, makeOuter + `git config core.hooksPath tools/hooks`, `printf 'EVIL' > hooks/pre-commit`, `cd outer; ` + commitIn},
	"a new hook":        {[]string{"outer/tools"}, makeOuter + `git config core.hooksPath tools/hooks`, `printf 'EVIL' > hooks/commit-msg; chmod +x hooks/commit-msg`, `cd outer; ` + commitIn},
	"the root is hooks": {[]string{"outer/tools"}, makeOuter + `git config core.hooksPath tools`, `printf 'EVIL' > pre-commit; chmod +x pre-commit`, `cd outer; ` + commitIn},
	"hooks in a root":   {[]string{"outer/tools/hooks"}, makeOuter + `git config core.hooksPath tools/hooks`, `printf 'EVIL' > pre-commit`, `cd outer; ` + commitIn},
	"fsmonitor":         {[]string{"outer/tools"}, makeOuter + `git config core.fsmonitor ./tools/run`, `printf 'EVIL' > run`, `cd outer; ` + commitIn},
	"textconv":          {[]string{"outer/tools"}, makeOuter + `git config diff.x.textconv tools/run; echo '* diff=x' > .gitattributes`, `printf 'EVIL' > run`, `cd outer; echo z >> a; git diff`},
	"an external diff":  {[]string{"outer/tools"}, makeOuter + `git config diff.external tools/run`, `printf 'EVIL' > run`, `cd outer; echo z >> a; git diff`},
	"a filter":          {[]string{"outer/tools"}, makeOuter + `git config filter.x.clean tools/run; echo '* filter=x' > .gitattributes`, `printf 'EVIL' > run`, `cd outer; ` + commitIn},
	"a command of ssh":  {[]string{"outer/tools"}, makeOuter + `git config core.sshCommand tools/run`, `printf 'EVIL' > run`, `cd outer; git fetch ssh://h/x; :`},
	"an alias":          {[]string{"outer/tools"}, makeOuter + `git config alias.x '!tools/run'`, `printf 'EVIL' > run`, `cd outer; git x`},
	"an editor":         {[]string{"outer/tools"}, makeOuter + `git config core.editor tools/run`, `printf 'EVIL' > run`, `cd outer; git commit --allow-empty; :`},
	"included settings": {[]string{"outer/tools"}, makeOuter + `git config include.path ../tools/gc; printf '[x]\ny=1\n' > tools/gc`, `printf 'EVIL' > x; chmod +x x; git config -f gc core.fsmonitor "$PWD/x"`, `cd outer; git status`},
	"settings of an included file": {[]string{"outer/tools"}, makeOuter + `git config include.path ../tools/gc; printf '[core]\nfsmonitor=tools/run\n' > tools/gc`,
		`printf 'EVIL' > run`, `cd outer; git status`},
	"a hook that is a link":  {[]string{"outer/tools"}, makeOuter + `ln -s ../../tools/run .git/hooks/pre-commit`, `printf 'EVIL' > run`, `cd outer; ` + commitIn},
	"hooks that are a link":  {[]string{"outer/tools"}, makeOuter + `rm -r .git/hooks; ln -s ../tools/hooks .git/hooks`, `printf 'EVIL' > hooks/commit-msg; chmod +x hooks/commit-msg`, `cd outer; ` + commitIn},
	"the root is .git/hooks": {[]string{"outer/.git/hooks"}, makeOuter, `printf 'EVIL' > pre-commit; chmod +x pre-commit`, `cd outer; ` + commitIn},

	"hooks of a linked work tree":      {[]string{"wt"}, makeTree + `git config core.hooksPath tools/hooks`, `printf 'EVIL' > tools/hooks/pre-commit`, `cd wt; ` + commitIn},
	"a new hook of a linked work tree": {[]string{"wt"}, makeTree + `git config core.hooksPath tools/hooks`, `printf 'EVIL' > tools/hooks/commit-msg; chmod +x tools/hooks/commit-msg`, `cd wt; ` + commitIn},
	"fsmonitor of a linked work tree":  {[]string{"wt"}, makeTree + `git config core.fsmonitor tools/run`, `printf 'EVIL' > tools/run`, `cd wt; ` + commitIn},
	"a linked work tree's own settings": {[]string{"wt"}, makeTree + `git config extensions.worktreeConfig true; git -C ../wt config --worktree core.fsmonitor tools/run`,
		`printf 'EVIL' > tools/run`, `cd wt; ` + commitIn},
	"a linked work tree includes": {[]string{"wt"}, makeTree + `git config include.path "$PWD/../wt/tools/gc"; echo '[x]' > ../wt/tools/gc`, `printf 'EVIL' > x; chmod +x x; git config -f tools/gc core.fsmonitor "$PWD/x"`, `cd wt; git status`},
	"a linked work tree below the root": {[]string{"r"}, `mkdir r; ` + makeOuter + `git worktree add -q -b w ../r/wt; git config core.hooksPath tools/hooks`,
		`printf 'EVIL' > wt/tools/hooks/pre-commit`, `cd r/wt; ` + commitIn},
	"a directory of a linked work tree": {[]string{"wt/tools"}, makeTree + `git config core.hooksPath tools/hooks`, `printf 'EVIL' > hooks/pre-commit`, `cd wt; ` + commitIn},
	"a submodule": {[]string{"outer/sm"}, makeOuter + `git -c protocol.file.allow=always submodule add -q "$PWD" sm; git -C sm config core.hooksPath tools/hooks`,
		`printf 'EVIL' > tools/hooks/pre-commit`, `cd outer/sm; ` + commitIn},
	"a submodule's program": {[]string{"outer/sm"}, makeOuter + `git -c protocol.file.allow=always submodule add -q "$PWD" sm; git -C sm config core.fsmonitor tools/run`,
		`printf 'EVIL' > tools/run`, `cd outer/sm; ` + commitIn},
	"a separate repository": {[]string{"outer"}, makeOuter + `git init -q --separate-git-dir=../sg; git config core.hooksPath tools/hooks`,
		`printf 'EVIL' > tools/hooks/pre-commit`, `cd outer; ` + commitIn},
	".git is a link": {[]string{"outer"}, makeOuter + `mv .git ../sg; ln -s ../sg .git; git config core.hooksPath tools/hooks`,
		`printf 'EVIL' > tools/hooks/pre-commit`, `cd outer; ` + commitIn},
	".git above is a link": {[]string{"outer/tools"}, makeOuter + `mv .git ../sg; ln -s ../sg .git; git config core.hooksPath tools/hooks`,
		`printf 'EVIL' > hooks/pre-commit`, `cd outer; ` + commitIn},
	"dotfiles": {[]string{"outer"}, makeOuter + `git clone -q --bare . ../.cfg; git --git-dir=../.cfg config core.hooksPath tools/hooks; git --git-dir=../.cfg config core.bare false; git --git-dir=../.cfg config core.worktree "$PWD"`,
		`printf 'EVIL' > tools/hooks/pre-commit`, `git --git-dir=.cfg commit --allow-empty -qm x`},
	"dotfiles in a home": {[]string{"outer"}, makeOuter + `cd ..; git clone -q --bare outer .cfg; git --git-dir=.cfg config core.fsmonitor outer/tools/run`,
		`printf 'EVIL' > tools/run`, `git --git-dir=.cfg --work-tree=. status`},

	"hooks in another root": {[]string{"outer", "more"}, `mkdir -p more/h; ` + makeOuter + `git config core.hooksPath "$PWD/../more/h"`,
		`printf 'EVIL' > h/pre-commit; chmod +x h/pre-commit`, `cd outer; ` + commitIn},
	"a program in another root": {[]string{"outer", "more"}, `mkdir -p more; ` + makeOuter + `cp tools/run ../more; git config core.fsmonitor ../more/run`,
		`printf 'EVIL' > run`, `cd outer; ` + commitIn},
	"a program in the first root": {[]string{"more", "outer"}, `mkdir -p more; ` + makeOuter + `cp tools/run ../more; git config core.fsmonitor ../more/run`,
		`printf 'EVIL' > ../more/run`, `cd outer; ` + commitIn},
	"settings in another root": {[]string{"outer", "more"}, `mkdir -p more; ` + makeOuter + `echo '[x]' > ../more/gc; git config include.path ../../more/gc`,
		`printf 'EVIL' > x; chmod +x x; git config -f gc core.fsmonitor "$PWD/x"`, `cd outer; ` + commitIn},
	"the work tree of another root": {[]string{"outer", "wt"}, makeTree + `git config core.hooksPath tools/hooks`,
		`printf 'EVIL' > tools/hooks/pre-commit`, `cd wt; ` + commitIn},
	"the repository of another root": {[]string{"wt", "outer"}, makeTree + `git config core.fsmonitor tools/run`,
		`printf 'EVIL' > ../wt/tools/run`, `cd wt; ` + commitIn},
	"hooks of a repository that is read only": {[]string{"outer:ro", "outer/tools"}, makeOuter + `git config core.hooksPath tools/hooks`,
		`printf 'EVIL' > hooks/pre-commit`, `cd outer; ` + commitIn},
	"a new hook of a repository that is read only": {[]string{"outer:ro", "outer/tools"}, makeOuter + `git config core.hooksPath tools/hooks`,
		`printf 'EVIL' > hooks/commit-msg; chmod +x hooks/commit-msg`, `cd outer; ` + commitIn},
	"a program of a repository that is read only": {[]string{"outer:ro", "outer/tools"}, makeOuter + `git config core.fsmonitor tools/run`,
		`printf 'EVIL' > run`, `cd outer; ` + commitIn},
	"a program of a repository in a root that is read only": {[]string{"all:ro", "more"}, `mkdir all more; cd all; ` + makeOuter + `cp tools/run ../../more; git config core.fsmonitor ../../more/run`,
		`printf 'EVIL' > run`, `cd all/outer; ` + commitIn},
}

// newProjectOf makes a project with the given roots, which the script before
// makes.
func newProjectOf(t testing.TB, roots []string, before string) *project {
	t.Helper()
	p := newProject(t)
	require.NoError(t, os.RemoveAll(p.root))
	p.root = p.dir
	p.user(before + "\n:")
	box := sandbox.Config{Getenv: func(name string) string {
		if name == "HOME" {
			return p.home
		}
		return ""
	}}
	for _, root := range roots {
		box.Roots = append(box.Roots, filepath.Join(p.dir, root))
	}
	files, err := sandbox.New(box).FS(context.Background())
	require.NoError(t, err)
	p.files = files
	return p
}

// TestRepositoriesOutsideTheRoot: a command cannot change the programs and
// hooks in a root that the settings of a repository outside that root name.
func TestRepositoriesOutsideTheRoot(t *testing.T) {
	t.Parallel()
	enforced := levels(t)
	for name, c := range otherRepositories {
		t.Run(name, func(t *testing.T) {
			sandboxtest.SkipUnsampled(t)
			t.Parallel()
			for _, level := range oneConfined(enforced, name) {
				p := newProjectOf(t, c.roots, c.before)
				r := p.runner(level)
				first, second := p.command("true"), p.command(c.script)
				first.Dir = filepath.Join(p.dir, c.roots[len(c.roots)-1])
				second.Dir = first.Dir
				run(t, r, first) // records the state before
				result, out := run(t, r, second)
				if level == proc.Off {
					require.True(t, p.ran(c.look), "does not work unconfined: %s", out)
					continue
				}
				require.False(t, p.ran(c.look), "%s escaped from %s: %s", name, level, out)
				if result.ExitCode == 0 {
					t.Logf("%s: undone: %v", level, result.Reverted)
				}
			}
		})
	}
}
