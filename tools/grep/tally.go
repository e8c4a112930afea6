package main

import "strings"

// tally counts files by what became of them, and matches.
type tally struct {
	outcomes [outcomes]int
	files    int // that match
	matches  int
	entries  int // to show, if there were no bound but the one a file
	filtered int // left out by glob, exclude or type
	read     int // read, not only looked up in the index

	named [outcomes][]string // some of the unreadable and the too large, as match.path
}

// skip counts a file that is not searched. Of those that somebody may want to
// do something about, it keeps a few names.
func (t *tally) skip(path string, why outcome) {
	t.outcomes[why]++
	if (why == unreadable || why == tooLarge) && len(t.named[why]) < maxNamed {
		t.named[why] = append(t.named[why], strings.Clone(path))
	}
}

func (t *tally) add(other *tally) {
	for i, n := range other.outcomes {
		t.outcomes[i] += n
		t.named[i] = append(t.named[i], other.named[i]...)
	}
	t.files += other.files
	t.matches += other.matches
	t.entries += other.entries
	t.filtered += other.filtered
	t.read += other.read
}
