package markdown

import (
	"strings"
	"unicode"

	"github.com/toolroom-mcp/toolroom/host/internal/chat/screen"
)

// inline parses emphasis, code spans and links of a line. It holds back text that may
// begin one of them until that is known.
type inline struct {
	put   func(cell)
	plain bool // styles are not shown, so code keeps its marks
	style style
	depth int

	held []rune
	prev rune // rune before held; 0: beginning of the line
	find search
}

// A search is the search for the end of an element at the beginning of held. It
// continues when more text arrives.
type search struct {
	at     int // index in held
	inner  int // marks of nested emphasis
	ticks  int // marks of the code span around at
	depth  int // nesting of brackets
	target int // index of the address of a link; 0: not reached
}

// beginLine begins a line.
func (in *inline) beginLine(s style) {
	in.style, in.held, in.prev, in.find = s, in.held[:0], 0, search{}
}

// addRune adds a rune of the line.
func (in *inline) addRune(r rune) {
	in.held = append(in.held, r)
	in.writeKnown(false)
}

// endLine ends the line.
func (in *inline) endLine() { in.writeKnown(true) }

// writeKnown writes the text that is known to be text or a complete element. whole means that
// no more text follows.
func (in *inline) writeKnown(whole bool) {
	for len(in.held) > 0 {
		used := in.writeElement(whole)
		if used == 0 && !whole && len(in.held) < maxHeld {
			return
		}
		if used == 0 { // no element begins here
			used = in.writeLiteral(in.runLength(0))
		}
		in.prev = in.held[used-1]
		in.held = in.held[used:]
		in.find = search{}
	}
	in.held = nil
}

// writeLiteral writes the first n runes unchanged.
func (in *inline) writeLiteral(n int) int {
	for _, r := range in.held[:n] {
		in.put(cell{r, in.style})
	}
	return n
}

// runLength returns the length of the run of equal runes at i.
func (in *inline) runLength(i int) int {
	n := 1
	for i+n < len(in.held) && in.held[i+n] == in.held[i] {
		n++
	}
	return n
}

// writeElement writes the element at the beginning of held, and returns its length; 0: more
// writeText is needed, or, with whole, there is no element.
func (in *inline) writeElement(whole bool) int {
	r := in.held[0]
	switch r {
	case '`', '*', '_', '~':
	case '\\':
		switch {
		case len(in.held) == 1:
			return 0
		case in.held[1] < 0x80 && unicode.In(in.held[1], unicode.P, unicode.S):
			in.put(cell{in.held[1], in.style})
			return 2
		}
		return in.writeLiteral(1)
	case '!':
		if len(in.held) == 1 {
			return 0
		}
		if in.held[1] == '[' {
			return in.writeLink(1)
		}
		return in.writeLiteral(1)
	case '[':
		return in.writeLink(0)
	case '<':
		return in.writeAutolink()
	default:
		return in.writeLiteral(1)
	}
	n := in.runLength(0)
	if n == len(in.held) {
		return 0 // the run may continue
	}
	switch {
	case r == '`':
		return in.writeCodeSpan(n, whole)
	case n > 3, r == '~' && n != 2, !in.canOpen(0, n):
		return in.writeLiteral(n)
	}
	return in.writeEmphasis(n, whole)
}

// writeCodeSpan shows the code span that begins with n held backticks. It returns the number
// of characters that it covers, 0 if the held text does not close it. whole means that
// no more text follows.
func (in *inline) writeCodeSpan(n int, whole bool) int {
	at := max(in.find.at, n)
	for at < len(in.held) {
		if in.held[at] != '`' {
			at++
			continue
		}
		run := in.runLength(at)
		if at+run == len(in.held) && !whole {
			break
		}
		if run != n {
			at += run
			continue
		}
		within := in.held[n:at]
		if in.plain {
			within = in.held[:at+n]
		} else if len(within) > 2 && within[0] == ' ' && within[len(within)-1] == ' ' {
			within = within[1 : len(within)-1]
		}
		for _, r := range within {
			in.put(cell{r, in.style | code})
		}
		return at + n
	}
	in.find.at = at
	return 0
}

// isBoundary reports whether emphasis may begin or end next to a rune: white space,
// punctuation, or a wide character, as in scripts without spaces.
func isBoundary(r rune) bool {
	return r == 0 || unicode.IsSpace(r) || unicode.In(r, unicode.P, unicode.S) || screen.Width(r) == 2
}

// neighbours returns the characters before and after the n held characters at a position.
// At the beginning of the held text, before is the last character shown before it.
// after is 0 at its end.
func (in *inline) neighbours(at, n int) (before, after rune) {
	if before = in.prev; at > 0 {
		before = in.held[at-1]
	}
	if at+n < len(in.held) {
		after = in.held[at+n]
	}
	return before, after
}

// canOpen reports whether a run of marks can begin emphasis. A single mark, and
// any underscore, does not within a word.
func (in *inline) canOpen(at, n int) bool {
	before, after := in.neighbours(at, n)
	if after == 0 || unicode.IsSpace(after) {
		return false
	}
	if n == 1 || in.held[at] == '_' {
		return isBoundary(before)
	}
	return !unicode.In(after, unicode.P) || isBoundary(before)
}

// canClose reports whether a run of marks can end emphasis.
func (in *inline) canClose(at, n int) bool {
	before, after := in.neighbours(at, n)
	if before == 0 || unicode.IsSpace(before) {
		return false
	}
	if n == 1 || in.held[at] == '_' {
		return isBoundary(after)
	}
	return !unicode.In(before, unicode.P) || isBoundary(after)
}

// writeEmphasis writes the text between n marks and the marks that end it.
func (in *inline) writeEmphasis(n int, whole bool) int {
	f := &in.find
	for f.at = max(f.at, n); f.at < len(in.held); {
		r := in.held[f.at]
		run := in.runLength(f.at)
		switch {
		case r == '\\' && f.ticks == 0:
			if f.at+1 == len(in.held) {
				return 0
			}
			f.at += 2
			continue
		case r != '`' && r != in.held[0] || r != '`' && f.ticks > 0:
			f.at++
			continue
		case f.at+run == len(in.held) && !whole:
			return 0
		case r == '`':
			switch f.ticks {
			case 0:
				f.ticks = run
			case run:
				f.ticks = 0
			}
			f.at += run
			continue
		}
		within := f.at
		switch ends := in.canClose(f.at, run); {
		case ends && run == n && f.inner == 0:
		case ends && f.inner > 0 && run == n+f.inner:
			within += f.inner
		case ends && run == f.inner:
			f.inner, f.at = 0, f.at+run
			continue
		case ends && run == n:
		default:
			if run != n && run <= 3 && in.canOpen(f.at, run) {
				f.inner = run
			}
			f.at += run
			continue
		}
		in.writeNested(in.held[n:within], in.emphasisStyle(n))
		return f.at + run
	}
	return 0
}

// emphasisStyle returns the style that n marks, 1 to 3, like the first held character
// give.
func (in *inline) emphasisStyle(n int) style {
	if in.held[0] == '~' {
		return struck
	}
	return []style{italic, bold, bold | italic}[n-1]
}

// writeNested writes the content of an element.
func (in *inline) writeNested(text []rune, s style) {
	sub := inline{put: in.put, plain: in.plain, style: in.style | s, depth: in.depth + 1, held: append([]rune(nil), text...)}
	if sub.depth > maxNest {
		sub.writeLiteral(len(text))
		return
	}
	sub.writeKnown(true)
}

// writeLink writes a link or an image whose bracket is at held[from]: its text, and its
// address if that differs.
func (in *inline) writeLink(from int) int {
	f := &in.find
	for f.at = max(f.at, from); f.target == 0; f.at++ {
		if f.at == len(in.held) {
			return 0
		}
		switch in.held[f.at] {
		case '\\':
			if f.at+1 == len(in.held) {
				return 0
			}
			f.at++
		case '[':
			f.depth++
		case ']':
			if f.at+1 == len(in.held) {
				return 0
			}
			if f.depth--; f.depth > 0 {
				continue
			}
			if in.held[f.at+1] != '(' {
				return in.writeLiteral(from + 1)
			}
			f.at++
			f.target = f.at + 1
		}
	}
	for ; f.at < len(in.held); f.at++ {
		switch in.held[f.at] {
		case '(':
			f.depth++
		case ')':
			if f.depth--; f.depth < 0 {
				in.writeLinkParts(from, f.target, f.at)
				return f.at + 1
			}
		}
	}
	return 0
}

// writeLinkParts shows a link or, with from above 0, an image: the label, which begins after
// from, and the address between target and end, if it differs from the label.
func (in *inline) writeLinkParts(from, target, end int) {
	label, address := in.held[from+1:target-2], strings.TrimSpace(string(in.held[target:end]))
	if i := strings.IndexAny(address, " \t"); i >= 0 { // a title
		address = address[:i]
	}
	address = strings.Trim(address, "<>")
	if from > 0 {
		for _, r := range "image: " {
			in.put(cell{r, in.style | dim})
		}
	}
	if string(label) == address || len(label) == 0 {
		in.writeText(address, underlined)
		return
	}
	in.writeNested(label, underlined)
	if address != "" {
		in.writeText(" ("+address+")", dim)
	}
}

// writeText shows s in the current style, combined with more.
func (in *inline) writeText(s string, more style) {
	for _, r := range s {
		in.put(cell{r, in.style | more})
	}
}

// writeAutolink writes an address in angle brackets.
func (in *inline) writeAutolink() int {
	for i, r := range in.held {
		if i == 0 {
			continue
		}
		if r == '>' {
			address := string(in.held[1:i])
			if !strings.Contains(address, ":") && !strings.Contains(address, "@") {
				break
			}
			in.writeText(address, underlined)
			return i + 1
		}
		if unicode.IsSpace(r) || r == '<' || i == 1 && !unicode.IsLetter(r) {
			break
		}
		if i == len(in.held)-1 {
			return 0
		}
	}
	if len(in.held) == 1 {
		return 0
	}
	return in.writeLiteral(1)
}
