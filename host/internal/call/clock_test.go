package call_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

var errLate = errors.New("late")

func TestAPauseStopsAllClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		outer, cancel := call.WithTimeout(t.Context(), 10*time.Second, errLate)
		defer cancel()
		inner, cancelInner := call.WithTimeout(outer, 20*time.Second, errors.New("inner"))
		defer cancelInner()
		time.Sleep(4 * time.Second)
		one, two := call.PauseClocks(inner), call.PauseClocks(inner)
		time.Sleep(time.Hour)
		one()
		one() // once is enough
		time.Sleep(time.Hour)
		require.NoError(t, inner.Err())
		two()
		<-inner.Done()
		require.Equal(t, 2*time.Hour+10*time.Second, time.Since(begin))
		require.Equal(t, errLate, context.Cause(inner), "the outer clock ran out first")
	})
}

func TestAClockThatRanOutStaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := call.WithTimeout(t.Context(), time.Second, errLate)
		defer cancel()
		<-ctx.Done()
		call.PauseClocks(ctx)()
		require.Equal(t, errLate, context.Cause(ctx))
	})
}

func TestNothingIsPausedWithoutAClock(t *testing.T) {
	call.PauseClocks(t.Context())()
}

func TestACancelledClockEndsItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := call.WithTimeout(t.Context(), time.Second, errLate)
		resume := call.PauseClocks(ctx)
		cancel()
		resume()
		require.ErrorIs(t, context.Cause(ctx), context.Canceled)
	})
}

func TestMeasuringLeavesPausesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, took := call.MeasureTime(t.Context())
		inner, cancel := call.WithTimeout(ctx, 10*time.Second, errLate)
		defer cancel()
		time.Sleep(time.Second)
		resume := call.PauseClocks(inner)
		time.Sleep(time.Hour)
		require.Equal(t, time.Second, took(), "during the pause")
		resume()
		time.Sleep(2 * time.Second)
		require.Equal(t, 3*time.Second, took())
	})
}

func TestTimeThatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, _ := call.MeasureTime(t.Context())
		_, limited := call.TimeLeft(ctx)
		require.False(t, limited)
		outer, cancel := call.WithTimeout(ctx, 10*time.Second, errLate)
		defer cancel()
		inner, cancelInner := call.WithTimeout(outer, time.Hour, errLate)
		defer cancelInner()
		time.Sleep(4 * time.Second)
		resume := call.PauseClocks(inner)
		time.Sleep(time.Hour)
		resume()
		left, limited := call.TimeLeft(inner)
		require.True(t, limited)
		require.Equal(t, 6*time.Second, left)
		by, cancelBy := context.WithTimeout(inner, time.Second)
		defer cancelBy()
		left, _ = call.TimeLeft(by)
		require.Equal(t, time.Second, left)
		time.Sleep(7 * time.Second)
		left, limited = call.TimeLeft(inner)
		require.True(t, limited)
		require.Zero(t, left)
	})
}
