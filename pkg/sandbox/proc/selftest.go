package proc

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// State is the result of a check.
type State string

// The states.
const (
	Enforced     State = "enforced"
	NotEnforced  State = "not enforced"
	NotAvailable State = "not available" // this machine has nothing to try it on
)

// Check is the result of testing one promise on this machine.
type Check struct {
	Name  string
	State State
	Why   string // the attempt and its result
	// Needed reports whether the level promises this. A check that is neither
	// needed nor enforced is a gap of the level.
	Needed bool
}

// Report is the result of a self-test, which tries each promise in a command
// confined like any other.
type Report struct {
	// Level is the level that was tested or chosen.
	Level Level
	// Checks are in the order of the tests. They are empty if the level could
	// not be set up; then Failure gives the reason.
	Checks  []Check
	Failure string
	// Landlock is the kernel's Landlock version, 0 without Landlock.
	Landlock int
	// NoUnix means L2 without unix sockets, because the supervisor cannot make
	// connections for commands here.
	NoUnix bool
	// Higher are the reports of the higher levels that failed.
	Higher []Report
}

// Passed reports whether everything that the level promises is enforced.
func (r Report) Passed() bool {
	if r.Failure != "" {
		return false
	}
	for _, c := range r.Checks {
		if c.Needed && c.State == NotEnforced {
			return false
		}
	}
	return len(r.Checks) > 0 || r.Level == Off
}

// Gaps returns short descriptions of the accesses that the level does not
// restrict.
func (r Report) Gaps() []string {
	if r.Level == Off {
		return []string{"nothing is confined"}
	}
	var gaps []string
	for _, c := range r.Checks {
		if !c.Needed && c.State == NotEnforced {
			gaps = append(gaps, c.Name)
		}
	}
	gaps = append(gaps, "code that others run later")
	if r.NoUnix {
		gaps = append(gaps, "programs that need unix sockets fail")
	}
	if r.Level == L1 {
		gaps = append(gaps, "secrets inside roots", "protected files inside roots while a command runs",
			"arguments and scheduling of the user's other processes")
	} else {
		gaps = append(gaps, "secrets that appear while a command runs", "the user's sockets in roots that were renamed or appear while a command runs",
			"private keys in roots whose names tell nothing", "secrets in node_modules and .git/objects of roots")
	}
	return gaps
}

// failures describes the needed checks that failed, for an error.
func (r Report) failures() string {
	if r.Failure != "" {
		return fmt.Sprintf("%s: %s", r.Level, r.Failure)
	}
	var names []string
	for _, c := range r.Checks {
		if c.Needed && c.State == NotEnforced {
			names = append(names, c.Name+" ("+c.Why+")")
		}
	}
	return fmt.Sprintf("%s does not keep: %s", r.Level, strings.Join(names, ", "))
}

// SelfTest tests the configured level. With Highest it tests each level from
// L2 down until one passes. The result is cached, except if ctx ended. Each
// start of a command calls it. If the level does not pass, it returns a
// SANDBOX_UNAVAILABLE error and the report.
func (r *Runner) SelfTest(ctx context.Context) (Report, error) {
	r.probe.Lock()
	defer r.probe.Unlock()
	if r.report == nil {
		report := r.choose(ctx)
		if ctx.Err() != nil {
			return report, ctx.Err()
		}
		r.report = &report
	}
	if r.report.Passed() {
		return *r.report, nil
	}
	var all []string
	for _, tried := range append(r.report.Higher, *r.report) {
		all = append(all, tried.failures())
	}
	return *r.report, unavailable("commands cannot be confined on this machine (%s)", strings.Join(all, "; "))
}

// choose tests the configured level and returns its report. With Highest it
// tests L2, and then L1 if L2 does not pass.
func (r *Runner) choose(ctx context.Context) Report {
	switch r.config.Level {
	case Off:
		return Report{Level: Off}
	case Highest:
		first := r.triedL2(ctx)
		if first.Passed() {
			return first
		}
		second := r.tried(ctx, L1)
		second.Higher = append(first.Higher, first)
		return second
	case L2:
		return r.triedL2(ctx)
	}
	return r.tried(ctx, r.config.Level)
}

// triedL2 tests L2 and, if that fails, L2 without unix sockets: a container
// may not let the supervisor make a command's connections.
func (r *Runner) triedL2(ctx context.Context) Report {
	first := r.tried(ctx, L2)
	if first.Passed() || !first.mayBeSockets() {
		return first
	}
	r.noUnix = true
	second := r.tried(ctx, L2)
	if second.Passed() {
		second.NoUnix = true
		return second
	}
	r.noUnix = false
	return first
}

// mayBeSockets reports whether the failed checks all depend on system calls
// made by the supervisor for commands.
func (r Report) mayBeSockets() bool {
	if r.Failure != "" {
		return strings.Contains(r.Failure, seccompFailure)
	}
	for _, c := range r.Checks {
		if c.Needed && c.State == NotEnforced && !slices.Contains(supervised[:], c.Name) {
			return false
		}
	}
	return true
}

// seccompFailure begins the error for a seccomp filter that the kernel
// refused.
const seccompFailure = "seccomp: "

// supervised lists the checks that need system calls made by the supervisor.
var supervised = [...]string{useLoopback, useNamedSockets}

const (
	useLoopback     = "use loopback"
	useNamedSockets = "use named sockets"
)

// tried tests a level. For tests, Runner.fails makes the result fail.
func (r *Runner) tried(ctx context.Context, level Level) Report {
	check, fail := r.fails[level]
	if fail && check == "" {
		return Report{Level: level, Failure: "made to fail"}
	}
	report := r.try(ctx, level)
	for i := range report.Checks {
		if fail && report.Checks[i].Name == check {
			report.Checks[i].State, report.Checks[i].Why = NotEnforced, "made to fail"
		}
	}
	return report
}

// level returns the level of the commands.
func (r *Runner) level(ctx context.Context) (Level, error) {
	if err := ctx.Err(); err != nil { // a start would only notice later
		return "", toolerr.New(toolerr.Cancelled, "the command was cancelled before it was started: %w", err)
	}
	report, err := r.SelfTest(ctx)
	return report.Level, err
}
