package match

import (
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/textdiff"
)

// partner is the old line that a new line replaces; -1: none.
type linePair struct {
	oldLine int
	equal   bool
}

// partnersOf pairs new lines with the old lines that they replace.
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

func trimLines(lines []string) []string {
	all := make([]string, len(lines))
	for i, line := range lines {
		all[i] = strings.TrimSpace(line)
	}
	return all
}
