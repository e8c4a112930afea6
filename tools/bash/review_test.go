//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/changes"
)

var changesID = regexp.MustCompile(`changes (c[a-z2-7]{6})`)

// reviewed starts a server that keeps changes apart; it skips the test if this
// machine cannot do that.
func reviewed(t *testing.T, p *place, mode string) server {
	t.Helper()
	s := p.serve("--changes", mode)
	if r := s.bash("true"); r.IsError {
		require.Equal(t, "SANDBOX_UNAVAILABLE", r.Code, r.Text)
		t.Skip(r.Text)
	}
	return s
}

func idOf(t *testing.T, r mcpkittest.Result) string {
	t.Helper()
	found := changesID.FindStringSubmatch(r.Text)
	require.NotNil(t, found, r.Text)
	return found[1]
}

func content(t *testing.T, p *place, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.root, name))
	require.NoError(t, err)
	return string(text)
}

func TestReview(t *testing.T) {
	p := newPlace(t)
	p.write("root/a", "one\ntwo\nthree\n")
	p.write("root/old/x", "x\n")
	s := reviewed(t, p, "review")
	r := s.bash(`umask 022; sed -i s/two/2/ a; rm -r old; mkdir -p new/deep; cd new/deep; echo key > k; printf '\0' > b`)
	id := idOf(t, r)
	require.Contains(t, r.Text, "not applied yet: 2 created, 1 modified, 1 deleted: ~a +new/deep/b +new/deep/k -old;")
	require.Equal(t, "one\ntwo\nthree\n", content(t, p, "a"))
	require.NoDirExists(t, filepath.Join(p.root, "new"))

	r = s.bash("pwd; cat k ../../a; ls ../../old")
	require.Contains(t, r.Text, p.root+"/new/deep\nkey\none\n2\nthree\nls: cannot access", "the next command sees the changes, and the directory")
	require.Equal(t, id, idOf(t, r))

	r = s.job("action", "diff", "job_id", id)
	require.Contains(t, r.Text, "--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n")
	require.Contains(t, r.Text, "--- /dev/null\n+++ b/new/deep/k\n@@ -0,0 +1 @@\n+key\n")
	require.Contains(t, r.Text, "created new/deep/b (-rw-r--r--, 1 bytes)\n")
	require.Contains(t, r.Text, "deleted old/ with all of its contents\n")
	r = s.job("action", "diff", "job_id", id, "files", []string{"new/deep/k"})
	require.NotContains(t, r.Text, "--- a/a")

	require.Contains(t, s.job("action", "list").Text, "changes "+id+"  2 created")
	r = s.job("action", "apply", "job_id", id, "files", []string{"a"})
	require.False(t, r.IsError, r.Text)
	require.Equal(t, "one\n2\nthree\n", content(t, p, "a"))
	require.DirExists(t, filepath.Join(p.root, "old"))
	r = s.job("action", "apply", "job_id", id)
	require.False(t, r.IsError, r.Text)
	require.Contains(t, r.Text, "applied 2 created, 1 deleted of changes "+id)
	require.NoDirExists(t, filepath.Join(p.root, "old"))
	require.Equal(t, "key\n", content(t, p, "new/deep/k"))
	require.Contains(t, s.bash("pwd").Text, "no changes")
	require.Equal(t, "0 jobs\n", s.job("action", "list").Text)
}

func TestReviewConflict(t *testing.T) {
	p := newPlace(t)
	p.write("root/a", "one\n")
	s := reviewed(t, p, "review")
	id := idOf(t, s.bash("echo ours > a; echo ours > b"))
	p.write("root/a", "theirs\n")
	r := s.job("action", "apply", "job_id", id)
	require.Equal(t, "CONFLICT", r.Code)
	require.Contains(t, r.Text, "not applied: a was changed in the meantime\n")
	require.Equal(t, "theirs\n", content(t, p, "a"))
	require.NoFileExists(t, filepath.Join(p.root, "b"))
	require.False(t, s.job("action", "apply", "job_id", id, "files", []string{"b"}).IsError)
	require.Equal(t, "ours\n", content(t, p, "b"))
	require.False(t, s.job("action", "discard", "job_id", id).IsError)
	require.Equal(t, "theirs\n", content(t, p, "a"))
	require.Equal(t, "NOT_FOUND", s.job("action", "apply", "job_id", id).Code)
}

// An empty name chooses no file, and so not all of them.
func TestReviewOfAnEmptyName(t *testing.T) {
	p := newPlace(t)
	s := reviewed(t, p, "review")
	id := idOf(t, s.bash("echo 1 > one"))
	for _, name := range []string{"", " "} {
		require.Equal(t, "NOT_FOUND", s.job("action", "apply", "job_id", id, "files", []string{name}).Code)
	}
	require.NoFileExists(t, filepath.Join(p.root, "one"))
}

// Protected files stay out of the tree, however a command creates them.
func TestReviewKeepsProtectedFilesOut(t *testing.T) {
	p := newPlace(t)
	s := reviewed(t, p, "review")
	id := idOf(t, s.bash("mkdir -p sub x.git; echo {} > sub/.mcp.json; echo {} > x.git/.mcp.json; echo x > plain"))
	r := s.job("action", "apply", "job_id", id)
	require.False(t, r.IsError, r.Text)
	require.Contains(t, r.Text, "not applied: sub/.mcp.json ")
	require.NoFileExists(t, filepath.Join(p.root, "sub/.mcp.json"))
	require.NoFileExists(t, filepath.Join(p.root, "x.git/.mcp.json"))
	require.FileExists(t, filepath.Join(p.root, "plain"))
}

// Files planted by a command do not count as the user's because they were
// applied.
func TestAppliedPlantsAreTakenBack(t *testing.T) {
	p := newTrapped(t)
	s := reviewed(t, p.place, "review")
	id := idOf(t, s.bash("git config core.fsmonitor ./x.sh; echo x > plain"))
	r := s.job("action", "apply", "job_id", id)
	require.False(t, r.IsError, r.Text)
	require.Contains(t, r.Text, "put back as it was: .git/config")
	require.False(t, p.ran())
	require.FileExists(t, filepath.Join(p.root, "plain"))
}

// Changes by git in review are applied completely: the user's git sees no
// difference.
func TestReviewOfGit(t *testing.T) {
	p := newPlace(t)
	p.env = append(p.env, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	git := func(script string) string {
		cmd := exec.Command("sh", "-c", script)
		cmd.Dir, cmd.Env = p.root, p.env
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", script, out)
		return string(out)
	}
	p.write("root/a", "one\n")
	git("git init -q . && git add a && git commit -qm first")
	s := reviewed(t, p, "review")
	for _, c := range []struct{ does, look, want string }{
		{"git checkout -qb topic; echo two > a; git add a; git -c user.name=a -c user.email=a@b commit -qm second", "git status --short; git log --format=%s; git branch --show-current", "second\nfirst\ntopic\n"},
		{"git init -q new; cd new; echo k > k; git add k; git -c user.name=a -c user.email=a@b commit -qm inner", "git -C new status --short; git -C new log --format=%s", "inner\n"},
		{"cd ..; git worktree add -q w first-branch 2>/dev/null || git worktree add -q -b other w", "git -C w status --short; git worktree list | wc -l; git fsck 2>&1", "2\n"},
		{"git remote add o /nowhere; git branch x; echo c > a; git stash -q", "git remote; git stash list | wc -l", "o\n1\n"},
	} {
		r := s.bash(c.does)
		require.Contains(t, r.Text, "exit 0", c.does)
		r = s.job("action", "apply", "job_id", idOf(t, r))
		require.False(t, r.IsError, r.Text)
		require.NotContains(t, r.Text, "not applied", c.does)
		require.NotContains(t, r.Text, "left", c.does)
		require.Equal(t, c.want, git(c.look), c.does)
	}
	r := s.bash("cd " + p.root + "; git init -q e; git -C e config core.fsmonitor ../x.sh; printf '#!/bin/sh\ntouch " + p.root + "/ran\n' > x.sh; chmod +x x.sh")
	r = s.job("action", "apply", "job_id", idOf(t, r))
	require.Contains(t, r.Text, "e/.git/config", "settings that run a program are taken out")
	git("git -C e status; git status")
	require.NoFileExists(t, filepath.Join(p.root, "ran"))
}

func TestDiscardedChanges(t *testing.T) {
	p := newPlace(t)
	p.write("root/a", "one\n")
	s := reviewed(t, p, "discard")
	r := s.bash("rm a; echo x > b; ls")
	require.Contains(t, r.Text, "discarded: 1 created, 1 deleted: -a +b")
	require.Equal(t, "one\n", content(t, p, "a"))
	require.Contains(t, s.bash("ls").Text, "a\nexit 0", "the next command begins with the tree as it is")
	left, err := filepath.Glob(filepath.Join(p.kept, "changes-1", "*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// A job's changes share a set with concurrent commands, and the changes of a
// killed server are available to the next one.
func TestReviewOfJobs(t *testing.T) {
	p := newPlace(t)
	s := reviewed(t, p, "review")
	id := idOf(t, s.bash("echo 1 > one"))
	job := text(t, s.bash("echo 2 > two; read line; echo $line > three", "run_in_background", true), "job_id")
	require.Contains(t, s.bash("ls; echo 4 > four").Text, "one\nexit 0", "what a job that still runs has changed is not seen")
	require.Equal(t, "CONFLICT", s.job("action", "apply", "job_id", id).Code)
	r := s.job("action", "write", "job_id", job, "input", "done\n\u0004", "wait_ms", 20000)
	within(t, "the job ends", func() bool {
		r = s.job("action", "poll", "job_id", job, "wait_ms", 5000)
		return r.Meta["running"] != true
	})
	require.Contains(t, r.Text, "+four +one +three +two", "an answer about the ended job")
	require.NoError(t, syscall.Kill(s.PID(), syscall.SIGKILL))
	again := p.serve("--changes", "review")
	require.Contains(t, again.job("action", "list").Text, "changes "+id)
	require.False(t, again.job("action", "apply", "job_id", id).IsError)
	require.Equal(t, "done\n", content(t, p, "three"))
}

func TestReviewNeedsL2(t *testing.T) {
	p := newPlace(t)
	for _, level := range []string{"L1", "off"} {
		out, err := exec.Command(mcpkittest.Build(t, "./tools/bash"), "--changes", "review", "--sandbox", level, "--root", p.root).CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(out), "--changes review needs --sandbox L2")
	}
}

// A name can be given in files as an answer shows it, or as git quotes it.
func TestReviewOfOddNames(t *testing.T) {
	for _, c := range []struct{ name, shown string }{
		{"bad\xff", `bad\xff`}, {"nl\nx", `nl\nx`}, {"nl\nx", `"nl\nx"`}, {"nl\nx", `"nl\\nx"`}, {"nl\nx", "nl\nx"}, {"back\\nx", `back\\nx`},
		{"a b", `'a b'`}, {"it's · ok", `'it'\''s · ok'`}, {"\u00e4", `"\303\244"`}, {"a;b", "a;b"},
	} {
		p := newPlace(t)
		p.write("root/other", "")
		s := reviewed(t, p, "review")
		r := s.bash(`printf x > "$NAME"; echo x > other`, "env", map[string]any{"NAME": c.name})
		if c.name == "bad\xff" {
			r = s.bash(`printf x > $'bad\xff'; echo x > other`)
		}
		id := idOf(t, r)
		if c.shown != c.name && c.shown[0] != '"' {
			require.Contains(t, r.Text, " +"+c.shown+" ")
		}
		r = s.job("action", "diff", "job_id", id, "files", []string{c.shown})
		require.False(t, r.IsError, r.Text)
		r = s.job("action", "apply", "job_id", id, "files", []string{c.shown})
		require.Contains(t, r.Text, "applied 1 created of changes", c.shown)
		require.FileExists(t, filepath.Join(p.root, c.name))
		require.Empty(t, content(t, p, "other"))
	}
}

// The names of files in errors contain no escape sequences for a terminal.
func TestReviewEscapesUnknownNames(t *testing.T) {
	p := newPlace(t)
	s := reviewed(t, p, "review")
	id := idOf(t, s.bash("echo x > a"))
	for _, action := range []string{"diff", "apply"} {
		r := s.job("action", action, "job_id", id, "files", []string{"zz\x1b[2J"})
		require.Equal(t, "NOT_FOUND", r.Code)
		require.Contains(t, r.Text, `zz\x1b[2J`)
		require.NotContains(t, r.Text, "\x1b")
	}
}

// The words about applied times and about a conflict.
func TestReviewTexts(t *testing.T) {
	p := newPlace(t)
	p.write("root/a", "one\n")
	p.write("root/b", "one\n")
	s := reviewed(t, p, "review")
	r := s.job("action", "apply", "job_id", idOf(t, s.bash("touch -d @1700000000 a")))
	require.Contains(t, r.Text, "applied the times of 1 file of changes")
	id := idOf(t, s.bash("echo two > a; echo two > b"))
	p.write("root/a", "theirs\n")
	r = s.job("action", "apply", "job_id", id)
	require.Contains(t, r.Text, "nothing was applied: 1 file in changes "+id+" was changed by other programs in the meantime; apply the other files by their names, or discard the changes")
	r = s.job("action", "apply", "job_id", id, "files", []string{"b"})
	require.Contains(t, r.Text, "applied 1 modified of changes "+id+"; 1 change of them left")
}

// An apply that stops after some changes names them.
func TestAppliedBeforeAnError(t *testing.T) {
	root := t.TempDir()
	fsys, err := sandbox.New(sandbox.Config{Roots: []string{root}}).FS(t.Context())
	require.NoError(t, err)
	require.Empty(t, appliedBeforeError(fsys, []string{root}, nil))
	require.Equal(t, "applied before the error: 1 created, 1 deleted: -d/old +new\n", appliedBeforeError(fsys, []string{root}, []changes.Change{
		{Entry: changes.Entry{Path: "d/old", Kind: changes.Deleted}}, {Entry: changes.Entry{Path: "new", Kind: changes.Created}},
	}))
}

// rename(2) of a directory fails over an overlay: the answer says what works.
func TestReviewOfARenamedDirectory(t *testing.T) {
	p := newPlace(t)
	p.write("root/d/x", "x\n")
	s := reviewed(t, p, "review")
	r := s.bash(`perl -e 'rename("d", "e") or die "$!\n"'`)
	require.Contains(t, r.Text, "Invalid cross-device link")
	require.Contains(t, r.Text, "directories from before the command cannot be renamed with rename(2) under --changes: use mv, which copies them (instead of git mv: mv, then git add -A)")
	r = s.bash("mv d e")
	require.NotContains(t, r.Text, "rename(2)")
	r = s.job("action", "apply", "job_id", idOf(t, r))
	require.False(t, r.IsError, r.Text)
	require.Equal(t, "x\n", content(t, p, "e/x"))
	require.NoDirExists(t, filepath.Join(p.root, "d"))
}

// TestReviewShowsEmptyDirectories: a created directory without files is named and
// counted.
func TestReviewShowsEmptyDirectories(t *testing.T) {
	p := newPlace(t)
	s := reviewed(t, p, "review")
	r := s.bash("mkdir -p empty/deeper full; echo x >full/file")
	require.Contains(t, r.Text, "not applied yet: 2 created: +empty/deeper/ +full/file;")
	r = s.job("action", "apply", "job_id", idOf(t, r))
	require.Contains(t, r.Text, "applied 2 created of changes")
	require.DirExists(t, filepath.Join(p.root, "empty", "deeper"))
}

// TestReviewOfHardLinks: the answers to the command, to diff and to apply name changed files
// with other hard links, and say what apply does to them.
func TestReviewOfHardLinks(t *testing.T) {
	p := newPlace(t)
	for _, name := range []string{"mode", "time", "text", "alone"} {
		p.write("root/"+name, "old\n")
		if name != "alone" {
			require.NoError(t, os.Link(filepath.Join(p.root, name), filepath.Join(p.root, name+"2")))
		}
	}
	s := reviewed(t, p, "review")
	r := s.bash("chmod 700 mode; touch -d @1000000000 time; echo new > text; echo new > alone")
	require.Contains(t, r.Text, "; hard links, of which the command saw the other names unchanged: mode text time; bash_job")
	id := idOf(t, r)
	r = s.job("action", "diff", "job_id", id)
	require.Contains(t, r.Text, "touched time (same content, 1 other name: apply gives them the new time, too; if the command has put another file in its place, apply leaves the hard link)\n")
	const rule = "(1 other name: if the content is new, apply makes this name a separate file; if only the mode or time is new, they get it, too)"
	require.Regexp(t, "modified mode mode .* "+regexp.QuoteMeta(rule)+"\n", r.Text)
	require.Contains(t, r.Text, "\ntext "+rule+"\n")
	r = s.job("action", "apply", "job_id", id)
	require.Contains(t, r.Text, "hard links: a new content is in these names only, a new mode or time in their other names, too: mode text time\n")
	require.Equal(t, "old\n", content(t, p, "text2"))
	for _, name := range []string{"mode", "time"} {
		one, err := os.Stat(filepath.Join(p.root, name))
		require.NoError(t, err)
		other, err := os.Stat(filepath.Join(p.root, name+"2"))
		require.NoError(t, err)
		require.True(t, os.SameFile(one, other), name)
	}
	require.NotContains(t, s.bash("rm mode2; echo more >> alone").Text, "hard links")
	require.Contains(t, s.bash("mv time2 moved").Text, "unchanged: mode2 time2;")
}

// TestReviewShowsGitSettings: a changed setting of git is in the diff; its objects are
// counted.
func TestReviewShowsGitSettings(t *testing.T) {
	p := newPlace(t)
	s := reviewed(t, p, "review")
	r := s.bash("git init -q .; git config url.https://evil.example/.insteadOf https://github.com/; echo x >f; git add f")
	require.Contains(t, r.Text, "+.git/config")
	require.Contains(t, r.Text, " of git's own")
	r = s.job("action", "diff", "job_id", idOf(t, r))
	require.Contains(t, r.Text, "+++ b/.git/config\n")
	require.Contains(t, r.Text, "insteadOf = https://github.com/")
	require.NotContains(t, r.Text, ".git/index")
}

// TestLossIsTold: the text of the answer says that a large hook was changed and cannot
// be restored.
func TestLossIsTold(t *testing.T) {
	p := newPlace(t)
	s := p.serve("--sandbox", "L1")
	if r := s.bash("git init -q ."); r.IsError {
		t.Skip(r.Text)
	}
	hook := filepath.Join(p.root, ".git", "hooks", "pre-commit")
	require.NoError(t, os.WriteFile(hook, make([]byte, 17<<20), 0o755))
	require.NotContains(t, s.bash("true").Text, "not protected")
	require.Contains(t, s.bash("echo evil > .git/hooks/pre-commit").Text, "not protected: files that commands leave in "+p.root+" for other programs to run: .git/hooks/pre-commit was changed, and cannot be restored")
	require.NotContains(t, s.bash("true").Text, "not protected")
}
