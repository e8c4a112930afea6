// Package linematch finds the lines of a file that are most similar to lines
// that the file does not have, for error messages. It never decides what to
// change.
//
// Lines are compared by their words: rare words weigh most, and each counts as
// often as it is wanted. Two passes over the file count the words and find the
// best window; an alignment in and around it then pairs the lines. Time is
// linear in the file, and memory depends on the wanted lines, for any text.
package linematch

import (
	"bytes"

	"github.com/toolroom-mcp/toolroom/tools/edit/cancelcheck"
)

// MaxLineBytes bounds the part of a line that is stored and aligned.
const MaxLineBytes = 4 << 10

// Limits: the wanted lines, their distinct words, and the words of one line of
// the file.
const (
	maxWanted    = 400
	maxWords     = 4096
	maxLineWords = 256
)

// Pair is a wanted line and the line of the file that corresponds to it. One of
// the two may be missing.
type Pair struct {
	Wanted int // index of the wanted line; -1: the file's line is additional
	Line   int // index in Block.Lines; -1: the file lacks the wanted line
}

// Block is a range of lines of the file, aligned with the wanted lines.
type Block struct {
	FirstLine     int      // line number of Lines[0], from 1
	Lines         []string // without endings, each cut to MaxLineBytes
	Offsets       []int    // offset of each line in Text.Body
	Pairs         []Pair   // in the order of the lines
	MatchingLines int      // number of wanted lines that the block has with the same words
}

// Text is the text to search.
type Text struct {
	Body    []byte
	EOL     byte                 // the byte that ends a line; 0: Body is one line
	Checker *cancelcheck.Checker // stops the search; results of a stopped search are invalid
}

// Find returns the block of t that is most similar to the wanted lines. ok is
// false if t has none of their words, or if the search was stopped. Only the
// first maxWanted lines are considered.
func Find(t Text, wanted []string) (block Block, ok bool) {
	wanted = wanted[:min(len(wanted), maxWanted)]
	v := newVocabulary(wanted)
	if len(v.words) == 0 {
		return Block{}, false
	}
	v.setWeights(t)
	best := v.bestWindow(t, len(wanted))
	if best.score <= 0 || t.Checker.Err() != nil {
		return Block{}, false
	}
	slack := 12 + len(wanted)/4
	return v.alignBlock(t, best, slack, wanted), true
}

// eachLine yields the offset of each line, and the line without the last byte
// of its ending, until yield returns false or t.Checker stops.
func eachLine(t Text, yield func(start int, line []byte) bool) {
	if t.EOL == 0 {
		yield(0, t.Body)
		return
	}
	for at := 0; at < len(t.Body); {
		end := len(t.Body)
		next := end
		if n := bytes.IndexByte(t.Body[at:], t.EOL); n >= 0 {
			end, next = at+n, at+n+1
		}
		if t.Checker.Stopped(next-at) || !yield(at, t.Body[at:end]) {
			return
		}
		at = next
	}
}
