package linematch

import (
	"bytes"
	"slices"
	"strings"
)

// line is a line prepared for the alignment.
type line struct {
	text  string
	bare  string // without surrounding white space
	sum   uint64
	words []uint64 // sorted
	total float64  // their total weight
}

func (v *vocabulary) newLine(text string) line {
	l := line{text: text, bare: strings.TrimSpace(text)}
	l.sum = eachWord([]byte(text[:min(len(text), MaxLine)]), nil, func(word uint64) bool {
		l.words = append(l.words, word)
		return len(l.words) < maxLineWords
	})
	slices.Sort(l.words)
	for _, word := range l.words {
		l.total += v.weightOf(word)
	}
	return l
}

// likeness scores the similarity of two lines; negative means unlike.
func (v *vocabulary) likeness(a, b line) int {
	switch {
	case a.text == b.text && a.sum != 0:
		return 120
	case a.bare == b.bare && a.sum != 0:
		return 110
	case a.sum != 0 && a.sum == b.sum:
		return 100
	case a.bare == b.bare && a.bare == "":
		return 10
	case a.bare == b.bare:
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
	if share := 2 * common / (a.total + b.total); share >= 0.34 {
		return int(80 * share)
	}
	return -1
}

// gap is the score of a line without a partner, pair that of two unlike lines
// paired with each other.
const (
	gap  = -4
	pair = -6
)

// align pairs the wanted lines with lines in and around a window.
func (v *vocabulary) align(t Text, w window, slack int, wanted []string) Block {
	first, lines, starts := around(t, w, slack)
	a, b := make([]line, len(wanted)), make([]line, len(lines))
	for i, text := range wanted {
		a[i] = v.newLine(text)
	}
	for j, text := range lines {
		b[j] = v.newLine(text)
	}
	pairs := v.pairUp(a, b)
	from, to := span(pairs, len(lines))
	if to == 0 { // common words, but no similar line
		from, to = w.first-first, w.first-first+1
		pairs = []Pair{{0, from}}
	}
	block := Block{First: first + from + 1, Lines: lines[from:to], Start: starts[from:to]}
	for _, p := range pairs {
		switch {
		case p.Line < 0:
			block.Pairs = append(block.Pairs, p)
		case p.Line >= from && p.Line < to:
			if p.Wanted >= 0 && (a[p.Wanted].bare == b[p.Line].bare || a[p.Wanted].sum == b[p.Line].sum && a[p.Wanted].sum != 0) {
				block.Alike++
			}
			block.Pairs = append(block.Pairs, Pair{p.Wanted, p.Line - from})
		}
	}
	return block
}

// around returns the lines of a window and up to slack more on each side, with
// the index of the first line and the offset of each.
func around(t Text, w window, slack int) (first int, lines []string, starts []int) {
	start, before := w.start, 0
	for before < slack && start > 0 {
		start = bytes.LastIndexByte(t.Body[:start-1], t.EOL) + 1
		before++
	}
	first = w.first - before
	eachLine(Text{Body: t.Body[start:], EOL: t.EOL}, func(at int, line []byte) bool {
		if t.EOL == '\n' {
			line = bytes.TrimSuffix(line, []byte{'\r'})
		}
		lines = append(lines, string(line[:min(len(line), MaxLine)]))
		starts = append(starts, start+at)
		return len(lines) < before+w.size+slack
	})
	return first, lines, starts
}

// pairUp aligns all of a with a part of b (Needleman and Wunsch, with free ends
// of b).
func (v *vocabulary) pairUp(a, b []line) []Pair {
	score := make([][]int, len(a)+1)
	for i := range score {
		score[i] = make([]int, len(b)+1)
		if i > 0 {
			score[i][0] = i * gap
		}
	}
	both := func(i, j int) int {
		if n := v.likeness(a[i-1], b[j-1]); n >= 0 {
			return n
		}
		return pair
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			score[i][j] = max(score[i-1][j-1]+both(i, j), score[i-1][j]+gap, score[i][j-1]+gap)
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
		case score[i][j] == score[i-1][j]+gap:
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

// span returns the range of lines of the file from the first to the last that
// is paired with a wanted line.
func span(pairs []Pair, lines int) (from, to int) {
	from = lines
	for _, p := range pairs {
		if p.Wanted >= 0 && p.Line >= 0 {
			from, to = min(from, p.Line), max(to, p.Line+1)
		}
	}
	return min(from, to), to
}
