package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// Whichever process of a chain of agents is killed, and however little those
// below it heed, none of them is left.
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
			require.NoError(t, kill(pids[victim]))
			within(t, "no agent is left", func() bool {
				return gone(pids["inner"]) && (gone(pids["outer"]) || victim == "inner")
			})
			if victim == "server" {
				return
			}
			r, err := mcpkittest.ParseResult(c.Answer(id).Result)
			require.NoError(t, err)
			require.Equal(t, 1, strings.Count(r.Text, "signal: killed"), r.Text)
			require.Contains(t, r.Text, "agent lost")
			within(t, "the outer one is gone, too", func() bool { return gone(pids["outer"]) })
		})
	}
}
