package search

import (
	"strings"
	"unicode"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

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
		return nil, syntaxError(p.at, "brackets nested more than %d deep", maxNesting)
	}
	defer func() { p.depth-- }()
	open := p.at
	p.next()
	p.space()
	negated := p.accept("^")
	total, items := charset{}, charset{}
	for p.space(); p.accept("-"); p.space() {
		items = append(items, span{'-', '-'})
	}
	if len(items) == 0 && p.accept("]") {
		items = append(items, span{']', ']'})
	}
	operator, crowded := "", maxUnsorted
	fold := func() {
		total = p.combine(total, operator, items.normal())
		items, crowded = charset{}, maxUnsorted
	}
	for {
		if err := p.pause(); err != nil {
			return nil, err
		}
		p.space()
		switch {
		case p.peek() == eof:
			return nil, syntaxError(open, "unclosed bracket [")
		case p.accept("]"):
			fold()
			if total = p.folded(total); negated {
				total = p.negated(total)
			}
			return total, p.measure(total)
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
				items = items.normal()
				crowded = 2*len(items) + maxUnsorted
			}
		}
	}
}

// maxUnsorted is the number of ranges of a class that are collected before they
// are merged.
const maxUnsorted = 1 << 12

// measure adds a class to the total size of all classes, which is limited.
func (p *parser) measure(set charset) error {
	if p.spans += len(set); p.spans > maxSpans {
		return toolerr.New(toolerr.BadPattern, "the pattern is too large: its classes have more than %d ranges of characters", maxSpans)
	}
	return nil
}

func (p *parser) combine(left charset, operator string, right charset) charset {
	if operator == "" {
		return left.union(right)
	}
	left, right = p.folded(left), p.folded(right)
	switch operator {
	case "&&":
		return append(charset{}, left.intersect(right)...)
	case "--":
		return append(charset{}, left.minus(right)...)
	}
	return left.union(right).minus(left.intersect(right))
}

// classItem parses one item in brackets: a set, a character, or a range.
func (p *parser) classItem(open int) (charset, error) {
	if p.peek() == '[' {
		if set, ok := p.posix(); ok {
			return set, nil
		}
		return p.class()
	}
	at := p.at
	set, lo, err := p.classAtom()
	if err != nil || set != nil {
		if err == nil && p.rangeFollows() {
			err = syntaxError(at, "a range needs single characters on both sides")
		}
		return set, err
	}
	if !p.rangeFollows() {
		return single(lo), nil
	}
	p.space()
	p.next()
	p.space()
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
		return nil, syntaxError(at, "range %s ends before it begins", p.text[at:p.at])
	}
	return charset{{lo, hi}}.minus(charset{{0xD800, 0xDFFF}}), nil
}

// rangeFollows reports whether the next character is a - that makes a range:
// not before the closing bracket, and not the first of two.
func (p *parser) rangeFollows() bool {
	save := p.at
	defer func() { p.at = save }()
	p.space()
	if !p.accept("-") {
		return false
	}
	p.space()
	return p.peek() != ']' && p.peek() != '-'
}

func (p *parser) classAtom() (set charset, r rune, err error) {
	at := p.at
	if p.peek() != '\\' {
		r = p.next()
	} else if _, ok := p.lookEscape(); ok {
		return nil, 0, syntaxError(at, "%s within brackets", p.text[at:p.at])
	} else if set, r, err = p.setEscape(); err != nil || set != nil {
		return set, 0, err
	}
	if !p.flags.unicode && r > unicode.MaxASCII && r < rawBase {
		return nil, 0, syntaxError(at, "%q within brackets with the flag -u", r)
	}
	return nil, r, nil
}

// posix parses [:name:]; ok is false if something else follows.
func (p *parser) posix() (set charset, ok bool) {
	rest, found := strings.CutPrefix(p.text[p.at:], "[:")
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
	p.at += 2 + end + 2
	if set = p.folded(set); negated { // characters that are letters in neither case
		set = p.negated(set)
	}
	return set, true
}
