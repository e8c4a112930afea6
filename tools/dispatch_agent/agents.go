package main

import (
	"crypto/rand"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Limits on the agents that are kept.
const (
	maxKept      = 64 // including running agents
	maxKeptBytes = 32 << 20
	maxKeptAge   = 2 * time.Hour
)

// agents holds the running agents, and ended agents whose report can be
// requested again and which can be continued.
type agents struct {
	mu  sync.Mutex
	all []*agent // oldest first
}

// add stores a under a new id. If before is not nil, a replaces it under the
// same id. It returns an error if before was replaced already, or if maxKept
// agents are running.
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
	// The id does not repeat, even after a restart, and cannot be guessed
	// by other clients.
	a.id = "a" + strings.ToLower(rand.Text()[:7])
	as.all = append(as.all, a)
	return nil
}

// trim drops ended agents beyond the limits.
func (as *agents) trim() {
	as.mu.Lock()
	defer as.mu.Unlock()
	as.forget(maxKept)
}

// forget drops ended agents, oldest first, until at most most agents and
// maxKeptBytes are left, and drops all that ended more than maxKeptAge ago.
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

// size returns the memory that an ended agent occupies, in bytes; 0 while it
// runs.
func (a *agent) size() int {
	if !a.over() {
		return 0
	}
	return len(a.outcome.report) + len(a.outcome.conversation) + len(a.spec.task.System) + len(a.spec.task.Prompt) + len(a.spec.task.Conversation)
}

// find returns the agent with an id given by a client.
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

// leased returns the running agent with a host's lease, or nil.
func (as *agents) leased(lease string) *agent {
	if lease == "" {
		return nil
	}
	as.mu.Lock()
	defer as.mu.Unlock()
	for _, a := range as.all {
		if a.spec.lease == lease && !a.over() {
			return a
		}
	}
	return nil
}
