//go:build linux

package main

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

func TestUndo(t *testing.T) {
	for _, level := range []string{"L2", "L1"} {
		t.Run(level, func(t *testing.T) {
			p := newPlace(t)
			p.write("root/a", "one\n")
			p.write("root/old/x", "x\n")
			s := p.serve("--undo", "--sandbox", level)
			r := s.bash("echo two > a")
			if r.Code == "SANDBOX_UNAVAILABLE" {
				t.Skip(r.Text)
			}
			first := text(t, r, "changes")
			second := text(t, s.bash("rm -r old; mkdir new; echo n > new/n"), "changes")
			require.Nil(t, s.bash("cat a").Meta["changes"], "a command that changes nothing has no record")
			list := s.job("action", "list").Text
			require.Regexp(t, `undo `+second+`  \S+ \S+  rm -r old; mkdir new; echo n > new/n\nundo `+first+`  \S+ \S+  echo two > a\n`, list)

			r = s.job("action", "undo")
			require.False(t, r.IsError, r.Text)
			require.Contains(t, r.Text, "undone "+second+" (rm -r old; mkdir new; echo n > new/n): 2 entries restored, 1 removed, 0 moved back\n")
			require.Equal(t, "x\n", content(t, p, "old/x"))
			require.NoDirExists(t, filepath.Join(p.root, "new"))
			require.Equal(t, "NOT_FOUND", s.job("action", "undo", "job_id", second).Code)

			p.write("root/a", "theirs\n")
			r = s.job("action", "undo")
			require.Equal(t, "CONFLICT", r.Code)
			require.Contains(t, r.Text, "nothing was undone")
			require.Equal(t, "theirs\n", content(t, p, "a"))

			again := p.serve("--undo", "--sandbox", level)
			require.Equal(t, "NOT_FOUND", again.job("action", "undo").Code, "no command of that server")
			require.Equal(t, "CONFLICT", again.job("action", "undo", "job_id", first).Code)
		})
	}
}

// A commit is undone together with its changes in the repository, including the
// index.
func TestUndoOfCommit(t *testing.T) {
	p := newPlace(t)
	p.write("root/a", "one\n")
	git := exec.Command("sh", "-c", "git init -q . && git -c user.name=a -c user.email=a@b add a && git -c user.name=a -c user.email=a@b commit -qm first")
	git.Dir = p.root
	out, err := git.CombinedOutput()
	require.NoError(t, err, string(out))
	seen := func() string { return treeState(t, p.root) }
	before := seen()
	s := p.serve("--undo")
	r := s.bash("echo two > a; echo b > b; git add -A; git -c user.name=a -c user.email=a@b commit -qm second; git log --oneline | wc -l; git status --porcelain")
	require.Contains(t, r.Text, "2\nexit 0")
	require.NotEqual(t, before, seen())
	r = s.job("action", "undo")
	require.False(t, r.IsError, r.Text)
	require.Equal(t, before, seen())
}

// The records of a killed server are listed before the next server runs a command.
func TestUndoListOfALaterServer(t *testing.T) {
	p := newPlace(t)
	s := p.serve("--undo")
	id := text(t, s.bash("echo 1 > one"), "changes")
	require.NoError(t, syscall.Kill(s.PID(), syscall.SIGKILL))
	require.Contains(t, p.serve("--undo").job("action", "list").Text, "undo "+id)
}

// A job's changes can be undone once it has ended.
func TestUndoOfJob(t *testing.T) {
	p := newPlace(t)
	s := p.serve("--undo")
	job := text(t, s.bash("echo 1 > one; echo ready; read line; echo 2 > two", "run_in_background", true), "job_id")
	within(t, "it is ready", func() bool {
		return strings.Contains(s.job("action", "poll", "job_id", job, "since", 0, "wait_for", "ready", "wait_ms", 5000).Text, "ready\n")
	})
	require.Equal(t, "CONFLICT", s.job("action", "undo").Code)
	s.job("action", "write", "job_id", job, "input", "go\n\u0004", "wait_ms", 20000)
	var r mcpkittest.Result
	within(t, "the job ends", func() bool {
		r = s.job("action", "poll", "job_id", job, "wait_ms", 5000)
		return r.Meta["running"] != true
	})
	id := text(t, r, "changes")
	require.False(t, s.job("action", "undo", "job_id", id).IsError)
	require.NoFileExists(t, filepath.Join(p.root, "one"))
	require.NoFileExists(t, filepath.Join(p.root, "two"))
}

func TestUndoFlags(t *testing.T) {
	p := newPlace(t)
	for wrong, flags := range map[string][]string{
		"--undo needs --sandbox L2 or L1":                {"--undo", "--sandbox", "off"},
		"--undo and --changes review cannot be combined": {"--undo", "--changes", "review"},
		"--undo and --no-state cannot be combined":       {"--undo", "--no-state"},
	} {
		out, err := exec.Command(mcpkittest.Build(t, "./tools/bash"), append([]string{"--root", p.root}, flags...)...).CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(out), wrong)
	}
}

// The answer of a command names the files that undo cannot restore, and so does the
// answer of undo.
func TestUndoNamesWhatItCannotRestore(t *testing.T) {
	p := newPlace(t)
	for _, name := range []string{"large\n2", "read"} {
		p.write("root/"+name, "")
		require.NoError(t, os.Truncate(filepath.Join(p.root, name), 20<<20))
	}
	s := p.serve("--undo")
	r := s.bash("echo more >> large?2; cat read > /dev/null; echo 1 > one")
	require.Contains(t, r.Text, ` · undo cannot restore: large\n2 (20 MiB before the command), because copies of changed files are kept up to 16 MiB each`)
	r = s.job("action", "undo")
	require.False(t, r.IsError, r.Text)
	require.Contains(t, r.Text, "1 removed")
	require.Contains(t, r.Text, `not recorded (too large or unreadable), left as it is: large\n2`)

	job := text(t, s.bash("echo more >> read; echo ready; read line", "run_in_background", true), "job_id")
	s.job("action", "write", "job_id", job, "input", "go\n\u0004", "wait_ms", 20000)
	within(t, "the job ends", func() bool {
		r = s.job("action", "poll", "job_id", job, "wait_ms", 5000)
		return r.Meta["running"] != true
	})
	require.Contains(t, r.Text, "undo cannot restore: read (20 MiB before the command)")
}

// After kill -9 of a server, another one undoes its command's changes so far.
// UNDO_KILLS sets the number of attempts.
func TestUndoAfterKill(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("UNDO_KILLS"))
	if n == 0 {
		n = 4
	}
	random := rand.New(rand.NewPCG(7, uint64(time.Now().UnixNano())))
	for i := range n {
		p := newPlace(t)
		for d := range 9 {
			for f := range 12 {
				p.write(fmt.Sprintf("root/d%d/f%d", d, f), fmt.Sprintln(d, f))
			}
		}
		before := treeState(t, p.root)
		s := p.serve("--undo", "--sandbox", []string{"L2", "L1"}[i%2])
		if r := s.bash("true"); r.Code == "SANDBOX_UNAVAILABLE" {
			t.Skip(r.Text)
		}
		s.Go("tools/call", mcpkittest.CallParams("bash", arg("command",
			`for round in {1..1000}; do for d in d*; do echo more >> $d/f1; rm -f $d/f2; mv $d/f3 $d/f4; mkdir -p $d/sub; echo t > $d/sub/t; mv $d moved; mv moved x$d; mv x$d $d; chmod 600 $d/f5; done; done`)))
		record := ""
		within(t, "something is recorded", func() bool {
			found, _ := filepath.Glob(filepath.Join(p.kept, "commands-1", "u*", "log"))
			for _, name := range found {
				record = filepath.Base(filepath.Dir(name))
			}
			return record != ""
		})
		time.Sleep(time.Duration(random.IntN(120)) * time.Millisecond)
		require.NoError(t, syscall.Kill(s.PID(), syscall.SIGKILL))
		again := p.serve("--undo")
		var r mcpkittest.Result
		within(t, "the command has ended", func() bool {
			r = again.job("action", "undo", "job_id", record)
			return !strings.Contains(r.Text, "still runs")
		})
		require.False(t, r.IsError, r.Text)
		require.NotContains(t, r.Text, "the end of the command was not recorded")
		require.Equal(t, before, treeState(t, p.root))
	}
}

// treeState describes a tree: names, modes, times and contents.
func treeState(t testing.TB, root string) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(&b, strings.TrimPrefix(name, root), info.Mode(), info.ModTime().UnixNano())
		if info.Mode().IsRegular() {
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			b.Write(text)
		}
		return nil
	}))
	return b.String()
}
