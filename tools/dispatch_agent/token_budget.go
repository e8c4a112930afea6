package main

import (
	"sync"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// budget accounts for the tokens and cost of the agents that one agent, or the
// client, has dispatched. The zero value is ready to use. It is safe for
// concurrent use.
type budget struct {
	mu             sync.Mutex
	tokens, held   int64 // used by ended agents; held (reserved) for running agents
	cost, heldCost float64
}

// take reserves tokens and cost for an agent: the requested amounts, or half of
// the rest, so that some is left for the next agent. The returned function
// replaces the reservation by the actual usage.
func (b *budget) take(bound grant, tokens int64, cost float64) (int64, float64, func(int64, float64), error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	tokens, err := share(tokens, bound.Tokens, b.tokens, b.held, "tokens")
	if err == nil {
		cost, err = share(cost, bound.Cost, b.cost, b.heldCost, "money")
	}
	if err != nil {
		return 0, 0, nil, err
	}
	b.held += tokens
	b.heldCost += cost
	return tokens, cost, func(usedTokens int64, usedCost float64) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.held -= tokens
		b.heldCost -= cost
		b.tokens += usedTokens
		b.cost += usedCost
	}, nil
}

// share returns how much of a limit to reserve. bound 0 means no limit, asked 0
// means half of the rest. The result 0 means no limit.
func share[N int64 | float64](asked, bound, used, held N, what string) (N, error) {
	if bound <= 0 {
		return asked, nil
	}
	rest := bound - used - held
	if rest <= 0 {
		return 0, toolerr.New(toolerr.LimitReached, "no %s left for another agent: sum up what you have", what)
	}
	if asked <= 0 {
		asked = rest - rest/2
	}
	return min(asked, rest), nil
}
