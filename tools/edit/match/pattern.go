package match

import (
	"bytes"
	"hash/maphash"
	"strings"

	"github.com/toolroom-mcp/toolroom/tools/edit/cancelcheck"
)

// pattern is an old_string prepared for the search by a step, with its
// new_string. Both are lines without endings.
type pattern struct {
	old, new []string // The first and the last line may match a part of a line of the file.
	// atLineStart requires the first line to begin a line of the file,
	// after indentation, since it had a line number.
	atLineStart bool

	step          Step
	middleHashes  []uint64 // hashes of the lines between the first and the last, which must match whole lines
	middleFailure []int32  // failure function of Knuth, Morris and Pratt for middleHashes
	first         patternLine
	last          patternLine
	seed          maphash.Seed
	requiredText  []byte // occurs unchanged in every text that matches
}

// patternLine is a first or last line of a pattern, prepared for its step.
type patternLine struct {
	folded     []byte // with plain punctuation, if the step ignores punctuation
	trimmed    []byte // folded without trailing blanks, if the step ignores them
	onlyBlanks bool   // the line has blanks and nothing else
	indented   bool   // the line begins with blanks and has other text
	core       []byte // trimmed, without indentation
}

// newPattern prepares the lines of an old and a new text for a step. Steps
// before Endings need no pattern.
func newPattern(old, newLines []string, step Step) *pattern {
	p := &pattern{old: old, new: newLines, step: step, seed: maphash.MakeSeed()}
	p.first, p.last = p.newPatternLine(old[0]), p.newPatternLine(old[len(old)-1])
	for i := 1; i < len(old)-1; i++ {
		w := p.newPatternLine(old[i])
		p.middleHashes = append(p.middleHashes, maphash.Bytes(p.seed, p.comparedPart(w.folded)))
	}
	p.requiredText = p.longestRequired()
	p.middleFailure = make([]int32, len(p.middleHashes)+1)
	p.middleFailure[0] = -1
	for i, k := 0, int32(-1); i < len(p.middleHashes); i++ {
		for k >= 0 && p.middleHashes[i] != p.middleHashes[k] {
			k = p.middleFailure[k]
		}
		k++
		p.middleFailure[i+1] = k
	}
	return p
}

// longestRequired returns the longest part of the old text, up to maxPrefix
// bytes, that the step matches only unchanged.
func (p *pattern) longestRequired() []byte {
	var best []byte
	for _, line := range p.old {
		text := []byte(line)
		pieces := [][]byte{bytes.TrimSpace(text)}
		if p.step >= Punctuation {
			text, _ = foldPunctuation(text, nil)
			pieces = bytes.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t'\"-.", r) })
		}
		for _, piece := range pieces {
			if piece = bytes.TrimSpace(piece); len(piece) > len(best) {
				best = piece
			}
		}
	}
	return best[:min(len(best), maxPrefix)]
}

// newPatternLine prepares a line for the pattern's step.
func (p *pattern) newPatternLine(line string) patternLine {
	text := []byte(line)
	if p.step >= Punctuation {
		text, _ = foldPunctuation(text, nil)
	}
	w := patternLine{folded: text, trimmed: text}
	if p.step >= Trailing {
		w.trimmed = trimTrailingBlanks(text)
	}
	w.onlyBlanks = len(text) > 0 && len(trimTrailingBlanks(text)) == 0
	w.core = w.trimmed[indentSize(w.trimmed):]
	w.indented = len(w.core) < len(w.trimmed)
	return w
}

// comparedPart returns the part of a whole line, with plain punctuation, that
// the step compares.
func (p *pattern) comparedPart(line []byte) []byte {
	if p.step >= Trailing {
		line = trimTrailingBlanks(line)
	}
	if p.step >= Indentation {
		line = line[indentSize(line):]
	}
	return line
}

// firstLineStart returns the offset in a line of the file at which the
// pattern's first line begins, or -1 if the line does not end with the
// pattern's first line. plain is the line with plain punctuation if the step
// ignores punctuation, otherwise the line itself.
func (p *pattern) firstLineStart(line, plain []byte) int {
	w := p.first
	body := plain
	if p.step >= Trailing {
		body = trimTrailingBlanks(plain)
	}
	switch {
	case w.onlyBlanks && p.step >= Trailing:
		if len(body) == 0 {
			return 0
		}
		return -1
	case p.step >= Indentation && len(w.core) > 0:
		indent := indentSize(body)
		if !bytes.Equal(body[indent:], w.core) {
			return -1
		}
		if w.indented {
			return 0
		}
		return p.unfoldedOffset(line, indent)
	}
	if !bytes.HasSuffix(body, w.trimmed) {
		return -1
	}
	return p.unfoldedOffset(line, len(body)-len(w.trimmed))
}

// lastLineEnd returns the offset in a line of the file at which the pattern's
// last line ends, or -1 if the line does not begin with the pattern's last line.
// plain is as for firstLineStart.
func (p *pattern) lastLineEnd(line, plain []byte) int {
	w := p.last
	if p.step >= Indentation && len(w.core) > 0 {
		indent := indentSize(plain)
		switch {
		case len(w.trimmed) < len(w.folded) && bytes.Equal(trimTrailingBlanks(plain[indent:]), w.core):
			return len(line)
		case len(w.trimmed) == len(w.folded) && bytes.HasPrefix(plain[indent:], w.core):
			return p.unfoldedOffset(line, indent+len(w.core))
		}
		return -1
	}
	if bytes.HasPrefix(plain, w.folded) {
		return p.unfoldedOffset(line, len(w.folded))
	}
	if p.step >= Trailing && len(w.trimmed) < len(w.folded) && bytes.Equal(trimTrailingBlanks(plain), w.trimmed) {
		return len(line)
	}
	return -1
}

// findWithinLine yields the places of a single-line pattern in a line of the
// file, as offsets in the line, until yield returns false. Places do not
// overlap, except that with overlapSecond the second may overlap the first.
// plain is as for firstLineStart.
func (p *pattern) findWithinLine(line, plain []byte, overlapSecond bool, checker *cancelcheck.Checker, yield func(start, end int) bool) {
	w := p.first
	if p.step >= Indentation {
		indent := indentSize(plain)
		if !w.indented || len(w.core) == 0 || !bytes.HasPrefix(plain[indent:], w.core) {
			return
		}
		end := indent + len(w.core)
		if len(w.trimmed) == len(w.folded) {
			if at := p.unfoldedOffset(line, end); at >= 0 {
				yield(0, at)
			}
		} else if len(trimTrailingBlanks(plain)) == end {
			yield(0, len(line))
		}
		return
	}
	if p.step >= Punctuation && len(w.folded) > 0 {
		n := needle{pattern: w.folded, checker: checker}
		starts, ends := unfolder{text: line, checker: checker}, unfolder{text: line, checker: checker}
		for at := n.indexFrom(plain, 0); at >= 0; at = n.indexFrom(plain, at) {
			start, ok1 := starts.originalOffset(at)
			end, ok2 := ends.originalOffset(at + len(w.folded))
			if ok1 && ok2 && !yield(start, end) {
				return
			}
			if overlapSecond {
				at++
			} else {
				at += len(w.folded)
			}
			overlapSecond = false
		}
	}
	if body := trimTrailingBlanks(plain); p.step >= Trailing && !w.onlyBlanks && len(w.trimmed) < len(w.folded) &&
		bytes.HasSuffix(body, w.trimmed) && !bytes.HasSuffix(plain, w.folded) {
		if start := p.unfoldedOffset(line, len(body)-len(w.trimmed)); start >= 0 {
			yield(start, len(line))
		}
	}
}

// unfoldedOffset converts an offset in the line with plain punctuation to an
// offset in the line. It returns -1 inside the replacement of a character.
func (p *pattern) unfoldedOffset(line []byte, at int) int {
	if p.step < Punctuation {
		return at
	}
	u := unfolder{text: line}
	if found, ok := u.originalOffset(at); ok {
		return found
	}
	return -1
}

// splitLines splits the text of a model into lines without endings. Carriage
// returns alone end lines if they do so in the file (eol is '\r').
func splitLines(text string, eol byte) []string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if eol == '\r' {
		text = strings.ReplaceAll(text, "\r", "\n")
	}
	return strings.Split(text, "\n")
}
