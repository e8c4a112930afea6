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
	maxKept      = 64            // including running agents
	maxKeptBytes = 32 << 20      // of ended agents
	maxKeptAge   = 2 * time.Hour // since the end
)

// agents holds the running agents, and ended agents whose report can be
// requested again and which can be continued. It is safe for concurrent use.
type agents struct {
	mu  sync.Mutex
	all []*agent // oldest first
}

// add stores a under a new id. If before is not nil, a replaces it under the
// same id. It returns CONFLICT if before was replaced already, and
// LIMIT_REACHED if maxKept agents are running.
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
	as.dropEnded(maxKept - 1)
	if len(as.all) >= maxKept {
		return toolerr.New(toolerr.LimitReached, "%d agents are running, the maximum: wait for some of them", len(as.all))
	}
	// The id does not repeat, even after a restart, and cannot be guessed
	// by other clients.
	a.id = "a" + strings.ToLower(rand.Text()[:7])
	as.all = append(as.all, a)
	return nil
}

// dropOld drops ended agents beyond maxKept, maxKeptBytes and maxKeptAge.
func (as *agents) dropOld() {
	as.mu.Lock()
	defer as.mu.Unlock()
	as.dropEnded(maxKept)
}

// dropEnded drops ended agents, oldest first, until at most most agents and
// maxKeptBytes are left, and drops all that ended more than maxKeptAge ago. The
// caller holds mu.
func (as *agents) dropEnded(most int) {
	var bytes int
	for _, a := range as.all {
		bytes += a.endedSize()
	}
	count := len(as.all)
	as.all = slices.DeleteFunc(as.all, func(a *agent) bool {
		if !a.hasEnded() || count <= most && bytes <= maxKeptBytes && time.Since(a.outcome.endedAt) <= maxKeptAge {
			return false
		}
		bytes -= a.endedSize()
		count--
		return true
	})
}

// endedSize returns the memory that an ended agent occupies, in bytes; 0 while
// it runs.
func (a *agent) endedSize() int {
	if !a.hasEnded() {
		return 0
	}
	return len(a.outcome.report) + len(a.outcome.conversation) + len(a.spec.task.System) + len(a.spec.task.Prompt) + len(a.spec.task.Conversation)
}

// find returns the agent with an id given by a client, and JOB_NOT_FOUND if
// there is none.
func (as *agents) find(id string) (*agent, error) {
	as.dropOld()
	as.mu.Lock()
	defer as.mu.Unlock()
	for _, a := range as.all {
		if a.id == id {
			return a, nil
		}
	}
	return nil, toolerr.New(toolerr.JobNotFound, "no agent %q: agents end with the server, and reports are kept for %s; call with prompt to start a new agent", shorten(escapeLine(id), 40), strings.TrimSuffix(maxKeptAge.String(), "0m0s"))
}

// findByLease returns the running agent with a host's lease, or nil.
func (as *agents) findByLease(lease string) *agent {
	if lease == "" {
		return nil
	}
	as.mu.Lock()
	defer as.mu.Unlock()
	for _, a := range as.all {
		if a.spec.lease == lease && !a.hasEnded() {
			return a
		}
	}
	return nil
}
