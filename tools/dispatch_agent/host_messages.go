package main

import (
	"encoding/json"
)

// task is the line that mcp-host agent --json reads. For zero fields it uses
// its defaults.
type task struct {
	Prompt       string          `json:"prompt"`
	Agent        string          `json:"agent,omitempty"` // a kind known to mcp-host
	System       string          `json:"system,omitempty"`
	Model        string          `json:"model,omitempty"`
	Tools        toolSet         `json:"tools"` // never null, which would mean all tools
	Except       toolSet         `json:"except,omitempty"`
	Conversation json.RawMessage `json:"conversation,omitempty"`
	MaxTurns     int             `json:"max_turns,omitempty"`
	MaxTokens    int64           `json:"max_tokens,omitempty"`
	MaxCost      float64         `json:"max_cost,omitempty"`
	TimeoutMS    int64           `json:"timeout_ms,omitempty"`
	GraceMS      int64           `json:"grace_ms,omitempty"`
	Host         *hostEndpoint   `json:"host,omitempty"`
	Attached     bool            `json:"attached"` // the agent ends when its input ends
}

// hostEndpoint is the address and token with which an agent uses the tools of
// the host that made the call.
type hostEndpoint struct {
	Socket string `json:"socket"`
	Token  string `json:"token"`
}

// event is a line written by mcp-host agent --json. The type decides which
// members are set; unknown types are ignored.
type event struct {
	Type      string          `json:"type"`
	Turn      int             `json:"turn"`
	Model     string          `json:"model"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Text      string          `json:"text"`
	Usage     tokenUsage      `json:"usage"`

	// Set in the "ended" event.
	Why          string          `json:"why"`
	Summed       bool            `json:"summed"`
	Error        *fault          `json:"error"`
	Turns        int             `json:"turns"`
	Cost         float64         `json:"cost"`
	Calls        map[string]int  `json:"calls"`
	Conversation json.RawMessage `json:"conversation"`
	Pending      []callToApprove `json:"pending"`

	// Set in the "begun" event.
	Agent     string `json:"agent"`
	Resumable bool   `json:"resumable"`
}

// callToApprove is a tool call of the agent that waits for the user's approval, as listed
// in event.Pending.
type callToApprove struct {
	ID     string `json:"id"`
	Tool   string `json:"tool"`
	Reason string `json:"reason"`
}

// fault is an error in the form in which mcp-host reports it.
type fault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Endings that are handled specially. The host defines them as agent.Ending,
// except the last three.
const (
	endingGoal       = "goal reached"
	endingPending    = "approval pending"
	endingCancelled  = "cancelled"
	endingModelError = "model error"
	endingRejected   = "not begun"  // mcp-host rejected the task
	endingLost       = "agent lost" // the process ended without an "ended" event
	endingHung       = "agent hung" // the process did not end in time
)
