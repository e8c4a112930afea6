package core

import (
	"slices"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// withTracing returns stages with two tracing stages added: one outside all others, which
// sees the caller's view, and one inside all, which sees the upstream request. Without a
// tracer it returns stages.
func (a *App) withTracing(stages []call.Stage) []call.Stage {
	if a.tracer == nil {
		return stages
	}
	return slices.Concat([]call.Stage{a.tracer.Stage}, stages, []call.Stage{a.tracer.UpstreamStage})
}

// tracedForward returns the forwarder of requests other than tool calls, with spans if
// traces are sent.
func (a *App) tracedForward() call.Forwarder {
	if a.tracer == nil {
		return a.forwardRequest
	}
	return a.tracer.TraceForward(a.forwardRequest)
}
