package proc_test

import (
	"context"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// long enables slow tests, and more rounds in others.
var long = os.Getenv("PROC_LONG") != ""

// rules are Rules with one root.
type rules struct{ root string }

func (r rules) Roots() []sandbox.Root             { return []sandbox.Root{{Path: r.root}} }
func (r rules) Masked(abs string) bool            { return false }
func (r rules) Denied(abs string) bool            { return false }
func (r rules) ExplicitlyAllowed(abs string) bool { return false }

func (r rules) Protected(abs string) string { return "" }

// tried runs the self-tests of the levels once, since the machine does not
// change.
var tried = sync.OnceValues(func() (found []proc.Level, reports map[proc.Level]proc.Report) {
	found, reports = []proc.Level{proc.Off}, map[proc.Level]proc.Report{}
	for _, level := range []proc.Level{proc.L1, proc.L2} {
		r, err := proc.New(proc.Config{Level: level})
		if err != nil {
			continue
		}
		if reports[level], err = r.SelfTest(context.Background()); err == nil {
			found = append(found, level)
		}
		r.Close()
	}
	return found, reports
})

// levels returns the levels that this machine enforces, and logs the others.
func levels(t testing.TB) []proc.Level {
	t.Helper()
	found, reports := tried()
	for level, report := range reports {
		if !report.Passed() {
			t.Logf("not run at %s: %s", level, report.Failure)
		}
	}
	return found
}

// oneConfined leaves one confined level of several for a case, by its name, unless
// PROC_LONG is set: the cases of a table share what they test of the levels.
func oneConfined(levels []proc.Level, name string) []proc.Level {
	confined := slices.DeleteFunc(slices.Clone(levels), func(l proc.Level) bool { return l == proc.Off })
	if long || len(confined) < 2 {
		return levels
	}
	left := confined[len(name)%len(confined)]
	return slices.DeleteFunc(slices.Clone(levels), func(l proc.Level) bool { return l != proc.Off && l != left })
}
