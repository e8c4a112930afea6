//go:build linux

package proc_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
)

// companionPlantings are plantings for programs that work with git or by
// themselves. Each runs the program that the key names. settings are the files
// that the command must not leave as it wrote them.
var companionPlantings = map[string]struct {
	program, before, script, look string
	settings                      string
}{
	"hg, a repository that shares another's": {"hg", "hg init .", `mkdir p; cp -r .hg/* p; printf '[hooks]\npre-status=touch '"$MARK"'\n' > p/hgrc; echo shared >> .hg/requires; echo "$PWD/p" > .hg/sharedpath`,
		"hg status; :", ".hg/sharedpath"},
	"hg, a relative path to another":      {"hg", "hg init .", `mkdir p; cp -r .hg/* p; printf '[hooks]\npre-status=touch '"$MARK"'\n' > p/hgrc; printf 'relshared\nshared\nshare-safe\n' >> .hg/requires; printf ../p > .hg/sharedpath`, "hg status; :", ".hg/sharedpath"},
	"vim, _vimrc":                         {"vim", "", `echo "call writefile([], '$MARK')" > _vimrc`, "HOME=/nonexistent vim -Nu NONE -es --cmd 'set exrc' -c 'qa!' </dev/null; vim -N -i NONE --cmd 'set exrc' -c 'qa!' </dev/null; :", "_vimrc"},
	"R, .RData":                           {"R", "", `R --no-echo --no-init-file -e '.First <- function() file.create("'"$MARK"'"); save.image()'`, "R --no-save -e 1; :", ".RData"},
	"git instaweb":                        {"git", "", `mkdir .git/gitweb; printf 'touch %s\n' "$MARK" > .git/gitweb/python3.conf`, "true", ".git/gitweb/python3.conf"},
	"tig":                                 {"tig", "", `git config tig.bind.generic "j !touch $MARK"`, "git config tig.bind.generic && touch ../ran; :", ".git/config"},
	"git flow":                            {"git", "", `mkdir h; printf '#!/bin/sh\ntouch %s\n' "$MARK" > h/pre-flow-feature-start; chmod +x h/pre-flow-feature-start; git config gitflow.path.hooks "$PWD/h"`, "git config gitflow.path.hooks && touch ../ran; :", ".git/config"},
	"git flow, a value that it evaluates": {"git", "", `git config gitflow.release.finish.message '$(touch '"$MARK)"`, "git config gitflow.release.finish.message && touch ../ran; :", ".git/config"},
	"git annex":                           {"git", "", `git config annex.ssh-options "-oProxyCommand=touch $MARK"`, "git config annex.ssh-options && touch ../ran; :", ".git/config"},
	"git svn":                             {"git", "", `git config svn.configdir "$PWD/c"`, "git config svn.configdir && touch ../ran; :", ".git/config"},
	"bash, the prompt of a rebase":        {"bash", "", promptStep("rebase-merge/msgnum", "rebase-merge/end"), prompt, ".git/rebase-merge/msgnum"},
	"bash, the prompt of git am":          {"bash", "", promptStep("rebase-apply/last", "rebase-apply/next"), prompt, ".git/rebase-apply/last"},
	"bash, the prompt of a work tree":     {"bash", "git worktree add -q w", promptStep("worktrees/w/rebase-merge/end", "worktrees/w/rebase-merge/msgnum"), "cd w; " + prompt, ".git/worktrees/w/rebase-merge/end"},
	"lazygit, in the repository":          {"git", "", `echo 'git: {paging: {pager: ./x}}' > .git/lazygit.yml`, "true", ".git/lazygit.yml"},
	"jj, a repo that is a file":           {"git", "mkdir -p .jj/repo/store", `mkdir r; printf '[aliases]\nst=["util", "exec", "--", "./x"]\n' > r/config.toml; mv .jj/repo o; echo ../r > .jj/repo`, "true", ".jj/repo"},
	"jj, a directory that is a link":      {"git", "mkdir -p .jj/repo/store", `mkdir -p r/repo; touch r/repo/config.toml; mv .jj o; ln -s r .jj`, "true", ".jj"},
	"darcs, a directory that is a link":   {"git", "mkdir -p _darcs/prefs", `mkdir p; echo 'ALL posthook x' > p/defaults; rmdir _darcs/prefs; ln -s ../p _darcs/prefs`, "true", "_darcs/prefs"},
	"many others": {"git", "mkdir -p .pijul .lsp mise/conf.d .sl .config .github", `for f in .pijul/config .lsp/config.edn mise/conf.d/x.toml .sl/sharedpath _exrc hie.yaml .hie-bios buildServer.json .kateproject .lite_project.lua .local.vimrc .ycm_extra_conf.py x.ipr .lazygit.yml .byebugrc .psysh.php .shadowenv.d/1.lisp irb.rc _irbrc '$irbrc' .letta/settings.json .superset/config.json conductor.json gptme.toml .github/lsp.json .config/irb/irbrc; do ` + writeSetting("x") + `; done`, "true",
		".pijul/config .lsp/config.edn mise/conf.d/x.toml .sl/sharedpath _exrc hie.yaml .hie-bios buildServer.json .kateproject .lite_project.lua .local.vimrc .ycm_extra_conf.py x.ipr .lazygit.yml .byebugrc .psysh.php .shadowenv.d/1.lisp irb.rc _irbrc $irbrc .letta/settings.json .superset/config.json conductor.json gptme.toml .github/lsp.json .config/irb/irbrc"},
}

// promptStep writes a command into a file of an unfinished operation that holds
// the number of a step, and a number into the other.
func promptStep(file, other string) string {
	return "mkdir .git/" + filepath.Dir(file) + "\necho '$(touch '\"$MARK)\" > .git/" + file + "; echo 1 > .git/" + other
}

// prompt shows the prompt of git-prompt.sh, or of a function with the same effect.
const prompt = `. "$(git --exec-path)/git-sh-prompt" 2>/dev/null || __git_ps1() { PS1=$(cat "$(git rev-parse --git-dir)"/rebase-*/{msgnum,end,next,last} 2>/dev/null); }
	__git_ps1 a b; : "${PS1@P}"`

// TestSettingsOfCompanions: what a command leaves for programs next to git,
// editors and interpreters is removed, and does not run.
func TestSettingsOfCompanions(t *testing.T) {
	t.Parallel()
	enforced := levels(t)
	for name, c := range companionPlantings {
		t.Run(name, func(t *testing.T) {
			sandboxtest.SkipUnsampled(t)
			t.Parallel()
			if _, err := exec.LookPath(c.program); err != nil {
				t.Skip("not run, there is no " + c.program)
			}
			for _, level := range enforced {
				p := newProject(t)
				p.user(c.before + "\n:")
				r := p.runner(level)
				run(t, r, p.command("true"))
				result, out := run(t, r, p.command("MARK='"+p.mark+"'\n"+c.script+"\nrm -f \"$MARK\" 2>/dev/null; :"))
				if level == proc.Off {
					if c.look != "true" {
						require.True(t, p.ran(c.look), "does not work unconfined: %s", out)
					}
					continue
				}
				text := fmt.Sprint(name, level, result.Reverted, out)
				require.False(t, p.ran(c.look), text)
				for _, name := range strings.Fields(c.settings) {
					require.Contains(t, result.Reverted, filepath.Join(p.root, name), text)
				}
			}
		})
	}
}

// TestDirectoriesOfVersionControlAreWritable: a file with settings that the user
// has in .hg, .pijul or .config does not make the rest of the directory read-only.
func TestDirectoriesOfVersionControlAreWritable(t *testing.T) {
	t.Parallel()
	const names = ".hg/hgrc .hg/sharedpath .pijul/config .lsp/config.edn .config/mise/config.toml .github/hooks/x.json mise/config.toml mise/conf.d/x.toml .jj/repo"
	for _, level := range levels(t) {
		if level == proc.Off {
			continue
		}
		p := newProject(t)
		p.user("for f in " + names + "; do mkdir -p $(dirname $f); echo mine > $f; done")
		r := p.runner(level)
		result, out := run(t, r, p.command("for f in .hg/dirstate .pijul/x .lsp/x .config/x .github/x mise/x mise/conf.d/x .jj/x; do echo x > $f || exit 1; done"))
		require.Zero(t, result.ExitCode, "%s: %s", level, out)
		require.Empty(t, result.Reverted, level)
		run(t, r, p.command("for f in "+names+"; do echo evil > $f; done; mv .hg h; mkdir .hg; echo evil > .hg/hgrc"))
		for _, name := range strings.Fields(names) {
			text, err := os.ReadFile(filepath.Join(p.root, name))
			require.NoError(t, err, level)
			require.Equal(t, "mine\n", string(text), "%s at %s", name, level)
		}
	}
}
