package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Whatever agents request, the total does not exceed the limit.
func TestABudgetIsNotOverdrawn(t *testing.T) {
	p := &budget{}
	bound := grant{Tokens: 1000, Cost: 2}
	var given int64
	var money float64
	var back []func(int64, float64)
	for _, asked := range []int64{0, 0, 5000, 0, 1} {
		tokens, cost, giveBack, err := p.reserve(bound, asked, 0)
		if err != nil {
			require.Equal(t, toolerr.LimitReached, toolerr.CodeOf(err))
			continue
		}
		given, money, back = given+tokens, money+cost, append(back, giveBack)
	}
	require.EqualValues(t, 1000, given)
	require.Less(t, money, 2.0)
	require.Len(t, back, 3)
	for _, giveBack := range back {
		giveBack(100, 0.1)
	}
	tokens, cost, _, err := p.reserve(bound, 5000, 5)
	require.NoError(t, err)
	require.EqualValues(t, 700, tokens)
	require.InDelta(t, 1.7, cost, 1e-9)
}

// The remaining limits sent by the calling agent lower the bounds, and never
// raise them.
func TestWhatIsLeftNarrows(t *testing.T) {
	for _, c := range []struct {
		bound  grant
		left   string
		turns  int
		tokens int64
		cost   float64
	}{
		{grant{Turns: 5, Tokens: 1000, Cost: 2}, `{}`, 5, 1000, 2},
		{grant{Turns: 5, Tokens: 1000, Cost: 2}, `{"turns":4,"tokens":400,"cost":1}`, 4, 400, 1},
		{grant{Turns: 5, Tokens: 1000, Cost: 2}, `{"turns":400,"tokens":4000,"cost":3}`, 5, 1000, 2},
		{grant{}, `{"turns":4,"tokens":400,"cost":1}`, 4, 400, 1},
		{grant{Tokens: 5}, `{"tokens":0}`, 0, 0, 0},
		{grant{Turns: 5}, `{"turns":-1}`, 0, 0, 0},
		{grant{}, `{"cost":0}`, 0, 0, 0},
	} {
		var from remainingLimits
		require.NoError(t, json.Unmarshal([]byte(c.left), &from))
		err := c.bound.limitTo(from)
		if c.turns == 0 {
			require.Equal(t, toolerr.LimitReached, toolerr.CodeOf(err))
			continue
		}
		require.NoError(t, err)
		require.Equal(t, grant{Turns: c.turns, Tokens: c.tokens, Cost: c.cost}, c.bound)
	}
	ms := int64(1000)
	from := remainingLimits{MS: &ms}
	bound := grant{Until: time.Now().Add(-time.Minute)}
	before := bound.Until
	require.NoError(t, bound.limitTo(from))
	require.Equal(t, before, bound.Until)
	bound = grant{}
	require.NoError(t, bound.limitTo(from))
	require.WithinDuration(t, time.Now(), bound.Until, time.Minute)
	tokens, _, _, err := (&budget{}).reserve(grant{}, 0, 0)
	require.NoError(t, err)
	require.Zero(t, tokens, "no bound")
}
