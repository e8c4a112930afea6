package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Whatever agents ask for, together they get no more than there is.
func TestAPurseIsNotOverdrawn(t *testing.T) {
	p := &purse{}
	bound := grant{Tokens: 1000, Cost: 2}
	var given int64
	var money float64
	var back []func(int64, float64)
	for _, asked := range []int64{0, 0, 5000, 0, 1} {
		tokens, cost, giveBack, err := p.take(bound, asked, 0)
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
	tokens, cost, _, err := p.take(bound, 5000, 5)
	require.NoError(t, err)
	require.EqualValues(t, 700, tokens)
	require.InDelta(t, 1.7, cost, 1e-9)
}

// What the calling agent says that it has left narrows, and never widens.
func TestWhatIsLeftNarrows(t *testing.T) {
	for _, c := range []struct{ bound, left, asked, want int64 }{
		{1000, 400, 5000, 400},
		{1000, 4000, 5000, 1000},
		{0, 400, 0, 200},
		{0, 400, 100, 100},
		{1000, 0, 1, 0},
		{1000, -5, 1, 0},
	} {
		tokens, _, _, err := (&purse{}).take(grant{Tokens: c.bound, leftTokens: &c.left}, c.asked, 0)
		require.Equal(t, c.want == 0, err != nil)
		require.Equal(t, c.want, tokens)
	}
	tokens, _, _, err := (&purse{}).take(grant{}, 0, 0)
	require.NoError(t, err)
	require.Zero(t, tokens, "no bound")
}
