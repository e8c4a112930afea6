package upstream

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// ending is a wire that is about to end: it refuses messages first, and tells
// why afterwards.
type ending struct {
	refused chan struct{}
	why     error
}

func (e *ending) send([]byte) error {
	close(e.refused)
	return fmt.Errorf("%w: the connection has ended", errNotSent)
}

func (e *ending) run(*conn) error {
	<-e.refused
	return e.why
}

func (*ending) close()                    {}
func (*ending) describe() wireDescription { return wireDescription{} }

// A server that dies just as it is sent something fails that with what it died
// of, whichever was noticed first.
func TestARequestThatIsNotSentSaysWhy(t *testing.T) {
	why := toolerr.New(toolerr.ServerOffline, "it panicked")
	c := newConn(Config{}.withDefaults(), &ending{make(chan struct{}), why})
	_, err := c.requestFromServer(t.Context(), "initialize", nil)
	require.ErrorIs(t, err, why)
	require.True(t, errors.Is(err, errNotSent))
	require.Equal(t, toolerr.ServerOffline, toolerr.CodeOf(err))

	c = newConn(Config{}.withDefaults(), &ending{make(chan struct{}), why})
	_, err = c.sendRound(t.Context(), request{method: "tools/call"})
	require.ErrorIs(t, err, why)
	require.True(t, errors.Is(err, errNotSent))
}
