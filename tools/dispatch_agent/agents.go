package main

import (
	"crypto/rand"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// What is kept of agents that have ended.
const (
	maxKept      = 64 // with those that run
	maxKeptBytes = 32 << 20
	maxKeptAge   = 2 * time.Hour
)

// agents are those that run, and those that have ended and may be asked for
// their report again, or to go on.
type agents struct {
	mu  sync.Mutex
	all []*agent // oldest first
}

// add gives an agent an id and keeps it: that of before, in whose place it
// goes on, or a new one.
func (as *agents) add(a, before *agent) error {
	as.mu.Lock()
	defer as.mu.Unlock()
	if before != nil {
		i := slices.Index(as.all, before)
		if i < 0 {
			return toolerr.New(toolerr.Conflict, "agent %s is running another prompt: wait for it with agent_id alone", before.id)
		}
		a.id = before.id
		as.all = append(slices.Delete(as.all, i, i+1), a)
		return nil
	}
	as.forget(maxKept - 1)
	if len(as.all) >= maxKept {
		return toolerr.New(toolerr.LimitReached, "%d agents are running, the maximum: wait for some of them", len(as.all))
	}
	// A name that is not used again, also not after a restart, and that
	// nobody guesses who has not been told.
	a.id = "a" + strings.ToLower(rand.Text()[:7])
	as.all = append(as.all, a)
	return nil
}

// trim forgets what is old, or too much.
func (as *agents) trim() {
	as.mu.Lock()
	defer as.mu.Unlock()
	as.forget(maxKept)
}

// forget drops agents that have ended, the oldest first, until so many are
// left, no more than maxKeptBytes of them, and none older than maxKeptAge.
func (as *agents) forget(most int) {
	var bytes int
	for _, a := range as.all {
		bytes += a.size()
	}
	count := len(as.all)
	as.all = slices.DeleteFunc(as.all, func(a *agent) bool {
		if !a.over() || count <= most && bytes <= maxKeptBytes && time.Since(a.outcome.at) <= maxKeptAge {
			return false
		}
		bytes -= a.size()
		count--
		return true
	})
}

// size is how much memory an agent that has ended keeps.
func (a *agent) size() int {
	if !a.over() {
		return 0
	}
	return len(a.outcome.report) + len(a.outcome.conversation) + len(a.order.task.System) + len(a.order.task.Prompt) + len(a.order.task.Conversation)
}

// find returns the agent that a client means.
func (as *agents) find(id string) (*agent, error) {
	as.trim()
	as.mu.Lock()
	defer as.mu.Unlock()
	for _, a := range as.all {
		if a.id == id {
			return a, nil
		}
	}
	return nil, toolerr.New(toolerr.JobNotFound, "no agent %q: agents end with the server, and reports are kept for %s", shorten(visible(id), 40), strings.TrimSuffix(maxKeptAge.String(), "0m0s"))
}

// leased returns the agent at work that a host knows by a lease; nil: there is
// none.
func (as *agents) leased(lease string) *agent {
	if lease == "" {
		return nil
	}
	as.mu.Lock()
	defer as.mu.Unlock()
	for _, a := range as.all {
		if a.order.lease == lease && !a.over() {
			return a
		}
	}
	return nil
}
