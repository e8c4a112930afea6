//go:build !linux

package proc

import (
	"context"
	"runtime"
)

// runProbe returns a report that no level is enforced on this system.
func (r *Runner) runProbe(_ context.Context, level Level) Report {
	return Report{Level: level, Failure: "there is no confinement for " + runtime.GOOS + " yet"}
}
