package proc

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// State is what became of a promise.
type State string

// The states.
const (
	Enforced     State = "enforced"
	NotEnforced  State = "not enforced"
	NotAvailable State = "not available" // there is nothing here to try it on
)

// Check is one promise, and whether this machine keeps it.
type Check struct {
	Name  string
	State State
	Why   string // what was tried and what came of it
	// Needed is whether the level promises it; a check that is not needed
	// and not enforced is a gap of the level.
	Needed bool
}

// Report is what a self-test found by trying each promise in a command that
// was confined like any other.
type Report struct {
	// Level is the level that was tried, or chosen.
	Level Level
	// Checks are in the order of their trying; empty where the level could
	// not be set up at all, and Failure says why.
	Checks  []Check
	Failure string
	// Landlock is the version that the kernel has, 0 for none.
	Landlock int
	// NoUnix is L2 without unix sockets, where the supervisor cannot make
	// connections for commands.
	NoUnix bool
	// Higher are the reports of the levels above that were tried in vain.
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

// Gaps are what the level leaves open, in short.
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

// failures are the promises that were not kept, for an error.
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

// SelfTest tries the configured level, or with Highest each from L2 down until
// one passes. It is done once; later calls return the same report, and each
// start of a command does it before. The report is there also with an error,
// which is SANDBOX_UNAVAILABLE.
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

// triedL2 tries L2, and where that fails L2 without unix sockets: a container
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

// mayBeSockets reports whether nothing but what the supervisor does for
// commands keeps a level from passing.
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

// seccompFailure is in the error of a filter that was not accepted.
const seccompFailure = "seccomp: "

// supervised are the checks that need calls made by the supervisor.
var supervised = [...]string{useLoopback, useNamedSockets}

const (
	useLoopback     = "use loopback"
	useNamedSockets = "use named sockets"
)

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

// level is the one that commands run at.
func (r *Runner) level(ctx context.Context) (Level, error) {
	if err := ctx.Err(); err != nil { // a start would notice at some time only
		return "", toolerr.New(toolerr.Cancelled, "the command was cancelled before it was started: %w", err)
	}
	report, err := r.SelfTest(ctx)
	return report.Level, err
}
