package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// If any process of a chain of agents is killed, all processes below it end,
// even those that ignore signals and the end of their input.
func TestKilledProcessesLeaveNone(t *testing.T) {
	for _, victim := range []string{"server", "outer", "inner"} {
		t.Run(victim, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			c := p.serve("--tools", "dispatch_agent")
			inner := lines("pid "+p.file("inner"), "stubborn")
			id := c.Go("tools/call", mcpkittest.CallParams("dispatch_agent", arg("agent", "general",
				"prompt", lines("pid "+p.file("outer"), `dispatch {"agent":"general","prompt":`+quoted(inner)+`}`))))
			pids := map[string]int{"server": c.PID(), "outer": p.pid("outer"), "inner": p.pid("inner")}
			require.NoError(t, syscall.Kill(pids[victim], syscall.SIGKILL))
			within(t, "no agent is left", func() bool {
				return !mcpkittest.IsRunning(pids["inner"]) && (!mcpkittest.IsRunning(pids["outer"]) || victim == "inner")
			})
			if victim == "server" {
				return
			}
			r, err := mcpkittest.ParseResult(c.Answer(id).Result)
			require.NoError(t, err)
			require.Equal(t, 1, strings.Count(r.Text, "signal: killed"), r.Text)
			require.Contains(t, r.Text, "agent lost")
			within(t, "the outer one is gone, too", func() bool { return !mcpkittest.IsRunning(pids["outer"]) })
		})
	}
}

// The same with the real programs: a nested agent runs under a host, and
// killing a process also ends all processes that work for it.
func TestKilledHostsAndAgentsLeaveNone(t *testing.T) {
	p := newRealPlace(t, "")
	p.env = []string{ceilingVariable + "=all"}
	for _, victim := range []string{"agent", "mcp-dispatch_agent", "stdio", "cancel"} {
		c := p.host()
		id := c.Go("tools/call", mcpkittest.CallParams("dispatch_agent", arg("agent", "general", "prompt", "through slow one")))
		within(t, "two agents are at work", func() bool { return len(p.running(" agent --json ")) == 2 })
		switch victim {
		case "cancel":
			c.Notify("notifications/cancelled", map[string]any{"requestId": json.RawMessage(id)})
		case "agent": // the outer agent, which is older
			require.NoError(t, syscall.Kill(slices.Min(p.running(" agent --json ")), syscall.SIGKILL))
		default:
			require.NoError(t, syscall.Kill(slices.Min(p.running(victim+" ")), syscall.SIGKILL))
		}
		within(t, "no agent is left of "+victim, func() bool { return len(p.running(" agent --json ")) == 0 })
		if victim == "agent" || victim == "mcp-dispatch_agent" {
			r, err := mcpkittest.ParseResult(c.Answer(id).Result)
			require.NoError(t, err)
			require.True(t, r.IsError, r.Text)
		}
		if victim != "stdio" {
			require.Contains(t, dispatch(c, "prompt", "find needle").Text, "the needle is here", victim)
			c.Close()
		}
		within(t, "nothing is left of "+victim, func() bool { return len(p.running("")) == 0 })
	}
}

// running returns the processes of the place whose command line contains words.
func (p *place) running(words string) (pids []int) {
	p.t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(p.t, err)
	for _, dir := range dirs {
		raw, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		line := strings.ReplaceAll(string(raw), "\x00", " ")
		if err != nil || !strings.Contains(line, p.state) || !strings.Contains(line, words) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}
