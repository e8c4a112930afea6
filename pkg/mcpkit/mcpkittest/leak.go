package mcpkittest

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// NoLeaks fails the test if, at its end, goroutines run code of the package pkg
// (an import path) that did not exist when NoLeaks was called. Call it first,
// so that it checks after the test's other cleanups, and not in a test that
// runs in parallel with others.
func NoLeaks(t testing.TB, pkg string) {
	t.Helper()
	before := map[string]bool{}
	for id := range goroutines(pkg) {
		before[id] = true
	}
	t.Cleanup(func() {
		// A goroutine whose end the test awaited may not have returned yet.
		const most = 20
		var left []string
		for range most {
			left = nil
			for id, stack := range goroutines(pkg) {
				if !before[id] {
					left = append(left, stack)
				}
			}
			if len(left) == 0 {
				return
			}
			time.Sleep(time.Millisecond)
		}
		t.Errorf("%d goroutines of %s are left:\n%s", len(left), pkg, strings.Join(left, "\n\n"))
	})
}

// goroutines returns the stacks of the goroutines that run code of a package,
// by goroutine id.
func goroutines(pkg string) map[string]string {
	buf := make([]byte, 1<<20)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	found := map[string]string{}
	for stack := range strings.SplitSeq(string(buf), "\n\n") {
		head, _, _ := strings.Cut(stack, " [")
		if strings.Contains(stack, pkg+".") && !strings.Contains(stack, "mcpkittest.goroutines") {
			found[head] = stack
		}
	}
	return found
}
