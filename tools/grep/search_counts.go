package main

import (
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
)

// tally holds counts of one worker or of a whole search: matches, and files by
// outcome.
type tally struct {
	outcomes      [outcomeCount]int // number of files, by outcome
	matchingFiles int               // that match
	matches       int               // in all files; not counted for files_with_matches
	showable      int               // matches (files in the other modes) to show, bounded only by max_per_file
	filtered      int               // files excluded by glob, exclude or type
	filesRead     int               // files that were read, instead of only looked up in the index

	skippedPaths [outcomeCount][]string // some of the unreadable and too large files, as matchingFile.path

	guessCount   int           // files searched in a guessed encoding
	guessedFiles []guessedFile // some of these
}

// countSkipped counts a file that is not searched. It keeps a few paths of the
// files that the user may want to act on.
func (t *tally) countSkipped(path string, why outcome) {
	t.outcomes[why]++
	if why == unreadable || why == tooLarge {
		t.skippedPaths[why] = append(t.skippedPaths[why], strings.Clone(path))
		if len(t.skippedPaths[why]) > 2*maxNamedPaths { // keep the same names, whichever worker finds them
			slices.Sort(t.skippedPaths[why])
			t.skippedPaths[why] = t.skippedPaths[why][:maxNamedPaths]
		}
	}
}

// addGuess counts a file searched in a guessed encoding and keeps a few paths.
func (t *tally) addGuess(path string, e textfile.Encoding) {
	if e == "" {
		return
	}
	t.guessCount++
	t.guessedFiles = append(t.guessedFiles, guessedFile{strings.Clone(path), e})
	t.trimGuesses(2 * maxNamedPaths)
}

// trimGuesses cuts the guessed files to the first maxNamedPaths by path, if
// there are more than above: the same names remain, whichever worker finds
// them.
func (t *tally) trimGuesses(above int) {
	if len(t.guessedFiles) > above {
		slices.SortFunc(t.guessedFiles, func(a, b guessedFile) int { return strings.Compare(a.path, b.path) })
		t.guessedFiles = t.guessedFiles[:maxNamedPaths]
	}
}

// add adds the counts of another worker.
func (t *tally) add(other *tally) {
	for i, n := range other.outcomes {
		t.outcomes[i] += n
		t.skippedPaths[i] = append(t.skippedPaths[i], other.skippedPaths[i]...)
	}
	t.guessCount += other.guessCount
	t.guessedFiles = append(t.guessedFiles, other.guessedFiles...)
	t.matchingFiles += other.matchingFiles
	t.matches += other.matches
	t.showable += other.showable
	t.filtered += other.filtered
	t.filesRead += other.filesRead
}

// outcome tells whether a file was searched, or why it was not.
type outcome uint8

// The outcomes.
const (
	searched outcome = iota
	binary
	tooLarge // over MaxFileSize
	unreadable
	secretFile // a credential store or key
	special    // neither a regular file nor a directory
	outcomeCount
)
