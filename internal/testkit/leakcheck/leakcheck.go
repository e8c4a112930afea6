// Package leakcheck makes the tests of a package fail if they leave goroutines of this
// module behind: each goroutine has an owner that waits for it. A package uses it in
// TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(leakcheck.Tests{Tests: m}.Run()) }
package leakcheck

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"
)

// Tests runs tests, usually a *testing.M, and then looks for goroutines that are left.
type Tests struct {
	Tests interface{ Run() int }
	Out   io.Writer // where leaks are reported; nil: standard error
}

// module is a prefix of the import paths of this module's packages.
const module = "github.com/toolroom-mcp/toolroom/"

// maxWait is the time in which goroutines may still end after the tests: the owner of a
// goroutine continues a little before it has returned.
const maxWait = 3 * time.Second

// Run runs the tests and returns their exit status, or 1 if they passed and left
// goroutines behind.
func (t Tests) Run() int {
	code := t.Tests.Run()
	if code != 0 {
		return code
	}
	left := leftGoroutines()
	for end := time.Now().Add(maxWait); len(left) > 0 && time.Now().Before(end); left = leftGoroutines() {
		time.Sleep(10 * time.Millisecond)
	}
	if len(left) == 0 {
		return 0
	}
	out := t.Out
	if out == nil {
		out = os.Stderr
	}
	fmt.Fprintf(out, "the tests left %d goroutines:\n\n%s\n", len(left), strings.Join(left, "\n\n")) //nolint:errcheck // the status says it, too
	return 1
}

// leftGoroutines returns the stacks of the goroutines with a function of this module,
// except of the one that calls it.
func leftGoroutines() (stacks []string) {
	buf := make([]byte, 1<<20)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	for i, stack := range strings.Split(string(buf), "\n\n") {
		if i > 0 && strings.Contains(stack, module) { // the first is this one
			stacks = append(stacks, stack)
		}
	}
	return stacks
}
