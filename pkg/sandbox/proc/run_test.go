//go:build linux

package proc_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
)

// newRunner returns a runner. At the end of the test it closes the runner and
// checks that its temporary directory is empty.
func newRunner(t testing.TB, c proc.Config) *proc.Runner {
	t.Helper()
	if c.TempDir == "" {
		c.TempDir = t.TempDir()
	}
	if c.SpillDir == "" {
		c.SpillDir = t.TempDir()
	}
	r, err := proc.New(c)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, r.Close())
		left, err := os.ReadDir(c.TempDir)
		require.NoError(t, err)
		require.Empty(t, left, "private temporary directories are removed")
	})
	return r
}

// trusted returns a runner at a level that levels has tested.
func trusted(t testing.TB, level proc.Level) *proc.Runner {
	t.Helper()
	r := newRunner(t, proc.Config{Level: level})
	proc.TrustLevel(r, level)
	return r
}

func off(t testing.TB) *proc.Runner { return newRunner(t, proc.Config{Level: proc.Off}) }

func run(t testing.TB, r *proc.Runner, c proc.Command) (proc.Result, string) {
	t.Helper()
	if c.Dir == "" {
		c.Dir = "/"
	}
	result, out, err := r.Run(context.Background(), c)
	require.NoError(t, err)
	t.Cleanup(func() { out.Close() })
	return result, out.Excerpt(0).Text()
}

func TestRunsBash(t *testing.T) {
	r := off(t)
	dir := t.TempDir()
	for name, c := range map[string]struct {
		script, out string
		exit        int
	}{
		"output":                 {"echo hi", "hi\n", 0},
		"exit status":            {"exit 7", "", 7},
		"own signal":             {"kill -9 $$", "", 137},
		"bash, not sh":           {"x=(a b); echo ${x[1]}", "b\n", 0},
		"no login shell":         {"shopt -q login_shell || echo no", "no\n", 0},
		"streams in order":       {"echo a; echo b >&2; echo c; echo d >&2", "a\nb\nc\nd\n", 0},
		"stdin is empty":         {"cat; echo end", "end\n", 0},
		"no controlling tty":     {"(: </dev/tty) 2>/dev/null || echo none", "none\n", 0},
		"working directory":      {"pwd", dir + "\n", 0},
		"own session and group":  {`read -r _ _ _ _ pg sid _ < /proc/self/stat; [ $pg = $$ ] && [ $sid = $$ ] && echo own`, "own\n", 0},
		"no further descriptors": {"ls /proc/self/fd | wc -l", "4\n", 0}, // 0, 1, 2 and that of ls
		// Ignore signals 32 and 33, which are the C library's own. It ignores
		// them in the programs that it starts (as make does), and no program
		// sends them.
		"default signals": {`echo $((0x$(awk '/SigIgn/ { print $2 }' /proc/self/status) & ~0x180000000))`, "0\n", 0},
		"no core files":   {"ulimit -c", "0\n", 0},
		"syntax error":    {"if", "bash: -c: line 2: syntax error: unexpected end of file from `if' command on line 1\n", 2},
		"not found":       {"nosuchprogram", "bash: line 1: nosuchprogram: command not found\n", 127},
	} {
		t.Run(name, func(t *testing.T) {
			result, out := run(t, r, proc.Command{Script: c.script, Dir: dir})
			require.Equal(t, proc.Exited, result.Ending)
			require.Equal(t, c.exit, result.ExitCode)
			if name == "syntax error" || name == "not found" { // the messages are bash's
				require.NotEmpty(t, out)
				return
			}
			require.Equal(t, c.out, out)
			require.Zero(t, result.LeftBehind)
		})
	}
}

func TestReadsStdin(t *testing.T) {
	r := off(t)
	big := strings.Repeat("0123456789abcde\n", 1<<16) // more than the capacity of a pipe
	_, out := run(t, r, proc.Command{Script: "wc -c", Stdin: []byte(big)})
	require.Equal(t, "1048576\n", out)
	result, out := run(t, r, proc.Command{Script: "echo not reading", Stdin: []byte(big)})
	require.Equal(t, "not reading\n", out)
	require.Zero(t, result.ExitCode)

	p, err := r.Start(context.Background(), proc.Command{Script: "read a; echo got $a; read b; echo got $b; cat", Dir: "/", KeepStdin: true})
	require.NoError(t, err)
	require.NoError(t, p.WriteStdin([]byte("one\n")))
	waitFor(t, p, "got one\n")
	require.NoError(t, p.WriteStdin([]byte("two\nthree")))
	p.CloseStdin()
	require.Zero(t, p.Wait().ExitCode)
	require.Equal(t, "got one\ngot two\nthree", p.Output().Excerpt(0).Text())
	require.Error(t, p.WriteStdin([]byte("late")))
}

// waitFor waits until the command has printed text.
func waitFor(t testing.TB, p *proc.Process, text string) {
	t.Helper()
	limit := time.After(30 * time.Second)
	for {
		changed := p.Output().Changed()
		if strings.Contains(p.Output().Excerpt(0).Text(), text) {
			return
		}
		select {
		case <-changed:
		case <-limit:
			require.Fail(t, "the command did not print "+text, "%s", p.Output().Excerpt(0).Text())
		}
	}
}

func TestAnswersWhenTheProcessExits(t *testing.T) {
	t.Parallel()
	r := off(t)
	result, out := run(t, r, proc.Command{Script: "sleep 100 & echo hi", Timeout: time.Minute})
	require.Equal(t, "hi\n", out)
	require.Equal(t, proc.Exited, result.Ending)
	require.Equal(t, 1, result.LeftBehind)

	patient := newRunner(t, proc.Config{Level: proc.Off, Linger: time.Minute})
	_, out = run(t, patient, proc.Command{Script: "echo hi > >(sleep 0.05; cat)"})
	require.Equal(t, "hi\n", out, "what bash does not wait for may finish writing")
}

func TestRefusesWhatCannotRun(t *testing.T) {
	r := off(t)
	for name, c := range map[string]proc.Command{
		"empty":         {Dir: "/"},
		"NUL":           {Script: "echo \x00", Dir: "/"},
		"relative":      {Script: "true", Dir: "x"},
		"no directory":  {Script: "true", Dir: "/nonexistent"},
		"not directory": {Script: "true", Dir: "/etc/passwd"},
	} {
		_, err := r.Start(context.Background(), c)
		require.Error(t, err, name)
	}
	require.NoError(t, r.Close())
	_, err := r.Start(context.Background(), proc.Command{Script: "true", Dir: "/"})
	require.ErrorContains(t, err, "ending")
}

func TestExtraFiles(t *testing.T) {
	r := off(t)
	name := filepath.Join(t.TempDir(), "report")
	f, err := os.Create(name)
	require.NoError(t, err)
	defer f.Close()
	run(t, r, proc.Command{Script: "echo told >&3", Files: []*os.File{f}})
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "told\n", string(text))
}

func TestBashIsThere(t *testing.T) {
	_, err := exec.LookPath("bash")
	require.NoError(t, err, "these tests run real bash")
}

// TestConfinementAsAPlainUser runs tests of the confinement again as a plain user, as most
// people run them.
func TestConfinementAsAPlainUser(t *testing.T) {
	t.Parallel()
	tests := []string{"TestSelfTest", "TestRunsBash", "TestRootsOfAnyKind", "TestStaleDirectories", "TestBuildCaches", "TestNoDescriptorIsInherited"}
	if !mcpkittest.RaceEnabled || long { // these tests do not look for races
		tests = append(tests, "TestAttacks", "TestTheWholeTreeDies")
	}
	sandboxtest.AsPlainUser(t, tests...)
}
