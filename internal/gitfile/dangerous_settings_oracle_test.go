//go:build oracle

package gitfile_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/bench/oracle"
	"github.com/toolroom-mcp/toolroom/internal/gitfile"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// A real git runs a program for each of these settings, and DangerousSettings finds
// them. RUN in a value is a script that leaves a mark.
func TestGitRunsWhatIsClassified(t *testing.T) {
	git := oracle.Path(t, "git")
	for name, c := range map[string]struct {
		settings []string // key=value
		command  string
	}{
		"alias":             {[]string{"alias.st=!RUN"}, "git st"},
		"alias with -c":     {[]string{"alias.st=-c core.fsmonitor=RUN status"}, "git st"},
		"alias rebase -x":   {[]string{"alias.rb=rebase -x RUN HEAD~1"}, "git rb"},
		"alias difftool":    {[]string{"alias.dt=difftool -y -x RUN HEAD~1"}, "git dt"},
		"alias grep":        {[]string{"alias.g=grep -ORUN two"}, "git g"},
		"alternate refs":    {[]string{"core.alternateRefsCommand=RUN"}, "git init -q other; echo $PWD/.git/objects >other/.git/objects/info/alternates; git -C other config core.alternateRefsCommand RUN; git -C other fetch .. "},
		"askpass":           {[]string{"core.askPass=RUN"}, "printf 'protocol=https\\nhost=x\\n\\n' | git credential fill"},
		"editor":            {[]string{"core.editor=RUN"}, "git commit --amend"},
		"fsmonitor":         {[]string{"core.fsmonitor=RUN"}, "git status"},
		"hooks":             {[]string{"core.hooksPath=hooks"}, "mkdir hooks; cp RUN hooks/pre-commit; git commit --allow-empty -m x"},
		"ssh":               {[]string{"core.sshCommand=RUN"}, "git fetch ssh://x/y"},
		"git proxy":         {[]string{"core.gitProxy=RUN"}, "git fetch git://x/y"},
		"credential":        {[]string{"credential.helper=RUN"}, "printf 'protocol=https\\nhost=x\\n\\n' | git credential fill"},
		"external diff":     {[]string{"diff.external=RUN"}, "git diff HEAD~1"},
		"diff driver":       {[]string{"diff.x.command=RUN"}, "echo '* diff=x' >.gitattributes; git diff HEAD~1"},
		"textconv":          {[]string{"diff.x.textconv=RUN"}, "echo '* diff=x' >.gitattributes; git diff HEAD~1"},
		"difftool":          {[]string{"difftool.x.cmd=RUN"}, "git difftool -y -t x HEAD~1"},
		"clean":             {[]string{"filter.x.clean=RUN"}, "echo '* filter=x' >.gitattributes; git add ."},
		"process":           {[]string{"filter.x.process=RUN"}, "echo '* filter=x' >.gitattributes; git add ."},
		"smudge":            {[]string{"filter.x.smudge=RUN"}, "echo '* filter=x' >.gitattributes; rm f; git checkout f"},
		"gpg":               {[]string{"gpg.program=RUN"}, "git commit -S --allow-empty -m x"},
		"gpg by format":     {[]string{"gpg.format=x509", "gpg.x509.program=RUN"}, "git commit -S --allow-empty -m x"},
		"key command":       {[]string{"gpg.format=ssh", "gpg.ssh.defaultKeyCommand=RUN"}, "git commit -S --allow-empty -m x"},
		"include":           {[]string{"include.path=../more"}, "printf '[core]\\nfsmonitor=RUN\\n' >more; git status"},
		"conditional":       {[]string{"includeIf.gitdir:/**.path=../more"}, "printf '[core]\\nfsmonitor=RUN\\n' >more; git status"},
		"merge driver":      {[]string{"merge.x.driver=RUN"}, "echo '* merge=x' >.git/info/attributes; git checkout -q -b o HEAD~1; echo z >f; git commit -qam z; git merge -"},
		"list of steps":     {[]string{"rebase.instructionFormat=%s%nexec RUN"}, "GIT_SEQUENCE_EDITOR=true git rebase -i HEAD~1"},
		"another format":    {[]string{"rebase.instructionFormat=foo", "pretty.foo=format:%s%nexec RUN"}, "GIT_SEQUENCE_EDITOR=true git rebase -i HEAD~1"},
		"sequence editor":   {[]string{"sequence.editor=RUN"}, "git rebase -i HEAD~1"},
		"upload pack":       {[]string{"remote.o.url=.", "remote.o.uploadpack=RUN"}, "git fetch o"},
		"name of a remote":  {[]string{"remote.origin.url=.", "remote.--upload-pack;git-upload-pack.url=."}, "sed -i 's|--upload-pack;|--upload-pack=RUN;|' .git/config; git fetch --all"},
		"receive pack":      {[]string{"remote.o.url=.", "remote.o.receivepack=RUN"}, "git push o HEAD:x"},
		"ext":               {[]string{"remote.o.url=ext::RUN", "protocol.ext.allow=always"}, "git fetch o"},
		"ext put together":  {[]string{"url.ext:.insteadOf=x", "protocol.ext.allow=always"}, "git fetch x:RUN"},
		"helper":            {[]string{"remote.o.url=run::x"}, "mkdir bin; cp RUN bin/git-remote-run; PATH=$PWD/bin:$PATH git fetch o"},
		"vcs":               {[]string{"remote.o.url=x", "remote.o.vcs=run"}, "mkdir bin; cp RUN bin/git-remote-run; PATH=$PWD/bin:$PATH git fetch o"},
		"trailer":           {[]string{"trailer.x.key=X", "trailer.x.cmd=RUN"}, "echo y | git interpret-trailers --trailer x=1"},
		"archive":           {[]string{"tar.x.command=RUN"}, "git archive --format=x HEAD"},
		"man":               {[]string{"man.viewer=x", "man.x.cmd=RUN"}, "git help -m status"},
		"browser":           {[]string{"browser.x.cmd=RUN"}, "git web--browse -t x http://x"},
		"layout of vimdiff": {[]string{"merge.tool=vimdiff", "mergetool.vimdiff.layout=`sh<x.sh`"}, "cp RUN x.sh; mkdir bin; printf '#!/bin/sh\\n' >bin/vim; chmod 755 bin/vim; cp bin/vim bin/vimdiff; git checkout -q -b o HEAD~1; echo z >f; git commit -qam z; git merge -; PATH=$PWD/bin:$PATH timeout 20 git mergetool -y </dev/null"},
		"group of remotes":  {[]string{"remotes.default=--upload-pack=RUN", "branch.main.remote=.", "branch.main.merge=refs/heads/main"}, "git branch -M main; git remote update"},
		"merge tool":        {[]string{"mergetool.x.cmd=RUN"}, "git checkout -q -b o HEAD~1; echo z >f; git commit -qam z; git merge -; echo y | git mergetool -y -t x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			script, mark := filepath.Join(dir, "run"), filepath.Join(dir, "mark")
			mcpkittest.WriteProgram(t, script, []byte("#!/bin/sh\n: >"+mark+"\n"))
			real := func(text string) string { return strings.ReplaceAll(text, "RUN", script) }
			sh := func(text string) {
				cmd := exec.Command("/bin/sh", "-c", text)
				cmd.Dir = filepath.Join(dir, "repo")
				cmd.Env = append(os.Environ(), "HOME="+dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=",
					"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b", "PATH="+filepath.Dir(git)+":"+os.Getenv("PATH"))
				cmd.Env = slices.DeleteFunc(cmd.Env, func(v string) bool { return strings.HasPrefix(v, "GIT_EDITOR=") })
				_, _ = cmd.CombinedOutput() // most of them fail: the mark tells
			}
			require.NoError(t, os.Mkdir(filepath.Join(dir, "repo"), 0o755))
			sh("git init -q; for i in one two; do echo $i >f; git add f; git commit -qm $i; done")
			for _, setting := range c.settings {
				key, value, _ := strings.Cut(setting, "=")
				sh("git config '" + key + "' '" + real(value) + "'")
			}
			config, err := os.ReadFile(filepath.Join(dir, "repo/.git/config"))
			require.NoError(t, err)
			runs, ok := gitfile.DangerousSettings(config)
			require.True(t, ok)
			require.NotEmpty(t, runs, "%s", config)
			require.NoFileExists(t, mark)
			sh(real(c.command))
			require.FileExists(t, mark)

			require.NoError(t, os.Remove(mark))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "repo/.git/config"), gitfile.WithoutSettings(config, runs), 0o644))
			sh("git reset -q --hard; git status; git fetch o; git commit --allow-empty -m x; git diff HEAD~1")
			require.NoFileExists(t, mark, "without them nothing runs")
		})
	}
}

// The keys of this git that testdata/keys.tsv does not have are named, for
// the next review: a new git is no failure.
func TestGitHasNoKeysUnknown(t *testing.T) {
	out, err := exec.Command(oracle.Path(t, "git"), "help", "-c").Output()
	require.NoError(t, err)
	known := map[string]bool{}
	for _, k := range documentedKeys(t) {
		known[k.name] = true
	}
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); strings.Contains(line, ".") && !strings.Contains(line, " ") && !known[line] {
			t.Logf("%s is not classified", line)
		}
	}
}
