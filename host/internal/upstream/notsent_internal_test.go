package upstream

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// A server that died before a request is named by its own cause, whether the
// request found the connection dead or the wire.
func TestRequestAfterTheEndTellsTheCause(t *testing.T) {
	cause := errors.New("the server ended (exit status 1)")
	c := &conn{err: cause}
	_, err := c.addPending(&pendingRequest{})
	require.ErrorIs(t, err, errNotSent)
	require.ErrorIs(t, err, cause)
	require.Equal(t, cause.Error(), err.Error())
}
