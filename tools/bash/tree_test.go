//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// newMark returns an argument of sleep that no other process has.
func newMark(n int) string {
	return fmt.Sprintf("%d.%d", 200_000+time.Now().UnixNano()%700_000, 1000+n)
}

// treeCommand leaves processes in every possible way, at least six at a time.
const treeCommand = `echo so far; sleep MARK & (sleep MARK &) ; setsid sleep MARK & (setsid sh -c 'trap "" TERM HUP INT; sleep MARK & sleep MARK; sleep MARK' &)
nohup sleep MARK >/dev/null 2>&1 & trap '' TERM; sleep MARK; sleep MARK`

const firstTimeout = time.Second

// After a timeout, a cancellation and a kill -9 of the server no process of a
// tree is left, and the answer, if there is a reader for it, has the output so
// far.
func TestWholeTreesEnd(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	t.Parallel()
	type one struct {
		level, how, mark, id string
		server
	}
	var all []one
	usable, missing := levels(t)
	for i, level := range usable {
		for j, how := range []string{"timeout", "cancel", "kill -9"} {
			c := one{level: level, how: how, mark: newMark(10*i + j), server: newPlace(t).serve("--sandbox", level)}
			args := arg("command", strings.ReplaceAll(treeCommand, "MARK", c.mark))
			if how == "timeout" {
				args["timeout"] = firstTimeout.Milliseconds()
			}
			c.id = c.Go("tools/call", mcpkittest.CallParams("bash", args))
			all = append(all, c)
		}
	}
	for _, c := range all {
		if c.how == "timeout" {
			continue
		}
		within(t, "they run", func() bool { return len(processes(t, c.mark)) >= 6 })
		if c.how == "cancel" {
			c.Notify("notifications/cancelled", map[string]any{"requestId": 1})
			require.Equal(t, "1", c.id)
		} else {
			require.NoError(t, syscall.Kill(c.PID(), syscall.SIGKILL))
		}
	}
	for _, c := range all {
		within(t, "none is left after "+c.how, func() bool { return c.how == "timeout" || len(processes(t, c.mark)) == 0 })
		switch c.how {
		case "timeout":
			r, err := mcpkittest.ParseResult(c.Answer(c.id).Result)
			require.NoError(t, err)
			// On a busy machine the command may not have started by then.
			for timeout := 2 * firstTimeout; !strings.Contains(r.Text, "so far") && timeout < mcpkittest.MaxWait; timeout *= 2 {
				r = c.bash(strings.ReplaceAll(treeCommand, "MARK", c.mark), "timeout", timeout.Milliseconds())
			}
			require.Equal(t, "TIMEOUT", r.Code, r.Text)
			require.Contains(t, r.Text, "so far\n")
			require.Contains(t, r.Text, "timeout (milliseconds")
			require.Equal(t, "timeout", text(t, r, "ending"))
			require.Empty(t, processes(t, c.mark), "none is left when the answer is there")
		case "cancel":
			require.Contains(t, c.bash("echo next").Text, "next")
		}
	}
	t.Logf("%d cases, 0 left over, %d levels not run %v", len(all), len(missing), missing)
}

// After the end of the input, calls in flight finish.
func TestEndOfInputDrains(t *testing.T) {
	t.Parallel()
	s := newPlace(t).serve()
	id := s.Go("tools/call", mcpkittest.CallParams("bash", arg("command", "sleep 0.5; echo to the end")))
	s.CloseInput()
	r, err := mcpkittest.ParseResult(s.Answer(id).Result)
	require.NoError(t, err)
	require.Contains(t, r.Text, "to the end\nexit 0")
	require.Zero(t, s.Wait())
}

// Many concurrent commands leave no zombie, descriptor or temporary directory
// behind, and all are answered.
func TestManyAtOnce(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	p := newPlace(t)
	temp := filepath.Join(p.dir, "tmp")
	require.NoError(t, os.Mkdir(temp, 0o755))
	p.env = append(p.env, "TMPDIR="+temp)
	s := p.serve()
	require.Contains(t, s.bash("echo warm").Text, "warm")
	rest := func() int { // what the server has when idle: two supervisors wait
		within(t, "it rests", func() bool { return len(children(t, s.PID())) == 2 })
		return descriptors(t, s.PID())
	}
	before := rest()
	const many = 200
	ids := make([]string, many)
	for i := range ids {
		ids[i] = s.Go("tools/call", mcpkittest.CallParams("bash", arg("command", fmt.Sprintf("(sleep 0.01 &); echo number %d; exit %d", i, i%3))))
	}
	for i, id := range ids {
		r, err := mcpkittest.ParseResult(s.Answer(id).Result)
		require.NoError(t, err)
		require.Contains(t, r.Text, fmt.Sprintf("number %d\nexit %d", i, i%3))
	}
	within(t, "no zombie is left", func() bool { return !strings.Contains(strings.Join(children(t, s.PID()), ""), "Z") })
	// The waiting supervisors may still have been starting at the first count.
	within(t, "no descriptor is left", func() bool { return rest() <= before+4 })
	require.Zero(t, s.Close())
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	require.Empty(t, left)
}
