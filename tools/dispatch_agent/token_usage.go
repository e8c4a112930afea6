package main

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/textfmt"
)

// tokenUsage counts the tokens sent to and received from a model.
type tokenUsage struct {
	Input  int64 `json:"input"`
	Output int64 `json:"output"`
}

// total returns the input and output tokens together.
func (u tokenUsage) total() int64 { return u.Input + u.Output }

// agentUsage is the total usage of an agent.
type agentUsage struct {
	turns    int
	tokens   tokenUsage     // sent to and received from the model
	cost     float64        // in the currency of the models' prices
	calls    map[string]int // by tool
	duration time.Duration
}

// footerParts returns the parts of a report's footer: turns, tokens, duration,
// cost and calls.
func (t agentUsage) footerParts() []string {
	parts := []string{
		textfmt.Count(t.turns, "turn"),
		textfmt.Thousands(t.tokens.Input) + " in / " + textfmt.Thousands(t.tokens.Output) + " out",
		textfmt.ShortDuration(t.duration),
	}
	if t.cost > 0 {
		parts = append(parts, "cost "+formatCost(t.cost))
	}
	var calls []string
	for _, name := range slices.Sorted(maps.Keys(t.calls)) {
		calls = append(calls, escapeLine(name)+"×"+textfmt.Thousands(int64(t.calls[name])))
	}
	if len(calls) > 0 {
		parts = append(parts, shorten(strings.Join(calls, " "), 400))
	}
	return parts
}

// shorten truncates text to about n bytes, without splitting characters, and
// adds an ellipsis if it was longer.
func shorten(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return textfmt.Head(text, n) + "…"
}
