package main

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/textfmt"
)

// usage is a number of tokens.
type usage struct {
	Input  int64 `json:"input"`
	Output int64 `json:"output"`
}

func (u usage) sum() int64 { return u.Input + u.Output }

// tally is the total usage of an agent.
type tally struct {
	turns int
	usage usage
	cost  float64
	calls map[string]int
	took  time.Duration
}

// words returns the parts of a report's footer.
func (t tally) words() []string {
	parts := []string{
		textfmt.Count(t.turns, "turn"),
		textfmt.Thousands(t.usage.Input) + " in / " + textfmt.Thousands(t.usage.Output) + " out",
		textfmt.Lasted(t.took),
	}
	if t.cost > 0 {
		parts = append(parts, "cost "+shortCost(t.cost))
	}
	var calls []string
	for _, name := range slices.Sorted(maps.Keys(t.calls)) {
		calls = append(calls, visible(name)+"×"+textfmt.Thousands(int64(t.calls[name])))
	}
	if len(calls) > 0 {
		parts = append(parts, shorten(strings.Join(calls, " "), 400))
	}
	return parts
}

// shorten truncates text to about n bytes, without splitting characters.
func shorten(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return textfmt.Head(text, n) + "…"
}
