package core

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/approve"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/breaker"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/retry"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/stagetest"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// What a server may come to in one attempt: whether the tool was carried out,
// and whether another attempt may follow if that does no harm.
type attempt struct {
	name     string
	executed bool
	again    bool
	answered bool // the caller gets an answer
	err      error
	raw      string
}

func attempts() []attempt {
	lost := func(phase string, code toolerr.Code) error {
		return &call.ExecutionError{Tool: "t", Phase: phase, Message: "lost", Cause: toolerr.New(code, "lost")}
	}
	return []attempt{
		{name: "done", executed: true, answered: true, raw: `{"content":[]}`},
		{name: "failed", executed: true, answered: true, raw: `{"content":[],"isError":true}`},
		{name: "not reached", again: true, err: lost(call.PhaseConnect, toolerr.ServerOffline)},
		{name: "busy", again: true, err: toolerr.New(toolerr.RateLimited, "busy").With("retryAfterMs", int64(50))},
		{name: "too busy", err: toolerr.New(toolerr.RateLimited, "busy").With("retryAfterMs", int64(3_600_000))},
		{name: "reset after it was sent", executed: true, again: true, err: lost(call.PhaseExecute, toolerr.TransportError)},
		{name: "no answer in time", executed: true, again: true, err: toolerr.New(toolerr.Timeout, "late")},
		{name: "died of it", executed: true, err: lost(call.PhaseExecute, toolerr.ServerOffline)},
		{name: "refused", err: &call.MCPError{Server: "s", Code: -32603}},
		{name: "for good", executed: true, err: retry.Permanent(toolerr.New(toolerr.TransportError, "gone"))},
	}
}

// A fault-injecting server counts how often it carries a tool out, over 2 000
// random schedules of faults: one that is neither read-only nor idempotent is
// carried out at most once; one that is succeeds whenever one of the attempts
// it has can.
func TestRetryNeverRepeatsASideEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := newPipeline(config.Config{Stages: config.Stages{Breaker: breaker.Config{Off: true}}},
			dependencies{approval: func(c approve.Config) *approve.Stage { return approve.New(c, &approve.Store{}, nil) }}, nil)
		require.NoError(t, err)
		defer w.close()
		var schedule []attempt
		var made, executed int
		h := call.Chain(func(context.Context, *call.Request) (*call.Result, error) {
			now := schedule[made]
			made++
			if now.executed {
				executed++
			}
			if now.err != nil {
				return nil, now.err
			}
			return &call.Result{Raw: []byte(now.raw)}, nil
		}, w.stages()...)

		random := rand.New(rand.NewPCG(1, 2))
		all := attempts()
		for range 2_000 {
			schedule, made, executed = nil, 0, 0
			for range 5 {
				schedule = append(schedule, all[random.IntN(len(all))])
			}
			tool := stagetest.Tool()
			tool.ReadOnly, tool.Idempotent = random.IntN(3) == 0, random.IntN(3) == 0
			req := stagetest.Request("a", `{}`)
			req.Tool = tool
			_, err := h(t.Context(), req)

			names := []string{}
			want, answered := 0, false
			for _, a := range schedule[:3] {
				want++
				names = append(names, a.name)
				if answered = a.answered; !a.again || !tool.IsRepeatable() {
					break
				}
			}
			require.Equal(t, want, made, names)
			require.Equal(t, answered, err == nil, names)
			if !tool.IsRepeatable() {
				require.LessOrEqual(t, executed, 1, names)
			}
		}
	})
}

// Registered tools belong to the program: a configuration that changes leaves
// them as they are.
func TestRegisteredToolsOutliveAReload(t *testing.T) {
	a, err := Open(config.Config{})
	require.NoError(t, err)
	defer a.Close()
	tool, err := mcpkit.NewTool(mcpkit.Def{Name: "one"}, func(context.Context, struct{}) (*mcpkit.Result, error) {
		return &mcpkit.Result{Text: "1"}, nil
	})
	require.NoError(t, err)
	require.NoError(t, a.Register(tool))
	before := a.snapshot.Load()
	cfg := a.Config
	cfg.Stages.Policy.Block = []string{"other"}
	require.NoError(t, a.apply(t.Context(), cfg))
	require.NotSame(t, before, a.snapshot.Load())
	answer, err := a.Call(t.Context(), "one", nil)
	require.NoError(t, err)
	require.Equal(t, "1", answer.Text)
}
