package core

import (
	"context"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/stagetest"
)

func TestABusyHostCollectsLessOften(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        int
	}{{"GOGC", "", busyGCPercent}, {"GOGC", "70", 70}, {"GOMEMLIMIT", "1GiB", 70}} {
		t.Setenv("GOGC", "")
		t.Setenv("GOMEMLIMIT", "")
		t.Setenv(c.name, c.value)
		before := debug.SetGCPercent(70)
		a := &App{}
		h := a.gc.stage()(func(context.Context, *call.Request) (*call.Result, error) { return stagetest.Text("x"), nil })
		require.Equal(t, 70, debug.SetGCPercent(70), "not before the first call")
		res, err := h(t.Context(), stagetest.Request("a", `{}`))
		require.NoError(t, err)
		require.Equal(t, stagetest.Text("x"), res)
		require.Equal(t, c.want, debug.SetGCPercent(c.want))
		a.EndStartUp()
		require.Equal(t, c.want, debug.SetGCPercent(before), "also after the start")
	}
}

func TestAStartingHostCollectsLessOften(t *testing.T) {
	for _, c := range []struct {
		gogc              string
		starting, started int
	}{{"", busyGCPercent, idleGCPercent}, {"70", 70, 70}} {
		t.Setenv("GOGC", c.gogc)
		t.Setenv("GOMEMLIMIT", "")
		before := debug.SetGCPercent(70)
		BeginStartUp()
		require.Equal(t, c.starting, debug.SetGCPercent(c.starting))
		(&App{}).EndStartUp()
		require.Equal(t, c.started, debug.SetGCPercent(before))
	}
}
