package core

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/accesstoken"
)

// A call does not wait for the exchange of another call that hangs, longer than its context or
// than a short time while the last token is valid.
func TestExchangeThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &exchanger{app: &App{}, exchanging: make(chan struct{}, 1)}
		e.exchanging <- struct{}{} // another call
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := e.Token(ctx)
		require.ErrorIs(t, err, context.Canceled)

		now := time.Now()
		e.current = accesstoken.ExchangedToken{Access: "a", Issued: now.Add(-time.Hour), Expires: now.Add(50 * time.Second)}
		token, err := e.Token(t.Context())
		require.NoError(t, err)
		require.Equal(t, "a", token)
		require.Equal(t, earlyExchangeTimeout, time.Since(now))

		e.failed = time.Now()
		token, err = e.Token(t.Context())
		require.NoError(t, err)
		require.Equal(t, "a", token)
		require.Equal(t, earlyExchangeTimeout, time.Since(now), "no exchange after a failure")

		<-e.exchanging
		time.Sleep(time.Minute)
		_, err = e.Token(t.Context())
		require.ErrorContains(t, err, "users cannot sign in", "the token has expired")
	})
}
