package match

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/internal/textdiff"
)

// writeChangedWords is writeChangedLine by words and signs, for files whose
// punctuation differs from the old line's. It writes nothing and returns false
// if a word of the old line cannot be located in the file.
func (b *changeBuilder) writeChangedWords(from, to int, was, line string) bool {
	a, c := splitWords(was), splitWords(line)
	starts := make([]int, len(a)+1) // of each old word, in the file
	u := unfolder{text: b.file.Text[from:to]}
	plain := 0
	for i, word := range a {
		at, ok := u.originalOffset(plain)
		if !ok {
			return false
		}
		starts[i] = from + at
		short, _ := foldPunctuation([]byte(word), nil)
		plain += len(short)
	}
	at, ok := u.originalOffset(plain)
	if !ok || from+at != to {
		return false
	}
	starts[len(a)] = to
	j := 0
	for _, run := range append(textdiff.Align(a, c, b.stop), textdiff.Run{A: len(a), B: len(c)}) {
		b.insertText(strings.Join(c[j:run.B], ""))
		if run.N > 0 {
			b.keepFileText(starts[run.A], starts[run.A+run.N])
		}
		j = run.B + run.N
	}
	return true
}

// splitWords splits a line into words, runs of blanks, runs of dots, and other
// characters one by one.
func splitWords(line string) []string {
	kind := func(r rune) int {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_':
			return 1
		case r == ' ' || r == '\t':
			return 2
		case r == '.':
			return 3
		}
		return 0
	}
	var all []string
	for len(line) > 0 {
		r, n := utf8.DecodeRuneInString(line)
		for k := kind(r); k > 0 && n < len(line); {
			next, size := utf8.DecodeRuneInString(line[n:])
			if kind(next) != k {
				break
			}
			n += size
		}
		all = append(all, line[:n])
		line = line[n:]
	}
	return all
}

// commonEnds returns the lengths of the common prefix and suffix of two lines,
// in bytes. They do not overlap and do not split characters.
func commonEnds(a, b string) (head, tail int) {
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	for head > 0 && (head < len(a) && !utf8.RuneStart(a[head]) || head < len(b) && !utf8.RuneStart(b[head])) {
		head--
	}
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	for tail > 0 && !utf8.RuneStart(a[len(a)-tail]) {
		tail--
	}
	return head, tail
}
