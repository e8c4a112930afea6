package core

import (
	"slices"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// traced puts the stages that trace around the others: what the caller sees
// outside all, and what goes to the server inside all.
func (a *App) traced(stages []call.Stage) []call.Stage {
	if a.tracer == nil {
		return stages
	}
	return slices.Concat([]call.Stage{a.tracer.Stage}, stages, []call.Stage{a.tracer.Sending})
}

func (a *App) tracedForward() call.Forwarder {
	if a.tracer == nil {
		return a.forward
	}
	return a.tracer.Forward(a.forward)
}
