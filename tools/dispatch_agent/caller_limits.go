package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Members of _meta that describe the caller.
const (
	hostMeta  = "io.github.toolroom-mcp/host"
	agentMeta = "io.github.toolroom-mcp/agent"
)

// caller says who made a call, from the call's _meta.
type caller struct {
	// Host is set by mcp-host in each call that it makes.
	Host *struct {
		hostEndpoint
		Depth  int    `json:"depth"`
		Lease  string `json:"lease"`            // identifies this call
		Within string `json:"within,omitempty"` // lease of the agent that makes the call
	}
	// Agent is set by an agent or another program that runs a model, with
	// its remaining limits.
	Agent *struct {
		Left remainingLimits `json:"left"`
	}
}

// remainingLimits holds the remaining limits of a caller; a nil field means no
// limit.
type remainingLimits struct {
	Turns  *int     `json:"turns"`
	Tokens *int64   `json:"tokens"`
	Cost   *float64 `json:"cost"`
	MS     *int64   `json:"ms"`
}

// isModelLoop reports whether a model's loop makes the call. It waits as long
// as necessary, and should not repeat the same call to wait further.
func (c caller) isModelLoop() bool { return c.Agent != nil || c.Host != nil && c.Host.Within != "" }

// callerOf returns the information about the caller of a call. Missing or
// malformed members stay nil.
func callerOf(ctx context.Context) (c caller) {
	meta := jsonrpc.MemberOf(wire.RawParams(ctx), "_meta")
	for name, into := range map[string]any{hostMeta: &c.Host, agentMeta: &c.Agent} {
		if raw := jsonrpc.MemberOf(meta, name); raw != nil {
			json.Unmarshal(raw, into) //nolint:errcheck // what is not there says nothing
		}
	}
	return c
}

// limitTo lowers the limits to the remaining limits of the caller. It returns
// LIMIT_REACHED if one of them is used up.
func (g *grant) limitTo(left remainingLimits) error {
	if left.Turns != nil && *left.Turns < 1 || left.Tokens != nil && *left.Tokens < 1 || left.Cost != nil && *left.Cost <= 0 {
		return toolerr.New(toolerr.LimitReached, "no budget left for another agent: sum up what you have")
	}
	g.Turns = lowerLimit(g.Turns, left.Turns)
	g.Tokens = lowerLimit(g.Tokens, left.Tokens)
	g.Cost = lowerLimit(g.Cost, left.Cost)
	if left.MS != nil {
		until := time.Now().Add(time.Duration(min(*left.MS, mostTimeout.Milliseconds())) * time.Millisecond)
		if g.Until.IsZero() || until.Before(g.Until) {
			g.Until = until
		}
	}
	return nil
}

// lowerLimit returns the lower of two limits; 0 and nil mean no limit.
func lowerLimit[N int | int64 | float64](bound N, other *N) N {
	if other == nil || bound > 0 && bound <= *other {
		return bound
	}
	return *other
}
