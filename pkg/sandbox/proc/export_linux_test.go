package proc

import "context"

// PortableSelfTest runs the self-test of macOS at a level of this system.
func (r *Runner) PortableSelfTest(ctx context.Context, level Level) Report {
	return r.runPortableSelfTest(ctx, level)
}
