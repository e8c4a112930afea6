package stats_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/stagetest"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/stats"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func TestASeries(t *testing.T) {
	var r stats.Recorder
	bounds := stats.Bounds()
	require.Equal(t, 128*time.Microsecond, bounds[0])
	require.Equal(t, 67108864*time.Microsecond, bounds[len(bounds)-1])
	for i, bound := range bounds { // one just below each bound, two at it
		require.Equal(t, bounds[0]<<i, bound)
		r.Add(stats.Observation{Tool: "a", Server: "s", Duration: bound - time.Microsecond, Bytes: 10})
		r.Add(stats.Observation{Tool: "a", Server: "s", Duration: bound, Code: toolerr.Timeout})
		r.Add(stats.Observation{Tool: "a", Server: "s", Duration: bound, Failed: true})
	}
	all := r.Series(10)
	require.Len(t, all, 1)
	s := all[0]
	n := int64(len(bounds))
	require.Equal(t, []any{"a", "s", 3 * n, 10 * n}, []any{s.Tool, s.Server, s.Calls, s.Bytes})
	require.Equal(t, map[toolerr.Code]int64{toolerr.Timeout: n, stats.ToolError: n}, s.Codes)
	var sum time.Duration
	for i, bound := range bounds {
		require.EqualValues(t, 3*i+1, s.Within[i], bound)
		sum += 3*bound - time.Microsecond
	}
	require.Equal(t, sum, s.Sum)
}

// A tool's own failures count under its code, if it is one of ours.
func TestCodesThatToolsSay(t *testing.T) {
	var r stats.Recorder
	for _, raw := range []string{
		`{"isError":true,"_meta":{"toolroom/code":"OUTSIDE_ROOT"}}`, `{"_meta":{"x":1,"toolroom/code":"OUTSIDE_ROOT"},"isError":true}`,
		`{"isError":true,"_meta":{"toolroom/code":"ANYTHING"}}`, `{"isError":true,"_meta":{"toolroom/code":7}}`,
		`{"isError":true,"_meta":["toolroom/code"]}`, `{"isError":true}`, `{"_meta":{"toolroom/code":"TIMEOUT"}}`,
	} {
		h := r.Stage(func(context.Context, *call.Request) (*call.Result, error) { return &call.Result{Raw: []byte(raw)}, nil })
		_, err := h(t.Context(), stagetest.Request("a", `{}`))
		require.NoError(t, err)
	}
	require.Equal(t, map[toolerr.Code]int64{toolerr.OutsideRoot: 2, stats.ToolError: 4}, r.Series(1)[0].Codes)
}

// However many tools there are, so many have a series; nothing is lost.
func TestSeriesAreBounded(t *testing.T) {
	var r stats.Recorder
	for i := range 50 {
		for range i + 1 {
			r.Add(stats.Observation{Tool: fmt.Sprintf("t%02d", i), Server: "s", Duration: time.Millisecond, Bytes: 1, Code: toolerr.Timeout})
		}
	}
	r.Add(stats.Observation{Tool: stats.Other, Duration: time.Millisecond})
	all := r.Series(3)
	var calls, within int64
	var names []string
	for _, s := range all {
		names = append(names, s.Tool)
		calls += s.Calls
		within += s.Within[len(s.Within)-1]
	}
	require.Equal(t, []string{stats.Other, "t47", "t48", "t49"}, names)
	require.EqualValues(t, 50*51/2+1, calls)
	require.Equal(t, calls, within)
	require.Equal(t, calls-1-48-49-50, all[0].Codes[toolerr.Timeout])
	require.Len(t, r.Series(100), 51)
	require.Empty(t, new(stats.Recorder).Series(3))
}
