package upstream

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Beyond the bound, a cancelled request counts as one of an unknown host, so that the server gets
// no roots of which it is not certain that they are those of its client. Expired ones need
// no room.
func TestCancelledRequestsOfHostsAboveTheBound(t *testing.T) {
	process := newSharedProcess("", Config{}, &sync.WaitGroup{})
	a, b := &sharedUser{number: 1}, &sharedUser{number: 2}
	process.users[1], process.users[2] = a, b
	cancel := func(id uint64, u *sharedUser) {
		process.pending[id] = sharedRequest{u, true}
		process.recordCancelled(id)
	}
	for id := range uint64(maxCancelled) {
		cancel(id, a)
	}
	require.Equal(t, map[uint64]*sharedUser{1: a}, process.busyUsers())
	cancel(maxCancelled, b)
	require.Equal(t, map[uint64]*sharedUser{0: nil, 1: a}, process.busyUsers())
	clear(process.cancelled)
	require.Equal(t, map[uint64]*sharedUser{0: nil}, process.busyUsers())

	process.forgotten = time.Now().Add(-cancelledTime - time.Second)
	require.Empty(t, process.busyUsers())
	for id := range uint64(maxCancelled) {
		process.cancelled[id] = cancelledRequest{1, time.Now().Add(-cancelledTime - time.Second)}
	}
	cancel(maxCancelled, b)
	require.Equal(t, map[uint64]*sharedUser{2: b}, process.busyUsers())
}

// The completion of the newest elicitations is never lost to ones that were not completed.
func TestElicitationsOfHostsAboveTheBound(t *testing.T) {
	process := newSharedProcess("", Config{}, &sync.WaitGroup{})
	u := &sharedUser{number: 1}
	for i := range maxElicited + 10 {
		id := fmt.Sprint(i)
		process.recordElicitation(u, fmt.Appendf(nil, `{"elicitationId":%q}`, id))
		require.Equal(t, u, process.elicited[id])
	}
	require.Len(t, process.elicited, maxElicited)
}
