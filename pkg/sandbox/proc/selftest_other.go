//go:build !linux && !darwin && !windows

package proc

import (
	"context"
	"runtime"
)

// candidates are the levels that Highest tries: none works on this system.
func candidates() []Level { return []Level{L1} }

// runProbe returns a report that no level is enforced on this system.
func (r *Runner) runProbe(_ context.Context, level Level) Report {
	return Report{Level: level, Failure: "there is no confinement for " + runtime.GOOS + " yet"}
}
