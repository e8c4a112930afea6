//go:build linux

package proc_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
)

// step is a script of a command, or of the user.
type step struct {
	user   bool
	script string
	fails  bool // at L2; at L1 its changes are reverted
}

// Repositories that commands created: later commands remove and rename them,
// unless the user has changed something in them.
var madeByCommands = map[string][]step{
	"removed":           {{script: "git init -q c; git -C c commit -q --allow-empty -m c"}, {script: "rm -rf c"}, {true, "test ! -e c", false}},
	"renamed":           {{script: "git clone -q . c"}, {script: "mv c d"}, {true, "test ! -e c; git -C d fsck", false}, {script: "rm -r d"}, {true, "test ! -e d", false}},
	"made again":        {{script: "git clone -q . c"}, {script: "rm -rf c; git clone -q . c; git -C c checkout -qb x"}, {script: "mv c d"}, {script: "mkdir e; mv d e/d"}, {true, "git -C e/d fsck", false}},
	"in its inode":      {{script: "git init -q c"}, {script: "i=$(stat -c %i c/.git); for n in {1..20}; do rm -rf c; git init -q c; test $(stat -c %i c/.git) != $i || break; done"}, {script: "mv c d"}, {true, "test -e d/.git -a ! -e c", false}},
	"made twice":        {{script: "git clone -q . c"}, {script: "rm -rf c"}, {script: "git clone -q . c"}, {script: "rm -rf c; git clone -q . c"}, {script: "mv c d"}, {true, "git -C d fsck", false}},
	"the user's again":  {{script: "git init -q c"}, {script: "rm -rf c; git init -q c"}, {true, `printf '#!/bin/sh\n' > c/.git/hooks/pre-commit; chmod +x c/.git/hooks/pre-commit`, false}, {script: "printf x > c/.git/hooks/pre-commit", fails: true}, {script: "rm -rf c/.git/hooks", fails: true}, {true, `test "$(cat c/.git/hooks/pre-commit)" = '#!/bin/sh'`, false}},
	"another of a user": {{script: "git init -q c"}, {script: "rm -rf c; git init -q c"}, {true, `rm -rf c; git clone -q . c`, false}, {script: "touch c/.git/hooks/x", fails: true}, {script: "rm -rf c", fails: true}},
	"with settings":     {{script: "mkdir -p c/.vscode; git init -q c; echo '{}' > c/.vscode/settings.json"}, {script: "rm -rf c"}, {true, "test ! -e c", false}},
	"a bare one":        {{script: "git clone -q --bare . b.git"}, {script: "git -C b.git gc -q; rm -rf b.git"}, {true, "test ! -e b.git", false}},
	"a module":          {{script: "git init -q lib; git -C lib commit -q --allow-empty -m l; git -c protocol.file.allow=always submodule --quiet add $PWD/lib sub; git commit -qm s"}, {script: "git rm -qf sub; rm -rf .git/modules/sub lib"}, {true, "test ! -e .git/modules/sub -a ! -e lib", false}},
	"removed by steps":  {{script: "git init -q c"}, {script: "rm -rf c/.git/hooks"}, {script: "git -C c commit -q --allow-empty -m x"}, {script: "rm -rf c"}, {true, "test ! -e c", false}},
	"the user's hook":   {{script: "git init -q c"}, {true, `printf '#!/bin/sh\n' > c/.git/hooks/pre-commit; chmod +x c/.git/hooks/pre-commit`, false}, {script: "printf x > c/.git/hooks/pre-commit", fails: true}, {script: "rm -rf c/.git/hooks", fails: true}, {true, `test "$(cat c/.git/hooks/pre-commit)" = '#!/bin/sh'`, false}},
	"the user's clone":  {{script: "git init -q c"}, {true, `rm -rf c; git clone -q . c`, false}, {script: "touch c/.git/hooks/x", fails: true}, {script: "rm -rf c", fails: true}},
	"in a user's place": {{true, "mkdir -p u/.vscode; echo '{}' > u/.vscode/settings.json", false}, {script: "git init -q u"}, {script: "echo x > u/.vscode/settings.json", fails: true}, {true, "grep -qx '{}' u/.vscode/settings.json", false}},
	"the user's":        {{true, "git init -q c", false}, {script: "rm -rf c/.git/hooks", fails: true}},
}

func TestRepositoriesMadeByCommands(t *testing.T) {
	t.Parallel()
	for name, steps := range madeByCommands {
		for _, level := range levels(t) {
			if level == proc.Off {
				continue
			}
			t.Run(name+" at "+string(level), func(t *testing.T) {
				sandboxtest.SkipUnsampled(t)
				t.Parallel()
				p := newProject(t)
				state := filepath.Join(p.dir, "state")
				for i, s := range steps {
					if s.user {
						p.user("set -e; " + s.script)
						continue
					}
					// A server of its own, which knows the state directory only.
					r := newRunner(t, proc.Config{Level: level, WatchDir: state,
						Environ: []string{"HOME=" + p.home, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1"}})
					proc.TrustLevel(r, level)
					result, out := run(t, r, p.command("set -e; "+s.script))
					if s.fails && level == proc.L2 {
						require.NotEqual(t, 0, result.ExitCode, "step %d: %s", i, s.script)
					} else if !s.fails {
						require.Equal(t, 0, result.ExitCode, "step %d: %s: %s", i, s.script, out)
						require.Empty(t, result.Reverted, "step %d: %s", i, s.script)
					}
				}
			})
		}
	}
}

// In a repository that a command created, planted hooks are removed, and they do
// not run after it was moved either.
func TestPlantsInRepositoriesMadeByCommands(t *testing.T) {
	t.Parallel()
	for _, level := range levels(t) {
		if level == proc.Off {
			continue
		}
		for _, plant := range []string{
			`printf 'EVIL' > c/.git/hooks/pre-commit; chmod +x c/.git/hooks/pre-commit`,
			`rm -rf c/.git/hooks; mkdir c/.git/hooks; printf 'EVIL' > c/.git/hooks/pre-commit; chmod +x c/.git/hooks/pre-commit`,
			`mv c d; printf 'EVIL' > d/.git/hooks/pre-commit; chmod +x d/.git/hooks/pre-commit; mv d c`,
			`rm -rf c; git init -q c; printf 'EVIL' > x; chmod +x x; git -C c config core.fsmonitor "$PWD/x"`,
			`printf 'EVIL' > x; chmod +x x; git -C c config core.hooksPath "$PWD/h"; mkdir h; cp x h/pre-commit`,
		} {
			p := newProject(t)
			r := p.runner(level)
			_, out := run(t, r, p.command("git init -q c; git -C c commit -q --allow-empty -m c"))
			require.Empty(t, out)
			result, _ := run(t, r, p.command(plant))
			require.NotEmpty(t, result.Reverted, "%s: %s", level, plant)
			p.user("git status -s; git -C c status -s; git -C c commit -q --allow-empty -m x")
			require.NoFileExists(t, p.mark, "%s: %s", level, plant)
		}
	}
}
