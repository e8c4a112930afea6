package main

import (
	"fmt"
	"maps"
	"strings"
	"time"
)

// handleEvent updates the agent's state from an event.
func (a *agent) handleEvent(e event) {
	switch e.Type {
	case "begun":
		if e.Resumable && isKindName(e.Agent) {
			a.update(func() { a.savedName = e.Agent })
		}
	case "turn":
		a.update(func() {
			a.turn = max(a.turn+1, e.Turn)
			a.usage.turns++
			a.activity = "thinking"
		})
	case "answer":
		a.update(func() { a.addAnswer(e) })
	case "tool.call":
		a.update(func() {
			a.addCalls(e.Name, 1)
			a.activity = shorten(escapeLine(e.Name)+" "+escapeLine(string(e.Arguments)), 120)
		})
	case "ended": // its totals are right even if an event was missed
		a.update(func() {
			a.usage.turns = max(a.usage.turns, a.processBase.turns+e.Turns)
			a.usage.tokens.Input = max(a.usage.tokens.Input, a.processBase.tokens.Input+e.Usage.Input)
			a.usage.tokens.Output = max(a.usage.tokens.Output, a.processBase.tokens.Output+e.Usage.Output)
			a.usage.cost = a.processBase.cost + e.Cost
			for name, n := range e.Calls {
				a.addCalls(name, max(0, a.processBase.calls[name]+n-a.usage.calls[name]))
			}
		})
	}
}

// addAnswer records the usage and text of a turn. The caller holds mu.
func (a *agent) addAnswer(e event) {
	a.usage.tokens.Input += max(0, e.Usage.Input)
	a.usage.tokens.Output += max(0, e.Usage.Output)
	if text := strings.TrimSpace(e.Text); text != "" {
		found := a.partialText + text + "\n\n"
		a.partialText = strings.ToValidUTF8(found[max(0, len(found)-maxPartialText):], "")
	}
}

// addCalls adds n calls of a tool. It counts at most 100 different tools, since
// the names come from the model. The caller holds mu.
func (a *agent) addCalls(name string, n int) {
	if a.usage.calls == nil {
		a.usage.calls = map[string]int{}
	}
	if len(a.usage.calls) < 100 || a.usage.calls[name] > 0 {
		a.usage.calls[name] += n
	}
}

// runTime returns the time since the agent was started.
func (a *agent) runTime() time.Duration { return time.Since(a.started) }

// progressLine describes the agent's progress in a line. changed is closed when
// the line is out of date.
func (a *agent) progressLine() (line string, changed <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.needsPermit {
		return "waiting for another agent to end", a.changed
	}
	words := append([]string{fmt.Sprintf("turn %d of %d", a.turn, a.spec.task.MaxTurns)}, a.currentUsage().footerParts()[1:]...)
	return strings.Join(append(words, "now: "+a.activity), " · "), a.changed
}

// update calls change while it holds a.mu, and wakes the goroutines that wait
// for a.changed.
func (a *agent) update(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
	close(a.changed)
	a.changed = make(chan struct{})
}

// currentUsage returns a copy of the current usage. The caller holds mu.
func (a *agent) currentUsage() agentUsage {
	used := a.usage
	used.calls = maps.Clone(used.calls)
	used.duration = a.spec.earlierUsage.duration + time.Since(a.started)
	return used
}
