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
	usedTokens     int64 // by ended agents
	reservedTokens int64 // for running agents
	usedCost       float64
	reservedCost   float64
}

// reserve reserves tokens and cost for an agent: the requested amounts, or half
// of the rest for 0, so that some is left for the next agent. It returns the
// reserved amounts, 0 for no limit, and a function that replaces the
// reservation by the actual usage. It returns LIMIT_REACHED if nothing is left.
func (b *budget) reserve(bound grant, tokens int64, cost float64) (gotTokens int64, gotCost float64, recordUsage func(usedTokens int64, usedCost float64), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	tokens, err = reservable(tokens, bound.Tokens, b.usedTokens, b.reservedTokens, "tokens")
	if err == nil {
		cost, err = reservable(cost, bound.Cost, b.usedCost, b.reservedCost, "money")
	}
	if err != nil {
		return 0, 0, nil, err
	}
	b.reservedTokens += tokens
	b.reservedCost += cost
	return tokens, cost, func(usedTokens int64, usedCost float64) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.reservedTokens -= tokens
		b.reservedCost -= cost
		b.usedTokens += usedTokens
		b.usedCost += usedCost
	}, nil
}

// reservable returns how much of a limit to reserve. bound 0 means no limit,
// asked 0 means half of the rest. The result 0 means no limit. It returns LIMIT_REACHED
// if nothing is left; what names the limit.
func reservable[N int64 | float64](asked, bound, used, held N, what string) (N, error) {
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
