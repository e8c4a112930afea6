package proc

import (
	"fmt"
	"os"
	"slices"
	"strings"
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
	Why   string // the result of the attempt, such as the error
	// Allowed reports whether the sandbox must allow the action of the name. It must
	// block all others.
	Allowed bool
	// Needed reports whether the level promises this. A check that is neither
	// needed nor enforced is a gap of the level.
	Needed bool
}

// Report is the result of a self-test, which tries each promise of a level in a
// command confined like any other.
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

// Passed reports whether this machine enforces everything that the level
// promises. It is true for Off.
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
	switch r.Level {
	case Off:
		return []string{"nothing is confined"}
	case Restricted:
		return []string{"files and the registry: reading and writing as the user, credential stores included", "the network", "other processes of the user",
			"programs that run outside the job, such as services, scheduled tasks and WMI"}
	}
	var gaps []string
	for _, c := range r.Checks {
		if !c.Needed && c.State == NotEnforced {
			gaps = append(gaps, c.Name)
		}
	}
	gaps = append(gaps, "code in roots that other programs run later, such as scripts and tests")
	if r.NoUnix {
		gaps = append(gaps, "programs that need unix sockets fail")
	}
	if isProcessLimitIgnored() {
		gaps = append(gaps, "the number of processes, which the kernel does not limit for root")
	}
	switch r.Level {
	case Seatbelt:
		return append(gaps, "secrets that appear in roots while a command runs", "names and metadata of files outside roots", "POSIX shared memory of other programs",
			"memory and processor time", "processes that start new sessions at once, and all processes if the server's supervisor is killed")
	case L1:
		gaps = append(gaps, "secrets inside roots", "protected files inside roots while a command runs",
			"arguments and scheduling of the user's other processes")
	default:
		gaps = append(gaps, "secrets that appear while a command runs",
			"private keys in roots with ordinary file names", "secrets in node_modules and .git/objects of roots")
	}
	return gaps
}

// isProcessLimitIgnored reports whether this process runs as root of the
// machine, who is exempt from a limit of processes: copy_process compares the
// user with INIT_USER, whatever the capabilities.
func isProcessLimitIgnored() bool {
	if os.Geteuid() != 0 {
		return false
	}
	text, _ := os.ReadFile("/proc/self/uid_map") // first id inside, first id outside, count
	fields := strings.Fields(string(text))
	return len(fields) > 1 && fields[0] == "0" && fields[1] == "0"
}

// Failures returns a text about the failed checks of this level and of the
// higher ones that were tested before it, for a report that did not pass.
func (r Report) Failures() string {
	var all []string
	for _, tried := range append(slices.Clone(r.Higher), r) {
		all = append(all, tried.describeFailures())
	}
	return strings.Join(all, "; ")
}

// describeFailures returns a text about the needed checks of this level that
// failed.
func (r Report) describeFailures() string {
	if r.Failure != "" {
		return fmt.Sprintf("%s: %s", r.Level, r.Failure)
	}
	var names []string
	for _, c := range r.Checks {
		if c.Needed && c.State == NotEnforced {
			names = append(names, c.Name+" ("+c.Why+")")
		}
	}
	return fmt.Sprintf("%s fails these checks: %s", r.Level, strings.Join(names, ", "))
}
