package gateway

import (
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// fake is a connection that remembers that it was closed.
type fake struct {
	net.Conn
	closed bool
}

func (f *fake) Close() error {
	f.closed = true
	return nil
}

func TestTheOldestThatWaitsIsClosed(t *testing.T) {
	c := &connLimiter{max: 3}
	var all []*fake
	for range 3 {
		f := &fake{}
		all = append(all, f)
		c.onStateChange(f, http.StateNew)
	}
	c.onStateChange(all[0], http.StateActive)
	c.onStateChange(&fake{}, http.StateNew)
	require.False(t, all[0].closed, "in the middle of a request")
	require.True(t, all[1].closed)
	c.onStateChange(all[1], http.StateClosed)
	c.onStateChange(all[0], http.StateIdle) // waits since now
	c.onStateChange(&fake{}, http.StateNew)
	require.True(t, all[2].closed)
	require.False(t, all[0].closed)
	c.onStateChange(all[2], http.StateClosed)
	require.Len(t, c.open, 3)
	require.Equal(t, 3, c.idle.Len())
	c.onStateChange(all[0], http.StateClosed)
	require.Len(t, c.open, 2)
	require.Equal(t, 2, c.idle.Len())
}

// However few descriptors there are, most are left for what is behind the door.
func TestTheBoundFollowsTheDescriptors(t *testing.T) {
	for descriptors, want := range map[uint64]int{0: 2048, 1: 1, 256: 85, 1024: 341, 1 << 20: 2048, 1<<64 - 1: 2048} {
		require.Equal(t, want, maxConnsFor(descriptors), descriptors)
	}
}
