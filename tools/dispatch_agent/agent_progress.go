package main

import (
	"fmt"
	"maps"
	"strings"
	"time"
)

// take updates the agent's state from an event.
func (a *agent) take(e event) {
	switch e.Type {
	case "begun":
		if e.Resumable && isKindName(e.Agent) {
			a.set(func() { a.kept = e.Agent })
		}
	case "turn":
		a.set(func() {
			a.turn = max(a.turn+1, e.Turn)
			a.used.turns++
			a.now = "thinking"
		})
	case "answer":
		a.set(func() { a.answered(e) })
	case "tool.call":
		a.set(func() {
			a.count(e.Name, 1)
			a.now = shorten(visible(e.Name)+" "+visible(string(e.Arguments)), 120)
		})
	case "ended": // its totals are right even if an event was missed
		a.set(func() {
			a.used.turns = max(a.used.turns, a.base.turns+e.Turns)
			a.used.usage.Input = max(a.used.usage.Input, a.base.usage.Input+e.Usage.Input)
			a.used.usage.Output = max(a.used.usage.Output, a.base.usage.Output+e.Usage.Output)
			a.used.cost = a.base.cost + e.Cost
			for name, n := range e.Calls {
				a.count(name, max(0, a.base.calls[name]+n-a.used.calls[name]))
			}
		})
	}
}

// answered records the usage and text of a turn. Call it with mu held.
func (a *agent) answered(e event) {
	a.used.usage.Input += max(0, e.Usage.Input)
	a.used.usage.Output += max(0, e.Usage.Output)
	if text := strings.TrimSpace(e.Text); text != "" {
		found := a.found + text + "\n\n"
		a.found = strings.ToValidUTF8(found[max(0, len(found)-maxFound):], "")
	}
}

// count adds n calls of a tool. It counts at most 100 different tools, since
// the names come from the model. Call it with mu held.
func (a *agent) count(name string, n int) {
	if a.used.calls == nil {
		a.used.calls = map[string]int{}
	}
	if len(a.used.calls) < 100 || a.used.calls[name] > 0 {
		a.used.calls[name] += n
	}
}

// took returns how long the agent has been running.
func (a *agent) took() time.Duration { return time.Since(a.begun) }

// doing describes the agent's progress in a line. changed is closed when the
// line is out of date.
func (a *agent) doing() (line string, changed <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting {
		return "waiting for another agent to end", a.changed
	}
	words := append([]string{fmt.Sprintf("turn %d of %d", a.turn, a.spec.task.MaxTurns)}, a.usedNow().words()[1:]...)
	return strings.Join(append(words, "now: "+a.now), " · "), a.changed
}

// set applies change with mu held and wakes the waiters of changed.
func (a *agent) set(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
	close(a.changed)
	a.changed = make(chan struct{})
}

// usedNow returns the current usage. Call it with mu held.
func (a *agent) usedNow() tally {
	used := a.used
	used.calls = maps.Clone(used.calls)
	used.took = a.spec.before.took + time.Since(a.begun)
	return used
}
