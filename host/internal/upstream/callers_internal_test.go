package upstream

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// A request that a user has cancelled may still run, until the server answers it.
func TestCancelledRequestsOfOtherUsers(t *testing.T) {
	var c callers
	ann, bob, few := call.Caller{User: "ann"}, call.Caller{User: "bob"}, call.Caller{User: "ann", Profile: "few"}
	c.gaveUp(7, ann)
	require.False(t, c.othersGaveUp(ann))
	require.True(t, c.othersGaveUp(bob))
	require.True(t, c.othersGaveUp(few))
	c.answered(7)
	require.False(t, c.othersGaveUp(bob))

	c.gaveUp(8, ann)
	c.cancelled[8] = cancelledCall{owner: ann.Owner(), at: time.Now().Add(-cancelledTime - time.Second)}
	require.False(t, c.othersGaveUp(bob), "the server has forgotten it")
	require.Empty(t, c.cancelled)
	for id := range uint64(2 * maxCancelled) {
		c.gaveUp(id, ann)
	}
	require.Len(t, c.cancelled, maxCancelled)
}
