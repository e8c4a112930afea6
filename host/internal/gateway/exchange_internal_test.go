package gateway

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A context that no transport has marked once got the exchange of the client on stdio,
// and with it that client's rights.
func TestRequestExchangeNeedsATransport(t *testing.T) {
	assert.Panics(t, func() { requestExchange(context.Background()) })

	stdio := context.WithValue(context.Background(), delegationKey{}, (*delegation)(nil))
	assert.Equal(t, "stdio", requestExchange(stdio).entryPoint())

	agent := context.WithValue(context.Background(), delegationKey{}, &delegation{id: "socket 1"})
	assert.Equal(t, "socket", requestExchange(agent).entryPoint())

	x := &httpExchange{}
	http := context.WithValue(context.Background(), exchangeKey{}, x)
	assert.Same(t, x, requestExchange(http))
}
