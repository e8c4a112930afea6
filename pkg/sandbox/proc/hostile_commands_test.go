//go:build linux

package proc_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// TestNoDescriptorIsInherited: a command inherits no descriptor that the
// server forgot to close, with a prestarted supervisor or a new one.
func TestNoDescriptorIsInherited(t *testing.T) {
	forgotten, err := syscall.Open("/", syscall.O_RDONLY, 0) // without O_CLOEXEC
	require.NoError(t, err)
	defer syscall.Close(forgotten)
	for _, level := range levels(t) {
		r := trusted(t, level)
		for range 3 {
			_, out := run(t, r, proc.Command{Script: "for f in /proc/self/fd/*; do [ -e $f ] && echo ${f##*/}; done; ls /proc/$$/fd; :", Rules: rules{root: t.TempDir()}})
			require.Equal(t, "0\n1\n2\n0\n1\n2\n", out, level)
		}
	}
}

// TestTheFirstThreadEnds: a process whose first thread has ended looks dead in
// /proc, but its other threads still run.
func TestTheFirstThreadEnds(t *testing.T) {
	t.Parallel()
	if missing(attack{needs: "gcc"}) != "" {
		t.Skip("no gcc")
	}
	dir := place(t)
	source, program := filepath.Join(dir, "a.c"), filepath.Join(dir, "a")
	require.NoError(t, os.WriteFile(source, []byte(`#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static void *rest(void *x) { usleep(50000); puts("ready"); fflush(stdout); sleep(1000); return x; }
int main(void) { pthread_t t; signal(SIGTERM, SIG_IGN); setsid(); pthread_create(&t, 0, rest, 0); pthread_exit(0); }
`), 0o644))
	out, err := exec.Command("gcc", "-pthread", "-o", program, source).CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, level := range levels(t) {
		r := newRunner(t, proc.Config{Level: level, Grace: 20 * time.Millisecond})
		proc.TrustLevel(r, level)
		p, err := r.Start(context.Background(), proc.Command{Script: program + " & wait", Dir: dir, Rules: rules{root: dir}})
		require.NoError(t, err)
		waitFor(t, p, "ready")
		p.Stop()
		require.Equal(t, proc.Killed, p.Wait().Ending, level)
		links, err := filepath.Glob("/proc/[0-9]*/exe")
		require.NoError(t, err)
		for _, link := range links {
			to, _ := os.Readlink(link)
			require.NotEqual(t, program, to)
		}
	}
}

// TestTheSupervisorsGroupIsKilled: only an unconfined command can kill it.
func TestTheSupervisorsGroupIsKilled(t *testing.T) {
	t.Parallel()
	for _, level := range levels(t) {
		r, tag := trusted(t, level), newTag()
		result, out := run(t, r, proc.Command{
			Script: "(setsid sleep " + tag + " &); [ $PPID = 1 ] || kill -9 -- -$PPID; sleep 0.1; echo alive", Rules: rules{root: t.TempDir()},
		})
		require.Empty(t, alive(t, tag))
		if level == proc.Off {
			require.Equal(t, proc.Lost, result.Ending)
		} else {
			require.Equal(t, proc.Exited, result.Ending)
			require.Contains(t, out, "alive\n")
		}
	}
}

// TestTheSupervisorIsStopped: only an unconfined command can stop the
// supervisor. The command is ended nevertheless.
func TestTheSupervisorIsStopped(t *testing.T) {
	if !long {
		t.Skip("PROC_LONG is not set: takes as long as a supervisor may be late")
	}
	r := newRunner(t, proc.Config{Level: proc.Off, Grace: time.Millisecond})
	tag := newTag()
	result, out := run(t, r, proc.Command{Script: "echo so far; kill -STOP $PPID; sleep " + tag, Timeout: 200 * time.Millisecond})
	require.Equal(t, proc.TimedOut, result.Ending)
	require.Equal(t, "so far\n", out)
	require.Empty(t, alive(t, tag))
}

func TestTheWorkingDirectoryGoesAway(t *testing.T) {
	t.Parallel()
	for _, level := range levels(t) {
		root := place(t)
		dir := filepath.Join(root, "gone")
		require.NoError(t, os.Mkdir(dir, 0o755))
		c := proc.Command{Script: `rm -r "$PWD"; echo x > f; cd /; echo still here; exit 4`, Dir: dir, Rules: rules{root: root}}
		r := trusted(t, level)
		result, out := run(t, r, c)
		require.Equal(t, 4, result.ExitCode)
		require.Contains(t, out, "still here\n")
		_, err := r.Start(context.Background(), c)
		require.Equal(t, toolerr.NotFound, toolerr.CodeOf(err))
	}
}

// TestWhatIsTooLarge: the error for a command that is too large for the system
// says what to do.
func TestWhatIsTooLarge(t *testing.T) {
	t.Parallel()
	var many []string
	for i := range 2000 {
		many = append(many, fmt.Sprintf("V%d=%s", i, strings.Repeat("x", 400)))
	}
	for _, level := range levels(t) {
		r := trusted(t, level)
		c := proc.Command{Dir: "/", Rules: rules{root: t.TempDir()}}
		c.Script = "x=" + strings.Repeat("x", 100_000) + "; echo ${#x}"
		_, out := run(t, r, c)
		require.Equal(t, "100000\n", out)

		c.Script += strings.Repeat(" ", 32_000)
		_, err := r.Start(context.Background(), c)
		require.Equal(t, toolerr.InvalidParams, toolerr.CodeOf(err))
		require.ErrorContains(t, err, "put it into a file")

		c.Script, c.Env = "echo ${#V1999}", many
		_, out = run(t, r, c)
		require.Equal(t, "400\n", out)

		c.Env = []string{"BIG=" + strings.Repeat("x", 200_000)}
		_, err = r.Start(context.Background(), c)
		require.Equal(t, toolerr.InvalidParams, toolerr.CodeOf(err))
		require.ErrorContains(t, err, "BIG")

		c.Env = nil
		for i := range 80 {
			c.Env = append(c.Env, fmt.Sprintf("V%d=%s", i, strings.Repeat("x", 100_000)))
		}
		_, err = r.Start(context.Background(), c)
		require.Equal(t, toolerr.ExecutionError, toolerr.CodeOf(err))
		require.ErrorContains(t, err, "set fewer variables")
	}
}

// TestStdinThatNobodyReads: input that the command does not read blocks
// nothing, even if it exceeds the capacity of the pipe.
func TestStdinThatNobodyReads(t *testing.T) {
	t.Parallel()
	r := off(t)
	much := make([]byte, 10<<20)
	result, out := run(t, r, proc.Command{Script: "echo done", Stdin: much})
	require.Equal(t, proc.Exited, result.Ending)
	require.Equal(t, "done\n", out)

	p, err := r.Start(context.Background(), proc.Command{Script: "echo ready; sleep 1000", Dir: "/", KeepStdin: true})
	require.NoError(t, err)
	written := make(chan error)
	go func() { written <- p.WriteStdin(much) }()
	waitFor(t, p, "ready")
	p.Stop()
	require.Error(t, <-written)
	p.Wait()
}

// TestStartIsCancelled: a start with a cancelled context runs nothing.
func TestStartIsCancelled(t *testing.T) {
	for _, level := range levels(t) {
		r := trusted(t, level)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		root := t.TempDir()
		_, err := r.Start(ctx, proc.Command{Script: "touch " + root + "/ran", Dir: "/", Rules: rules{root: root}})
		require.Equal(t, toolerr.Cancelled, toolerr.CodeOf(err))
		require.NoError(t, r.Close())
		require.Empty(t, children(t), "the supervisor is gone")
	}
}

// TestCommandsDoNotSeeEachOther: concurrent commands see neither the processes
// nor the files of each other.
func TestCommandsDoNotSeeEachOther(t *testing.T) {
	if !contains(levels(t), proc.L2) {
		t.Skip("L2 is not available")
	}
	r, root := trusted(t, proc.L2), t.TempDir()
	tag := newTag()
	first, err := r.Start(context.Background(), proc.Command{Script: "echo x > /tmp/own; echo ready; sleep " + tag, Dir: "/", Rules: rules{root: root}})
	require.NoError(t, err)
	waitFor(t, first, "ready")
	_, out := run(t, r, proc.Command{Script: "ls /tmp; cat /proc/[0-9]*/cmdline | tr '\\0' ' '", Rules: rules{root: root}})
	require.NotContains(t, out, "own")
	require.Contains(t, out, "cmdline", "it sees itself")
	require.NotContains(t, out, tag)
	first.Stop()
	first.Wait()
}
