package textdiff

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"
)

const (
	// maxParts bounds the parts of a long line that are shown.
	maxParts = 5
	// maxCompared bounds, in bytes, the sum of the texts of two lines, from the
	// first to the last difference, that are searched for separate places.
	maxCompared = 1 << 20
)

// separateDifferences returns the parts in which two long lines differ, pairwise. inOld
// and inNew are the ranges of old and newLine from the first difference to the last.
// Parts with less than half a window of equal text between them are joined. It returns
// nil if only one part is left, if both ranges fit into a window, or if they are longer
// than maxCompared together.
func (w *writer) separateDifferences(old []byte, newLine string, inOld, inNew shownPart) (olds, news []shownPart) {
	size := cmp.Or(w.options.WindowChars, w.options.MaxLineBytes)
	a, b := old[inOld.from:inOld.to], []byte(newLine[inNew.from:inNew.to])
	if max(len(a), len(b)) <= size || len(a)+len(b) > maxCompared {
		return nil, nil
	}
	x, y := splitWords(a), splitWords(b)
	i, j, atA, atB := 0, 0, inOld.from, inNew.from
	for _, run := range append(Align(x, y, w.options.Stopped), Run{A: len(x), B: len(y)}) {
		fromA, fromB := atA, atB
		for ; i < run.A; i++ {
			atA += len(x[i])
		}
		for ; j < run.B; j++ {
			atB += len(y[j])
		}
		if atA > fromA || atB > fromB {
			if n := len(news) - 1; n >= 0 && fromB-news[n].to < size/2 {
				olds[n].to, news[n].to = atA, atB
			} else {
				olds, news = append(olds, shownPart{from: fromA, to: atA}), append(news, shownPart{from: fromB, to: atB, withContext: true})
			}
		}
		for ; i < run.A+run.N; i, j = i+1, j+1 {
			atA, atB = atA+len(x[i]), atB+len(x[i])
		}
	}
	if len(news) < 2 {
		return nil, nil
	}
	return olds, news
}

// splitWords splits text into runs of letters and digits, and single other
// characters.
func splitWords(text []byte) []string {
	var words []string
	for len(text) > 0 {
		n := 0
		for n < len(text) {
			r, size := utf8.DecodeRune(text[n:])
			if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
				if n == 0 {
					n = size
				}
				break
			}
			n += size
		}
		words = append(words, string(text[:n]))
		text = text[n:]
	}
	return words
}

// writeParts writes several parts of a long line, with the numbers of omitted
// bytes between them. Of more than maxParts parts it writes the number of the
// others.
func (w *writer) writeParts(text []byte, parts []shownPart) {
	size := cmp.Or(w.options.WindowChars, w.options.MaxLineBytes) / 2
	at, more := 0, max(len(parts)-maxParts, 0)
	for i, p := range parts[:len(parts)-more] {
		from, to := min(p.from, len(text)), min(p.to, len(text))
		if cut := offsetAfterRunes(text, from, size); cut < to {
			to = cut
		}
		if room := size - utf8.RuneCount(text[from:to]); p.withContext && room > 0 {
			next := len(text)
			if i+1 < len(parts) {
				next = parts[i+1].from
			}
			from = max(offsetBeforeRunes(text, from, room/2), at)
			to = min(offsetAfterRunes(text, to, room-room/2), next)
		}
		if from > at {
			fmt.Fprintf(&w.out, "[%d bytes]…", from-at)
		}
		w.out.Write(bytes.TrimSuffix(text[from:to], []byte{'\n'}))
		if to < len(text) {
			w.out.WriteString("…")
		}
		at = to
	}
	switch rest := len(text) - at; {
	case more > 0:
		fmt.Fprintf(&w.out, "[%d bytes, %d more places]", rest, more)
	case rest > 0:
		fmt.Fprintf(&w.out, "[%d bytes]", rest)
	}
}

// shownPart is a range of a long line that must be shown, in bytes. The zero
// value means the line's beginning.
type shownPart struct {
	from, to    int
	withContext bool        // also show the text next to the range
	isContext   bool        // the line is unchanged
	separate    []shownPart // in a long line, several parts with much equal text between them
}

// differingParts returns the parts in which an old and a new line differ. If
// both are short enough to be shown completely, it returns zero values.
func (w *writer) differingParts(old []byte, newLine string) (in, out shownPart) {
	if w.options.MaxLineBytes == 0 || !w.hasRoom() || max(len(old), len(newLine)) <= w.options.MaxLineBytes {
		return shownPart{}, shownPart{}
	}
	head, tail, most := 0, 0, min(len(old), len(newLine))
	for head < most && old[head] == newLine[head] {
		head++
	}
	for head > 0 && (head < len(old) && !utf8.RuneStart(old[head]) || head < len(newLine) && !utf8.RuneStart(newLine[head])) {
		head--
	}
	for tail < most-head && old[len(old)-1-tail] == newLine[len(newLine)-1-tail] {
		tail++
	}
	for tail > 0 && !utf8.RuneStart(old[len(old)-tail]) {
		tail--
	}
	in = shownPart{from: head, to: len(old) - tail}
	out = shownPart{from: head, to: len(newLine) - tail, withContext: true}
	if len(newLine) <= w.options.MaxLineBytes || head+tail == 0 { // the new line is shown from its beginning, or shares nothing with the old one
		in.withContext = in.to > in.from
	}
	in.separate, out.separate = w.separateDifferences(old, newLine, in, out)
	in.separate = slices.DeleteFunc(in.separate, func(p shownPart) bool { return p.from == p.to }) // nothing was removed there
	return in, out
}

// writePart writes the part shown of a long line, with the numbers of omitted
// bytes.
func (w *writer) writePart(text []byte, shown shownPart) {
	if len(shown.separate) > 0 {
		w.writeParts(text, shown.separate)
		return
	}
	size := cmp.Or(w.options.WindowChars, w.options.MaxLineBytes)
	if shown.isContext { // it only shows the position of the change
		size /= 2
	}
	from, to := min(shown.from, len(text)), min(shown.to, len(text))
	if shown.to == 0 {
		to = len(text)
	}
	if cut := offsetAfterRunes(text, from, size); cut < to {
		to = cut
	}
	if room := size - utf8.RuneCount(text[from:to]); shown.withContext && room > 0 {
		start := offsetBeforeRunes(text, from, room/2)
		end := offsetAfterRunes(text, to, room-utf8.RuneCount(text[start:from]))
		from, to = offsetBeforeRunes(text, from, room-utf8.RuneCount(text[to:end])), end
	}
	if from > 0 {
		fmt.Fprintf(&w.out, "[%d bytes]…", from)
	}
	w.out.Write(text[from:to])
	if to < len(text) {
		if from == 0 || to > from {
			w.out.WriteString("…")
		}
		fmt.Fprintf(&w.out, "[%d bytes]", len(text)-to)
	}
}

// offsetAfterRunes returns the offset in text that is runes characters after at, or the
// end.
func offsetAfterRunes(text []byte, at, runes int) int {
	for ; runes > 0 && at < len(text); runes-- {
		_, size := utf8.DecodeRune(text[at:])
		at += size
	}
	return at
}

// offsetBeforeRunes returns the offset in text that is runes characters before at, or 0.
func offsetBeforeRunes(text []byte, at, runes int) int {
	for ; runes > 0 && at > 0; runes-- {
		_, size := utf8.DecodeLastRune(text[:at])
		at -= size
	}
	return at
}
