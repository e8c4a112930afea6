package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/textfmt"
)

// task is the line that mcp-host agent --json reads. What is zero is left to
// it.
type task struct {
	Prompt       string          `json:"prompt"`
	Agent        string          `json:"agent,omitempty"` // a kind that mcp-host knows
	System       string          `json:"system,omitempty"`
	Model        string          `json:"model,omitempty"`
	Tools        toolSet         `json:"tools"` // never null: that would be all
	Except       toolSet         `json:"except,omitempty"`
	Conversation json.RawMessage `json:"conversation,omitempty"`
	MaxTurns     int             `json:"max_turns,omitempty"`
	MaxTokens    int64           `json:"max_tokens,omitempty"`
	MaxCost      float64         `json:"max_cost,omitempty"`
	TimeoutMS    int64           `json:"timeout_ms,omitempty"`
	GraceMS      int64           `json:"grace_ms,omitempty"`
	Host         *hostDoor       `json:"host,omitempty"`
	Attached     bool            `json:"attached"` // it ends with its input
}

// hostDoor is how an agent gets at the tools of the host that made the call.
type hostDoor struct {
	Socket string `json:"socket"`
	Token  string `json:"token"`
}

// event is a line that mcp-host agent --json writes. Which members there are
// depends on the type; types that are not known are left out.
type event struct {
	Type      string          `json:"type"`
	Turn      int             `json:"turn"`
	Model     string          `json:"model"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Text      string          `json:"text"`
	Usage     usage           `json:"usage"`

	// Of the last one.
	Why          string          `json:"why"`
	Summed       bool            `json:"summed"`
	Error        *fault          `json:"error"`
	Turns        int             `json:"turns"`
	Cost         float64         `json:"cost"`
	Calls        map[string]int  `json:"calls"`
	Conversation json.RawMessage `json:"conversation"`
	Pending      []waits         `json:"pending"`

	// Of the first one.
	Agent     string `json:"agent"`
	Resumable bool   `json:"resumable"`
}

// waits is a call that waits for somebody's decision.
type waits struct {
	ID     string `json:"id"`
	Tool   string `json:"tool"`
	Reason string `json:"reason"`
}

type fault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// usage counts tokens.
type usage struct {
	Input  int64 `json:"input"`
	Output int64 `json:"output"`
}

func (u usage) sum() int64 { return u.Input + u.Output }

// The endings that are not plainly one more way to end: see agent.Ending of
// the host, whose words they are.
const (
	goalReached = "goal reached"
	pending     = "approval pending"
	cancelled   = "cancelled"
	failed      = "model error"
	unbegun     = "not begun"  // ours: mcp-host found the task wrong
	lost        = "agent lost" // ours: the process ended without a last line
	overdue     = "agent hung" // ours: it did not end in time
)

// tally is what an agent has used.
type tally struct {
	turns int
	usage usage
	cost  float64
	calls map[string]int
	took  time.Duration
}

// words are the tally as a result's last line has it.
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

// shorten cuts text to about n bytes, between characters.
func shorten(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return textfmt.Head(text, n) + "…"
}
