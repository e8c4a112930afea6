package linematch

import "math"

// vocabulary holds the words and the lines that are wanted, by hash.
type vocabulary struct {
	words map[uint64]*wantedEntry
	lines map[uint64]*wantedEntry // by the hash of all words of the line
}

// wantedEntry is a wanted word or line: how often the wanted lines, the file
// and the current window have it, and its weight.
type wantedEntry struct {
	wantedCount, fileCount, windowCount int
	weight                              float64
}

// newVocabulary returns the words of the wanted lines, without weights.
func newVocabulary(wanted []string) *vocabulary {
	v := &vocabulary{words: map[uint64]*wantedEntry{}, lines: map[uint64]*wantedEntry{}}
	add := func(in map[uint64]*wantedEntry, key uint64) {
		if in[key] == nil {
			if len(in) == maxWords {
				return
			}
			in[key] = &wantedEntry{}
		}
		in[key].wantedCount++
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

// setWeights counts the wanted words and lines in the file, and gives rare ones
// more weight.
func (v *vocabulary) setWeights(t Text) {
	total := 0
	eachLine(t, func(_ int, line []byte) bool {
		total++
		sum := eachWord(line, t.Checker, func(word uint64) bool {
			if e := v.words[word]; e != nil {
				e.fileCount++
			}
			return true
		})
		if e := v.lines[sum]; e != nil {
			e.fileCount++
		}
		return true
	})
	weight := func(e *wantedEntry) float64 { return math.Log2(1 + float64(total+1)/float64(e.fileCount+1)) }
	for _, e := range v.words {
		e.weight = weight(e)
	}
	for _, e := range v.lines {
		e.weight = 2 * weight(e)
	}
}

// weightOf returns a word's weight, which is unwantedWeight if it is not in the
// vocabulary.
func (v *vocabulary) weightOf(word uint64) float64 {
	if e := v.words[word]; e != nil {
		return e.weight
	}
	return unwantedWeight
}

// unwantedWeight is the weight of a word that no wanted line has.
const unwantedWeight = 3
