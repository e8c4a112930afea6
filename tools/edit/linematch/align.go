package linematch

import (
	"bytes"
	"slices"
	"strings"
)

// line is a line prepared for the alignment.
type line struct {
	text        string
	trimmed     string   // without surrounding white space
	wordsHash   uint64   // hash of all words; 0: there are none
	words       []uint64 // sorted
	totalWeight float64  // of its words
}

// prepareLine splits a line into words. It considers MaxLineBytes and
// maxLineWords.
func (v *vocabulary) prepareLine(text string) line {
	l := line{text: text, trimmed: strings.TrimSpace(text)}
	l.wordsHash = eachWord([]byte(text[:min(len(text), MaxLineBytes)]), nil, func(word uint64) bool {
		l.words = append(l.words, word)
		return len(l.words) < maxLineWords
	})
	slices.Sort(l.words)
	for _, word := range l.words {
		l.totalWeight += v.weightOf(word)
	}
	return l
}

// pairScore returns the score of two lines paired with each other: 120 if they
// are equal, 110 if only white space around them differs, 100 if their words are
// the same, and otherwise up to 80 by the weight of their common words. Lines
// without words score 10 if both are blank, and 30 if they are equal apart from
// white space around them. -1 means that the lines are unlike.
func (v *vocabulary) pairScore(a, b line) int {
	switch {
	case a.text == b.text && a.wordsHash != 0:
		return 120
	case a.trimmed == b.trimmed && a.wordsHash != 0:
		return 110
	case a.wordsHash != 0 && a.wordsHash == b.wordsHash:
		return 100
	case a.trimmed == b.trimmed && a.trimmed == "":
		return 10
	case a.trimmed == b.trimmed:
		return 30
	case len(a.words) == 0 || len(b.words) == 0:
		return -1
	}
	common, i, j := 0.0, 0, 0
	for i < len(a.words) && j < len(b.words) {
		switch {
		case a.words[i] == b.words[j]:
			common, i, j = common+v.weightOf(a.words[i]), i+1, j+1
		case a.words[i] < b.words[j]:
			i++
		default:
			j++
		}
	}
	if share := 2 * common / (a.totalWeight + b.totalWeight); share >= 0.34 {
		return int(80 * share)
	}
	return -1
}

// gapScore is the score of a line without a partner, unlikePairScore that of
// two unlike lines paired with each other.
const (
	gapScore        = -4
	unlikePairScore = -6
)

// alignBlock pairs the wanted lines with the lines of w and up to slack lines
// on each side, and returns the range from the first to the last paired line.
// If no line is similar, the block is the first line of w.
func (v *vocabulary) alignBlock(t Text, w window, slack int, wanted []string) Block {
	first, lines, starts := linesAround(t, w, slack)
	a, b := make([]line, len(wanted)), make([]line, len(lines))
	for i, text := range wanted {
		a[i] = v.prepareLine(text)
	}
	for j, text := range lines {
		b[j] = v.prepareLine(text)
	}
	pairs := v.alignLines(a, b)
	from, to := pairedRange(pairs, len(lines))
	if to == 0 { // common words, but no similar line
		from, to = w.firstLine-first, w.firstLine-first+1
		pairs = []Pair{{0, from}}
	}
	block := Block{FirstLine: first + from + 1, Lines: lines[from:to], Offsets: starts[from:to]}
	for _, p := range pairs {
		switch {
		case p.Line < 0:
			block.Pairs = append(block.Pairs, p)
		case p.Line >= from && p.Line < to:
			if p.Wanted >= 0 && (a[p.Wanted].trimmed == b[p.Line].trimmed || a[p.Wanted].wordsHash == b[p.Line].wordsHash && a[p.Wanted].wordsHash != 0) {
				block.MatchingLines++
			}
			block.Pairs = append(block.Pairs, Pair{p.Wanted, p.Line - from})
		}
	}
	return block
}

// linesAround returns the lines of w and up to slack lines on each side, each
// cut to MaxLineBytes: the index of the first line in the file, from 0, the
// lines, and their offsets.
func linesAround(t Text, w window, slack int) (first int, lines []string, starts []int) {
	start, before := w.offset, 0
	for before < slack && start > 0 {
		start = bytes.LastIndexByte(t.Body[:start-1], t.EOL) + 1
		before++
	}
	first = w.firstLine - before
	eachLine(Text{Body: t.Body[start:], EOL: t.EOL}, func(at int, line []byte) bool {
		if t.EOL == '\n' {
			line = bytes.TrimSuffix(line, []byte{'\r'})
		}
		lines = append(lines, string(line[:min(len(line), MaxLineBytes)]))
		starts = append(starts, start+at)
		return len(lines) < before+w.lineCount+slack
	})
	return first, lines, starts
}

// alignLines aligns all lines of a with a part of b, by the algorithm of
// Needleman and Wunsch with free ends of b. Pair.Wanted is an index in a,
// Pair.Line an index in b.
func (v *vocabulary) alignLines(a, b []line) []Pair {
	score := make([][]int, len(a)+1)
	for i := range score {
		score[i] = make([]int, len(b)+1)
		if i > 0 {
			score[i][0] = i * gapScore
		}
	}
	both := func(i, j int) int {
		if n := v.pairScore(a[i-1], b[j-1]); n >= 0 {
			return n
		}
		return unlikePairScore
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			score[i][j] = max(score[i-1][j-1]+both(i, j), score[i-1][j]+gapScore, score[i][j-1]+gapScore)
		}
	}
	j := 0
	for k := range score[len(a)] {
		if score[len(a)][k] > score[len(a)][j] {
			j = k
		}
	}
	var pairs []Pair
	for i := len(a); i > 0; {
		switch {
		case j > 0 && score[i][j] == score[i-1][j-1]+both(i, j):
			i, j = i-1, j-1
			pairs = append(pairs, Pair{i, j})
		case score[i][j] == score[i-1][j]+gapScore:
			i--
			pairs = append(pairs, Pair{i, -1})
		default:
			j--
			pairs = append(pairs, Pair{-1, j})
		}
	}
	slices.Reverse(pairs)
	return pairs
}

// pairedRange returns the half-open range of lines of the file from the first
// to the last that is paired with a wanted line; 0, 0 if there is no such line.
func pairedRange(pairs []Pair, lineCount int) (from, to int) {
	from = lineCount
	for _, p := range pairs {
		if p.Wanted >= 0 && p.Line >= 0 {
			from, to = min(from, p.Line), max(to, p.Line+1)
		}
	}
	return min(from, to), to
}
