package match

import (
	"bytes"
	"hash/maphash"
	"strings"

	"github.com/toolroom-mcp/toolroom/tools/edit/cancelcheck"
)

// pattern is an old_string prepared for a step, with its new_string.
type pattern struct {
	old, new []string // lines without endings; the last may be partial
	// heads means that the first line must begin a line of the file, after
	// indentation, since it had a line number.
	atLineStart bool

	step          Step
	middleHashes  []uint64 // hashes of the complete lines between the first and the last
	middleFailure []int32  // failure function of Knuth, Morris and Pratt for middle
	first         patternLine
	last          patternLine
	seed          maphash.Seed
	requiredText  []byte // occurs in every text that matches
}

// wanted is a line of a pattern that may be partial.
type patternLine struct {
	folded     []byte // folded
	trimmed    []byte // without trailing blanks
	onlyBlanks bool   // only blanks, at least one
	indented   bool   // begins with blanks
	core       []byte // trimmed, without indentation
}

// newPattern prepares lines for a step from Endings on.
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

// longest returns the longest piece of the pattern that every step matches
// exactly.
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

// whole returns the part of a folded, complete line that is compared.
func (p *pattern) comparedPart(line []byte) []byte {
	if p.step >= Trailing {
		line = trimTrailingBlanks(line)
	}
	if p.step >= Indentation {
		line = line[indentSize(line):]
	}
	return line
}

// starts returns the position in a line of the file at which the pattern's
// first line begins, which must extend to the line's end; -1 if it does not.
func (p *pattern) startOffset(line, plain []byte) int {
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

// ends returns the position in a line of the file at which the pattern's last
// line ends, which must begin at the line's start; -1 if it does not.
func (p *pattern) endOffset(line, plain []byte) int {
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

// inside yields the places of a single-line pattern in a line of the file.
// Places do not overlap, except that with overlap the second may overlap the
// first.
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

// place converts a position of the folded line to one of the line, or -1.
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

// lines splits a model's text into lines. If lone carriage returns end the
// file's lines, they do so here, too.
func splitLines(text string, eol byte) []string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if eol == '\r' {
		text = strings.ReplaceAll(text, "\r", "\n")
	}
	return strings.Split(text, "\n")
}
