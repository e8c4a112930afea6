package main

import (
	"slices"
	"strings"
)

// tally counts matches, and files by outcome.
type tally struct {
	outcomes [outcomes]int
	files    int // that match
	matches  int
	entries  int // to show, bounded only per file
	filtered int // excluded by glob, exclude or type
	read     int // read, instead of only looked up in the index

	named [outcomes][]string // some of the unreadable and too large files, as match.path

	guesses int       // files searched in a guessed encoding
	guessed []guessed // some of them
}

// skip counts a file that is not searched. It keeps a few names of those that
// the user may want to act on.
func (t *tally) skip(path string, why outcome) {
	t.outcomes[why]++
	if why == unreadable || why == tooLarge {
		t.named[why] = append(t.named[why], strings.Clone(path))
		if len(t.named[why]) > 2*maxNamed { // keep the same names, whichever worker finds them
			slices.Sort(t.named[why])
			t.named[why] = t.named[why][:maxNamed]
		}
	}
}

func (t *tally) add(other *tally) {
	for i, n := range other.outcomes {
		t.outcomes[i] += n
		t.named[i] = append(t.named[i], other.named[i]...)
	}
	t.guesses += other.guesses
	t.guessed = append(t.guessed, other.guessed...)
	t.files += other.files
	t.matches += other.matches
	t.entries += other.entries
	t.filtered += other.filtered
	t.read += other.read
}

// outcome is the result of reading a file.
type outcome uint8

// The outcomes.
const (
	searched outcome = iota
	binary
	tooLarge
	unreadable
	secretFile
	special
	outcomes
)
