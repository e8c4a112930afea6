package proc

import (
	"context"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// SelfTest tests the configured level. With Highest it tests each level of this
// system from the highest down until one passes. The result is cached, unless ctx ended. Runner.Start
// calls it. If no level passes, it returns the report and a SANDBOX_UNAVAILABLE
// error.
func (r *Runner) SelfTest(ctx context.Context) (Report, error) {
	r.selfTestMu.Lock()
	defer r.selfTestMu.Unlock()
	if r.selfTest == nil {
		report := r.chooseLevel(ctx)
		if ctx.Err() != nil {
			return report, ctx.Err()
		}
		r.selfTest = &report
	}
	if r.selfTest.Passed() {
		return *r.selfTest, nil
	}
	return *r.selfTest, errUnavailable("commands cannot be confined on this machine (%s)", r.selfTest.Failures())
}

// chooseLevel tests the configured level and returns its report. With Highest
// it tests the levels of this system, from the highest down, until one passes.
func (r *Runner) chooseLevel(ctx context.Context) Report {
	switch r.config.Level {
	case Off:
		return Report{Level: Off}
	case Highest:
		var failed []Report
		for _, level := range candidates() {
			report := r.testOne(ctx, level)
			report.Higher = failed
			if report.Passed() || len(failed) == len(candidates())-1 {
				return report
			}
			failed = append(failed, report)
		}
	}
	return r.testOne(ctx, r.config.Level)
}

// testOne tests a level, L2 in its variants.
func (r *Runner) testOne(ctx context.Context, level Level) Report {
	if level == L2 {
		return r.testL2(ctx)
	}
	return r.testLevel(ctx, level)
}

// testL2 tests L2 and, if that fails, L2 without unix sockets (noUnixSockets): a
// container may not let the supervisor make a command's connections. If both
// fail, it returns the first report.
func (r *Runner) testL2(ctx context.Context) Report {
	first := r.testLevel(ctx, L2)
	if first.Passed() || !first.onlySupervisedChecksFailed() {
		return first
	}
	r.noUnixSockets = true
	second := r.testLevel(ctx, L2)
	if second.Passed() {
		second.NoUnix = true
		return second
	}
	r.noUnixSockets = false
	return first
}

// onlySupervisedChecksFailed reports whether all failed checks depend on system
// calls that the supervisor makes for commands.
func (r Report) onlySupervisedChecksFailed() bool {
	if r.Failure != "" {
		return strings.Contains(r.Failure, seccompFailure)
	}
	for _, c := range r.Checks {
		if c.Needed && c.State == NotEnforced && !slices.Contains(supervisedChecks[:], c.Name) {
			return false
		}
	}
	return true
}

// seccompFailure begins the error for a seccomp filter that the kernel refused.
const seccompFailure = "seccomp: "

// supervisedChecks lists the checks that depend on system calls made by the
// supervisor.
var supervisedChecks = [...]string{useLoopback, useNamedSockets}

const (
	// useLoopback and useNamedSockets are names of checks.
	useLoopback     = "use loopback"
	useNamedSockets = "use named sockets"
)

// testLevel runs the self-test at a level. Go tests set Runner.failChecks to
// make it report a failure.
func (r *Runner) testLevel(ctx context.Context, level Level) Report {
	check, fail := r.failChecks[level]
	if fail && check == "" {
		return Report{Level: level, Failure: "made to fail"}
	}
	report := r.runProbe(ctx, level)
	for i := range report.Checks {
		if fail && report.Checks[i].Name == check {
			report.Checks[i].State, report.Checks[i].Why = NotEnforced, "made to fail"
		}
	}
	return report
}

// testedLevel returns the level at which commands run, once its self-test has passed.
// It returns CANCELLED if ctx has ended, and the errors of SelfTest.
func (r *Runner) testedLevel(ctx context.Context) (Level, error) {
	if err := ctx.Err(); err != nil { // a start would only notice later
		return "", toolerr.New(toolerr.Cancelled, "the command was cancelled before it was started: %w", err)
	}
	report, err := r.SelfTest(ctx)
	return report.Level, err
}
