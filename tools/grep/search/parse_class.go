package search

import (
	"strings"
	"unicode"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// negated returns the complement of set under the current flags; never nil.
func (p *parser) negated(set charset) charset {
	if p.flags.unicode {
		set = anyRune().minus(set)
	} else {
		set = anyByte().minus(set)
	}
	if set == nil {
		set = charset{} // nil would mean that there is no set
	}
	return set
}

// class parses a set in brackets. Within it, && (intersection), -- (difference)
// and ~~ (symmetric difference) bind less tightly than juxtaposition, and each
// applies to everything on its left.
func (p *parser) class() (charset, error) {
	if p.depth++; p.depth > maxNesting {
		return nil, syntaxError(p.pos, "brackets nested more than %d deep", maxNesting)
	}
	defer func() { p.depth-- }()
	open := p.pos
	p.next()
	p.skipSpace()
	negated := p.accept("^")
	total, items := charset{}, charset{}
	for p.skipSpace(); p.accept("-"); p.skipSpace() {
		items = append(items, runeRange{'-', '-'})
	}
	if len(items) == 0 && p.accept("]") {
		items = append(items, runeRange{']', ']'})
	}
	operator, crowded := "", maxUnsorted
	fold := func() {
		total = p.applySetOperator(total, operator, items.normalize())
		items, crowded = charset{}, maxUnsorted
	}
	for {
		if err := p.checkContext(); err != nil {
			return nil, err
		}
		p.skipSpace()
		switch {
		case p.peek() == eof:
			return nil, syntaxError(open, "unclosed bracket [")
		case p.accept("]"):
			fold()
			if total = p.applyCase(total); negated {
				total = p.negated(total)
			}
			return total, p.countClassRanges(total)
		case p.accept("&&"):
			fold()
			operator = "&&"
		case p.accept("--"):
			fold()
			operator = "--"
		case p.accept("~~"):
			fold()
			operator = "~~"
		default:
			set, err := p.classItem(open)
			if err != nil {
				return nil, err
			}
			if items = append(items, set...); len(items) > crowded {
				items = items.normalize()
				crowded = 2*len(items) + maxUnsorted
			}
		}
	}
}

// maxUnsorted is the number of ranges of a class that are collected before they
// are merged.
const maxUnsorted = 1 << 12

// countClassRanges adds the ranges of a class to those of all classes. It returns
// BAD_PATTERN if there are too many.
func (p *parser) countClassRanges(set charset) error {
	if p.classRanges += len(set); p.classRanges > maxClassRanges {
		return toolerr.New(toolerr.BadPattern, "the pattern is too large: its classes have more than %d ranges of characters", maxClassRanges)
	}
	return nil
}

// applySetOperator returns left combined with right: their union if operator is
// "".
func (p *parser) applySetOperator(left charset, operator string, right charset) charset {
	if operator == "" {
		return left.union(right)
	}
	left, right = p.applyCase(left), p.applyCase(right)
	switch operator {
	case "&&":
		return append(charset{}, left.intersect(right)...)
	case "--":
		return append(charset{}, left.minus(right)...)
	}
	return left.union(right).minus(left.intersect(right))
}

// classItem parses one item in brackets: a set, a character, or a range. open
// is the offset of the bracket.
func (p *parser) classItem(open int) (charset, error) {
	if p.peek() == '[' {
		if set, ok := p.posixClass(); ok {
			return set, nil
		}
		return p.class()
	}
	at := p.pos
	set, lo, err := p.classAtom()
	if err != nil || set != nil {
		if err == nil && p.rangeFollows() {
			err = syntaxError(at, "a range needs single characters on both sides")
		}
		return set, err
	}
	if !p.rangeFollows() {
		return singleRune(lo), nil
	}
	p.skipSpace()
	p.next()
	p.skipSpace()
	if p.peek() == eof {
		return nil, syntaxError(open, "unclosed bracket [")
	}
	set, hi, err := p.classAtom()
	switch {
	case err != nil:
		return nil, err
	case set != nil:
		return nil, syntaxError(at, "a range needs single characters on both sides")
	case lo > hi:
		return nil, syntaxError(at, "range %s ends before it begins", p.text[at:p.pos])
	}
	return charset{{lo, hi}}.minus(charset{{0xD800, 0xDFFF}}), nil
}

// rangeFollows reports whether the next character is a - that makes a range: it
// is not before the closing bracket, and not the first of two. It consumes
// nothing.
func (p *parser) rangeFollows() bool {
	save := p.pos
	defer func() { p.pos = save }()
	p.skipSpace()
	if !p.accept("-") {
		return false
	}
	p.skipSpace()
	return p.peek() != ']' && p.peek() != '-'
}

// classAtom parses a character or an escape in brackets. set is nil if it means
// a single character r.
func (p *parser) classAtom() (set charset, r rune, err error) {
	at := p.pos
	if p.peek() != '\\' {
		r = p.next()
	} else if _, ok := p.lookEscape(); ok {
		return nil, 0, syntaxError(at, "%s within brackets", p.text[at:p.pos])
	} else if set, r, err = p.setOrCharEscape(); err != nil || set != nil {
		return set, 0, err
	}
	if !p.flags.unicode && r > unicode.MaxASCII && r < rawBase {
		return nil, 0, syntaxError(at, "%q within brackets with the flag -u", r)
	}
	return nil, r, nil
}

// posixClass parses [:name:]. ok is false, and nothing is consumed, if
// something else follows.
func (p *parser) posixClass() (set charset, ok bool) {
	rest, found := strings.CutPrefix(p.text[p.pos:], "[:")
	if !found {
		return nil, false
	}
	const longest = len("^xdigit:]")
	end := strings.Index(rest[:min(len(rest), longest)], ":]")
	if end < 0 {
		return nil, false
	}
	name, negated := strings.CutPrefix(rest[:end], "^")
	if set, ok = posixSet(name); !ok {
		return nil, false
	}
	p.pos += 2 + end + 2
	if set = p.applyCase(set); negated { // characters that are letters in neither case
		set = p.negated(set)
	}
	return set, true
}
