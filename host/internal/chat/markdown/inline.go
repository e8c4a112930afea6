package markdown

import (
	"strings"
	"unicode"

	"github.com/toolroom-mcp/toolroom/host/internal/chat/screen"
)

// An inline parses emphasis, code spans and links of a line and passes the styled
// characters to put. It holds back text that may begin one of them until that is known.
type inline struct {
	put   func(cell)
	plain bool // styles are not shown, so code keeps its marks
	style style
	depth int // number of the elements around this one

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

// beginLine begins a line with this style.
func (in *inline) beginLine(s style) {
	in.style, in.held, in.prev, in.find = s, in.held[:0], 0, search{}
}

// addRune adds a rune of the line.
func (in *inline) addRune(r rune) {
	in.held = append(in.held, r)
	in.writeKnown(false)
}

// endLine writes the rest of the line.
func (in *inline) endLine() { in.writeKnown(true) }

// writeKnown writes the held text that is known to be plain text or a complete element.
// whole means that no more text follows.
func (in *inline) writeKnown(whole bool) {
	for len(in.held) > 0 {
		used := in.writeElement(whole)
		if used == 0 && !whole && len(in.held) < maxHeldRunes {
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

// writeLiteral writes the first n held runes unchanged and returns n.
func (in *inline) writeLiteral(n int) int {
	for _, r := range in.held[:n] {
		in.put(cell{r, in.style})
	}
	return n
}

// runLength returns the number of equal runes in held from index i on.
func (in *inline) runLength(i int) int {
	n := 1
	for i+n < len(in.held) && in.held[i+n] == in.held[i] {
		n++
	}
	return n
}

// writeElement writes the element or character at the beginning of held, and returns
// the number of its runes; 0: more text is needed, or, with whole, no element begins
// here.
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

// writeCodeSpan writes the code span that begins with n held backticks. It returns the
// number of its runes, 0 if the held text does not close it. whole means that no more
// text follows.
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
// punctuation, or a wide character, as in scripts without spaces. 0 is the beginning or
// end of a line.
func isBoundary(r rune) bool {
	return r == 0 || unicode.IsSpace(r) || unicode.In(r, unicode.P, unicode.S) || screen.Width(r) == 2
}

// neighbours returns the runes before and after the n held runes at an index. before is
// the last written rune at the beginning of the held text; after is 0 at its end.
func (in *inline) neighbours(at, n int) (before, after rune) {
	if before = in.prev; at > 0 {
		before = in.held[at-1]
	}
	if at+n < len(in.held) {
		after = in.held[at+n]
	}
	return before, after
}

// canOpen reports whether the run of n marks at an index can begin emphasis. A single
// mark, and any underscore, cannot within a word.
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

// canClose reports whether the run of n marks at an index can end emphasis.
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

// writeEmphasis writes the emphasis that begins with n held marks. It returns the
// number of its runes, 0 if the held text does not close it. whole means that no more
// text follows.
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

// emphasisStyle returns the style that n marks, 1 to 3, of the first held character
// give.
func (in *inline) emphasisStyle(n int) style {
	if in.held[0] == '~' {
		return struck
	}
	return []style{italic, bold, bold | italic}[n-1]
}

// writeNested writes the content of an element, in which other elements can be, with
// the style s added.
func (in *inline) writeNested(text []rune, s style) {
	sub := inline{put: in.put, plain: in.plain, style: in.style | s, depth: in.depth + 1, held: append([]rune(nil), text...)}
	if sub.depth > maxNest {
		sub.writeLiteral(len(text))
		return
	}
	sub.writeKnown(true)
}

// writeLink writes the link or image whose bracket is at held[from]: its text, and its
// address if that differs. It returns the number of its runes, 0 if more text is
// needed.
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

// writeLinkParts writes a link or, with from above 0, an image: the label, which begins
// after from, and the address between target and end, if it differs from the label.
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

// writeText writes s in the current style with more added.
func (in *inline) writeText(s string, more style) {
	for _, r := range s {
		in.put(cell{r, in.style | more})
	}
}

// writeAutolink writes an address in angle brackets, or the bracket if it is none. It
// returns the number of runes, 0 if more text is needed.
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
