package stats_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/stagetest"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/stats"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func TestStage(t *testing.T) {
	stagetest.Run(t, func(*testing.T) (call.Stage, func()) { return new(stats.Recorder).Stage, func() {} })
}

func BenchmarkStage(b *testing.B) { stagetest.Bench(b, new(stats.Recorder).Stage) }

func TestCallsErrorsBytesAndDurations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r stats.Recorder
		var seen []stats.Observation
		r.Observe = func(o stats.Observation) { seen = append(seen, o) }
		for n := range 100 {
			h := r.Stage(func(context.Context, *call.Request) (*call.Result, error) {
				time.Sleep(time.Duration(n+1) * time.Millisecond)
				switch n {
				case 7:
					return &call.Result{Raw: []byte(`{"isError":true}`)}, nil
				case 8:
					return nil, toolerr.New(toolerr.TooLarge, "no")
				}
				return &call.Result{Raw: []byte(`{}`)}, nil
			})
			h(t.Context(), stagetest.Request("a", `{}`)) //nolint:errcheck // it passes what it was given
		}
		rows := r.Rows()
		require.Len(t, rows, 1)
		require.InEpsilon(t, 50*time.Millisecond, rows[0].P50, 0.0625)
		require.InEpsilon(t, 99*time.Millisecond, rows[0].P99, 0.0625)
		rows[0].P50, rows[0].P99 = 0, 0
		require.Equal(t, stats.Row{Tool: "srv__echo", Server: "srv", Calls: 100, Errors: 2, Bytes: 98*2 + 16}, rows[0])
		require.Len(t, seen, 100)
		require.Equal(t, stats.Observation{Caller: stagetest.Request("a", `{}`).Caller, Tool: "srv__echo", Server: "srv", Duration: 9 * time.Millisecond, Code: toolerr.TooLarge}, seen[8])
	})
}

func TestWaitingForAPersonIsNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r stats.Recorder
		var seen stats.Observation
		r.Observe = func(o stats.Observation) { seen = o }
		h := r.Stage(func(ctx context.Context, _ *call.Request) (*call.Result, error) {
			resume := call.PauseClocks(ctx)
			time.Sleep(time.Hour)
			resume()
			time.Sleep(time.Millisecond)
			return &call.Result{Raw: []byte(`{}`)}, nil
		})
		_, err := h(t.Context(), stagetest.Request("a", `{}`))
		require.NoError(t, err)
		require.Equal(t, time.Millisecond, seen.Duration)
	})
}

func TestQuantilesAreRightWithinSixPercentFromMicrosecondsToHours(t *testing.T) {
	for d := time.Microsecond; d < 18*time.Hour; d += d/13 + 1 {
		var r stats.Recorder
		r.Add(stats.Observation{Tool: "t", Duration: d})
		require.InEpsilon(t, d, r.Rows()[0].P50, 0.0625, d.String())
	}
	for _, d := range []time.Duration{-1, 0, 1, 1000 * time.Hour} { // beyond, it only must not fail
		var r stats.Recorder
		r.Add(stats.Observation{Tool: "t", Duration: d})
		require.NotZero(t, r.Rows()[0].P99)
	}
	require.Empty(t, new(stats.Recorder).Rows())
}

func TestToolsAreBounded(t *testing.T) {
	var r stats.Recorder
	for n := range 10_100 {
		r.Add(stats.Observation{Tool: strconv.Itoa(n)})
	}
	rows := r.Rows()
	require.Len(t, rows, 10_001)
	require.Equal(t, stats.Other, rows[0].Tool)
	require.EqualValues(t, 100, rows[0].Calls)
}

func TestCountersOfToolsThatAreNotListed(t *testing.T) {
	var r stats.Recorder
	h := r.Stage(func(context.Context, *call.Request) (*call.Result, error) {
		return nil, toolerr.New(toolerr.ServerOffline, "it is down")
	})
	made := func(name string, unlisted *call.Unlisted) {
		req := stagetest.Request("a", `{}`)
		tool := *req.Tool
		tool.Name, tool.Unlisted = name, unlisted
		req.Tool = &tool
		_, err := h(t.Context(), req)
		require.Error(t, err)
	}
	made("first", &call.Unlisted{})
	for i := range 2000 {
		made("any"+strconv.Itoa(i), &call.Unlisted{})
	}
	made("first", &call.Unlisted{})
	made("listed", nil)
	calls := map[string]int64{}
	for _, row := range r.Rows() {
		calls[row.Tool] = row.Calls
	}
	require.Len(t, calls, 1002)
	require.Equal(t, []int64{2, 1, 1001}, []int64{calls["first"], calls["listed"], calls[stats.Other]})
}
