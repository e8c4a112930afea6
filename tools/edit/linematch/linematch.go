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
	"math"

	"github.com/toolroom-mcp/toolroom/tools/edit/cancelcheck"
)

// MaxLine bounds the part of a line that is stored and aligned, in bytes.
const MaxLine = 4 << 10

// Limits: wanted lines, their distinct words, and words of one line of the
// file.
const (
	maxWanted    = 400
	maxWords     = 4096
	maxLineWords = 256
)

// Pair is a wanted line and the corresponding line of the file.
type Pair struct {
	Wanted int // index of the wanted line; -1: the file's line is additional
	Line   int // index in Block.Lines; -1: the wanted line is missing
}

// Block is a range of lines of the file.
type Block struct {
	First int      // number of its first line, 1-based
	Lines []string // without endings, each cut to MaxLine
	Start []int    // offset of each in Text.Body
	Pairs []Pair   // in order, from the first to the last wanted line
	Alike int      // number of wanted lines with the same words in the block
}

// Text is the text to search.
type Text struct {
	Body    []byte
	EOL     byte                 // the byte that ends a line; 0: none does
	Checker *cancelcheck.Checker // of the search: once it is over, results are invalid
}

// Find returns the block that is most similar to the wanted lines; false if the
// file has none of their words.
func Find(t Text, wanted []string) (Block, bool) {
	wanted = wanted[:min(len(wanted), maxWanted)]
	v := newVocabulary(wanted)
	if len(v.words) == 0 {
		return Block{}, false
	}
	v.weigh(t)
	best := v.best(t, len(wanted))
	if best.score <= 0 || t.Checker.Err() != nil {
		return Block{}, false
	}
	slack := 12 + len(wanted)/4
	return v.align(t, best, slack, wanted), true
}

// vocabulary holds the wanted words and lines, by hash.
type vocabulary struct {
	words map[uint64]*entry
	lines map[uint64]*entry // by the hash of all their words
}

// entry is a word or a line: its counts among the wanted lines, in the file and
// in the current window, and its weight.
type entry struct {
	wanted, count, inside int
	weight                float64
}

func newVocabulary(wanted []string) *vocabulary {
	v := &vocabulary{words: map[uint64]*entry{}, lines: map[uint64]*entry{}}
	add := func(in map[uint64]*entry, key uint64) {
		if in[key] == nil {
			if len(in) == maxWords {
				return
			}
			in[key] = &entry{}
		}
		in[key].wanted++
	}
	for _, line := range wanted {
		sum := eachWord([]byte(line), nil, func(word uint64) bool {
			add(v.words, word)
			return true
		})
		if sum != 0 {
			add(v.lines, sum)
		}
	}
	return v
}

// eachWord yields a hash of each word, ignoring case, and returns a hash of all
// words; 0 if the line has none.
func eachWord(line []byte, checker *cancelcheck.Checker, yield func(uint64) bool) uint64 {
	var all uint64
	more := true
	eachWordAt(line, func(word uint64, _ int) bool {
		all = (all ^ word) * factor
		more = more && yield(word)
		return !checker.Stopped(perWord)
	})
	return all
}

// offset and factor are the constants of the FNV-1a hash.
const offset, factor = 14695981039346656037, 1099511628211

// perWord is the cost of work on a word, in bytes scanned.
const perWord = 16

// eachWordAt yields a hash of each word and the position of its end.
func eachWordAt(line []byte, yield func(word uint64, end int) bool) {
	word := uint64(offset)
	inside := false
	for i, c := range line {
		if class := letters[c]; class != 0 {
			word, inside = (word^uint64(class))*factor, true
			continue
		}
		if inside {
			if !yield(word, i) {
				return
			}
			word, inside = offset, false
		}
	}
	if inside {
		yield(word, len(line))
	}
}

// letters maps the bytes of words to themselves in lower case, all others to 0.
// Bytes of other scripts are letters, except those that occur in typographic
// quotes and dashes.
var letters = func() (table [256]byte) {
	for c := range 256 {
		switch b := byte(c); {
		case b >= 'A' && b <= 'Z':
			table[c] = b + 'a' - 'A'
		case b >= 'a' && b <= 'z', b >= '0' && b <= '9', b == '_', b >= 0xC3 && b != 0xE2:
			table[c] = b
		}
	}
	return table
}()

// eachLine yields the lines without the last byte of their ending.
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

// weigh counts words and lines in the file, and gives rare ones more weight.
func (v *vocabulary) weigh(t Text) {
	total := 0
	eachLine(t, func(_ int, line []byte) bool {
		total++
		sum := eachWord(line, t.Checker, func(word uint64) bool {
			if e := v.words[word]; e != nil {
				e.count++
			}
			return true
		})
		if e := v.lines[sum]; e != nil {
			e.count++
		}
		return true
	})
	weight := func(e *entry) float64 { return math.Log2(1 + float64(total+1)/float64(e.count+1)) }
	for _, e := range v.words {
		e.weight = weight(e)
	}
	for _, e := range v.lines {
		e.weight = 2 * weight(e)
	}
}

// window is a range of lines of the file.
type window struct {
	score float64
	first int // line, from 0
	start int // offset
	size  int // lines
}

// best slides a window over the file and returns the one with the highest
// score.
func (v *vocabulary) best(t Text, size int) window {
	type seen struct {
		start   int
		entries []*entry
	}
	ring := make([]seen, size)
	var best window
	score, index := 0.0, 0
	eachLine(t, func(start int, line []byte) bool {
		slot := &ring[index%size]
		for _, e := range slot.entries { // leaves the window
			if e.inside--; e.inside < e.wanted {
				score -= e.weight
			}
		}
		slot.start, slot.entries = start, slot.entries[:0]
		enter := func(e *entry) {
			if e == nil || len(slot.entries) == maxLineWords {
				return
			}
			if e.inside < e.wanted {
				score += e.weight
			}
			e.inside++
			slot.entries = append(slot.entries, e)
		}
		sum := eachWord(line, t.Checker, func(word uint64) bool {
			enter(v.words[word])
			return len(slot.entries) < maxLineWords
		})
		enter(v.lines[sum])
		if score > best.score+1e-6 {
			first := max(0, index-size+1)
			best = window{score: score, first: first, start: ring[first%size].start, size: size}
		}
		index++
		return true
	})
	return best
}

// Within finds the part of a long line that is most similar to a text, by the
// same measure; false if the line has none of its words.
func Within(line Text, wanted string) (from, to int, ok bool) {
	v := newVocabulary([]string{wanted})
	v.weigh(line)
	type spot struct {
		at    int
		entry *entry
	}
	var window []spot
	size, best, score := len(wanted)*5/4, 0.0, 0.0
	eachWordAt(line.Body, func(word uint64, at int) bool {
		if line.Checker.Stopped(perWord) {
			return false
		}
		e := v.words[word]
		if e == nil {
			return true
		}
		for len(window) > 0 && (at-window[0].at > size || len(window) == maxLineWords) {
			first := window[0].entry
			if first.inside--; first.inside < first.wanted {
				score -= first.weight
			}
			window = window[1:]
		}
		if e.inside < e.wanted {
			score += e.weight
		}
		e.inside++
		window = append(window, spot{at, e})
		if score > best+1e-6 {
			best, from, to, ok = score, window[0].at, at, true
		}
		return true
	})
	return from, to, ok
}
