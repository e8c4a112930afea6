package proc

import (
	"context"
	"fmt"
	"os"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// candidates are the levels that Highest tries, from the highest down.
func candidates() []Level { return []Level{Seatbelt} }

// runProbe runs the self-test of a level.
func (r *Runner) runProbe(ctx context.Context, level Level) Report {
	if level != Seatbelt {
		return Report{Level: level, Failure: fmt.Sprintf("%s is not for macOS: use seatbelt", level)}
	}
	return r.runPortableSelfTest(ctx, level)
}

// runProbeRole is the main function of this program in another role. It returns the exit
// code.
func runProbeRole(role string) int {
	switch role {
	case supervise.Role:
		return supervise.Main()
	case portableProbeRole:
		return runPortableProbe()
	}
	fmt.Fprintf(os.Stderr, "%s: role %q is unknown\n", os.Args[0], role)
	return 2
}
