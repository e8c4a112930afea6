package match

import (
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/textdiff"
)

// linePair is the old line that a new line replaces.
type linePair struct {
	oldLine int  // index; -1: none, the new line is additional
	equal   bool // the two lines are equal
}

// pairLines returns, for each new line, the old line that it replaces.
func pairLines(old, newLines []string, stop func() bool) []linePair {
	partners := make([]linePair, len(newLines))
	i, j := 0, 0
	runs := textdiff.Align(old, newLines, stop)
	for _, run := range append(runs, textdiff.Run{A: len(old), B: len(newLines)}) {
		for ; j < run.B; i, j = i+1, j+1 {
			partners[j].oldLine = -1
			if i < run.A {
				partners[j].oldLine = i
			}
		}
		for n := range run.N {
			partners[run.B+n] = linePair{run.A + n, true}
		}
		i, j = run.A+run.N, run.B+run.N
	}
	return partners
}

// trimLines returns the lines without surrounding white space.
func trimLines(lines []string) []string {
	all := make([]string, len(lines))
	for i, line := range lines {
		all[i] = strings.TrimSpace(line)
	}
	return all
}
