package upstream

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
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
}

// One user cannot make the host forget that another has cancelled a request: at the bound,
// questions are ambiguous for everybody for as long as a cancelled request counts.
func TestCancelledRequestsAboveTheBound(t *testing.T) {
	var c callers
	ann, bob := call.Caller{User: "ann"}, call.Caller{User: "bob"}
	for id := range uint64(maxCancelled) {
		c.gaveUp(id, bob)
	}
	require.False(t, c.othersGaveUp(bob))
	c.gaveUp(maxCancelled, ann)
	require.Len(t, c.cancelled, maxCancelled)
	require.True(t, c.othersGaveUp(bob))
	for id := range uint64(maxCancelled) {
		c.answered(id)
	}
	require.True(t, c.othersGaveUp(bob))
	c.full = time.Now().Add(-cancelledTime - time.Second)
	require.False(t, c.othersGaveUp(bob))

	for id := range uint64(maxCancelled) {
		c.gaveUp(id, bob)
		c.cancelled[id] = cancelledCall{owner: bob.Owner(), at: time.Now().Add(-cancelledTime - time.Second)}
	}
	c.gaveUp(maxCancelled, ann)
	require.Len(t, c.cancelled, 1, "expired ones need no room")
	require.True(t, c.othersGaveUp(bob))
	require.False(t, c.othersGaveUp(ann))
}

// busyWire is a wire that sends nothing because its queue is full.
type busyWire struct{ end chan struct{} }

func (busyWire) send([]byte) error { return toolerr.New(toolerr.LimitReached, "the queue is full") }

func (w busyWire) run(*conn) error {
	<-w.end
	return nil
}

func (busyWire) close()                {}
func (busyWire) describe() description { return description{} }

// The server cannot work on a request that it never got.
func TestARequestThatWasNotSentIsNotCancelled(t *testing.T) {
	w := busyWire{make(chan struct{})}
	c := newConn(Config{}.withDefaults(), w)
	_, err := c.sendRound(t.Context(), request{method: "tools/call", caller: call.Caller{User: "ann"}})
	require.Equal(t, toolerr.LimitReached, toolerr.CodeOf(err))
	c.mu.Lock()
	require.False(t, c.callers.othersGaveUp(call.Caller{User: "bob"}))
	require.Empty(t, c.pending)
	c.mu.Unlock()
	close(w.end)
	<-c.ended
}
