package supervise

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCPULimiter(t *testing.T) {
	l := newCPULimiter(50)
	defer l.ticker.Stop()
	now, used := l.last, time.Duration(0)
	step := func(consumed time.Duration) bool {
		now, used = now.Add(100*time.Millisecond), used+consumed
		return l.update(now, used)
	}
	require.False(t, step(50*time.Millisecond), "exactly the share")
	require.True(t, step(200*time.Millisecond), "150 ms too much")
	require.True(t, step(0), "100 ms left")
	require.True(t, step(0), "50 ms left")
	require.False(t, step(0), "made up for")

	for range 100 { // idle for 10 s: no more than a second's share is saved
		require.False(t, step(0))
	}
	require.False(t, step(500*time.Millisecond))
	require.True(t, step(150*time.Millisecond), "100 ms too much")

	used = 0 // processes have ended for which nobody waited
	require.True(t, step(0))
	require.False(t, step(0))
}
