package proc

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// DefaultCharacters is the default and largest length of an excerpt, in
// characters.
const DefaultCharacters = 30_000

// Excerpt is the shown part of an output: all of it, or its beginning and its
// end. Both are valid UTF-8.
type Excerpt struct {
	Head, Tail string // Tail is empty when nothing was omitted
	// OmittedBytes and OmittedLines count the output between Head and Tail. A
	// line that is cut counts as omitted only if no part of it is shown.
	OmittedBytes, OmittedLines int64
	// Binary describes output that is not text; then Head and Tail are empty.
	// "" means text.
	Binary string
	// Replaced counts the bytes that were not UTF-8 and are shown as U+FFFD.
	Replaced int
}

// Text returns the excerpt as one text, with a line that states how much was
// omitted. For binary output it returns the description.
func (e Excerpt) Text() string {
	if e.Binary != "" {
		return e.Binary
	}
	if e.OmittedBytes == 0 {
		return e.Head + e.Tail
	}
	head := e.Head
	if head != "" && !strings.HasSuffix(head, "\n") {
		head += "\n"
	}
	return fmt.Sprintf("%s[… %d lines, %d bytes omitted …]\n%s", head, e.OmittedLines, e.OmittedBytes, e.Tail)
}

// Excerpt returns at most maxChars characters: 30 % from the beginning and 70 %
// from the end. Each part is cut at a line break in its outer half, or between
// characters if that half has none. maxChars <= 0 means DefaultCharacters,
// which is also the largest value.
func (o *Output) Excerpt(maxChars int) Excerpt {
	if maxChars <= 0 || maxChars > DefaultCharacters {
		maxChars = DefaultCharacters
	}
	o.mu.Lock()
	head := o.head[:len(o.head):len(o.head)] // its bytes never change
	tail := bytes.Clone(o.lastBytes())
	total, lines := o.total, o.lineCount()
	o.mu.Unlock()

	if kind := binaryKind(head, tail); kind != "" {
		return Excerpt{Binary: fmt.Sprintf("[%s, %d bytes, not shown]", kind, total)}
	}
	if total == int64(len(head)+len(tail)) {
		all := append(head, tail...)
		if utf8.RuneCount(all) <= maxChars {
			text, replaced := validText(all)
			return Excerpt{Head: text, Replaced: replaced}
		}
		head, tail = all, all
	}
	// The output is longer than both parts in memory, so the two excerpts
	// never overlap.
	first := cutHead(head, maxChars*3/10)
	second := cutTail(tail, maxChars-maxChars*3/10)
	e := Excerpt{OmittedBytes: total - int64(len(first)) - int64(len(second))}
	shown := countLines(first) + countLines(second)
	e.OmittedLines = lines - shown
	if e.OmittedLines < 0 { // both ends of one line are shown
		e.OmittedLines = 0
	}
	var a, b int
	e.Head, a = validText(first)
	e.Tail, b = validText(second)
	e.Replaced = a + b
	return e
}

// countLines returns the number of lines in p, including a last line without a
// line end.
func countLines(p []byte) int64 {
	n := int64(bytes.Count(p, []byte{'\n'}))
	if len(p) > 0 && p[len(p)-1] != '\n' {
		n++
	}
	return n
}

// cutHead returns up to n characters from the beginning of p, cut after a line
// end if there is one in the second half.
func cutHead(p []byte, n int) []byte {
	end := 0
	for range n {
		if end >= len(p) {
			return p
		}
		_, size := utf8.DecodeRune(p[end:])
		end += size
	}
	if at := bytes.LastIndexByte(p[:end], '\n') + 1; at > end/2 {
		end = at
	}
	return p[:end]
}

// cutTail returns up to n characters from the end of p, cut after a line end if
// there is one in the first half. p may begin in the middle of a character.
func cutTail(p []byte, n int) []byte {
	start := len(p)
	for range n {
		if start == 0 {
			break
		}
		_, size := utf8.DecodeLastRune(p[:start])
		start -= size
	}
	for skipped := 0; start == 0 && skipped < 3 && len(p) > 0 && !utf8.RuneStart(p[0]); skipped++ {
		p = p[1:]
	}
	if start > 0 && p[start-1] == '\n' {
		return p[start:]
	}
	if at := bytes.IndexByte(p[start:], '\n') + 1; at > 0 && at < (len(p)-start)/2 {
		start += at
	}
	return p[start:]
}

// validText converts p to valid text: each run of bytes that are not UTF-8
// becomes one U+FFFD, each NUL becomes \x00. replaced counts the invalid
// bytes.
func validText(p []byte) (text string, replaced int) {
	for rest := p; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		if r == utf8.RuneError && size == 1 {
			replaced++
		}
		rest = rest[size:]
	}
	text = string(p)
	if replaced > 0 {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	return strings.ReplaceAll(text, "\x00", `\x00`), replaced
}
