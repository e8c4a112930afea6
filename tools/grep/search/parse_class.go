package search

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// escape parses an item that begins with a backslash, outside brackets.
func (p *parser) escape() (*regexNode, error) {
	at := p.at
	if l, ok := p.lookEscape(); ok {
		if l == wordBoundary && p.peek() == '{' {
			return p.specialBoundary(at)
		}
		return p.lookNode(l), nil
	}
	set, r, err := p.setEscape()
	switch {
	case err != nil:
		return nil, err
	case set != nil:
		return &regexNode{op: opSet, set: set}, nil
	case r >= rawBase:
		return &regexNode{op: opSet, set: single(r)}, nil
	}
	return p.literal(r), nil
}

func (p *parser) lookNode(l look) *regexNode {
	if l >= wordBoundary && !p.flags.unicode {
		l += asciiLooks
	}
	return &regexNode{op: opLook, look: l}
}

func (p *parser) lookEscape() (look, bool) {
	for i, name := range []string{`\A`, `\z`, `\b`, `\B`, `\<`, `\>`} {
		if p.accept(name) {
			return textStart + look(i), true
		}
	}
	return 0, false
}

// specialBoundary parses \b{...} if the braces contain a word instead of a
// count.
func (p *parser) specialBoundary(at int) (*regexNode, error) {
	rest := p.text[p.at+1:]
	first, _ := utf8.DecodeRuneInString(strings.TrimLeftFunc(rest, func(r rune) bool {
		return p.flags.verbose && unicode.IsSpace(r)
	}))
	if first != '-' && (first > unicode.MaxASCII || !unicode.IsLetter(first)) {
		return p.lookNode(wordBoundary), nil
	}
	end := strings.IndexByte(rest, '}')
	if end < 0 {
		return nil, syntaxError(at, `unclosed \b{`)
	}
	p.at += 1 + end + 1
	switch strings.TrimSpace(rest[:end]) {
	case "start":
		return p.lookNode(wordStart), nil
	case "end":
		return p.lookNode(wordEnd), nil
	case "start-half":
		return p.lookNode(wordStartHalf), nil
	case "end-half":
		return p.lookNode(wordEndHalf), nil
	}
	return nil, syntaxError(at, `unknown word boundary \b{%s} (there are start, end, start-half and end-half)`, rest[:end])
}

// setEscape parses an escape that means a set, or else the character r.
func (p *parser) setEscape() (set charset, r rune, err error) {
	at := p.at
	p.next()
	r = p.next()
	switch r {
	case eof:
		return nil, 0, syntaxError(at, `\ at the end of the pattern`)
	case 'd', 'D', 's', 'S', 'w', 'W':
		return p.perlSet(r), 0, nil
	case 'p', 'P':
		set, err = p.property(at, r == 'P')
		return set, 0, err
	case 'x', 'u', 'U':
		r, err = p.hex(at, r)
		return nil, r, err
	case 'a':
		return nil, '\a', nil
	case 'f':
		return nil, '\f', nil
	case 'n':
		return nil, '\n', nil
	case 'r':
		return nil, '\r', nil
	case 't':
		return nil, '\t', nil
	case 'v':
		return nil, '\v', nil
	}
	switch {
	case r >= '0' && r <= '9':
		return nil, 0, syntaxError(at, `back-reference \%c is not supported,`, r)
	case r == 'k' || r == 'g':
		return nil, 0, syntaxError(at, `\%c (a back-reference?) is not supported,`, r)
	case r > unicode.MaxASCII || unicode.IsLetter(r) || r == '<' || r == '>':
		return nil, 0, syntaxError(at, `escape \%c is not supported,`, r)
	}
	return nil, r, nil
}

// remember returns the set of an escape, made once for each meaning under the
// current flags. The caller must not change it.
func (p *parser) remember(escape string, made func() (charset, bool)) (charset, bool) {
	key := fmt.Sprint(p.flags.ignoreCase, p.flags.unicode, escape)
	set, ok := p.sets[key]
	if !ok {
		if set, ok = made(); ok {
			p.sets[key] = set
		}
	}
	return set, ok
}

func (p *parser) perlSet(r rune) charset {
	set, _ := p.remember(string(r), func() (charset, bool) { return p.newPerlSet(r), true })
	return set
}

func (p *parser) newPerlSet(r rune) charset {
	var set charset
	switch lower := unicode.ToLower(r); {
	case lower == 'd' && p.flags.unicode:
		set = digitSet()
	case lower == 'd':
		set = asciiDigit()
	case lower == 's' && p.flags.unicode:
		set = spaceSet()
	case lower == 's':
		set = asciiSpace()
	case p.flags.unicode:
		set = wordSet()
	default:
		set = asciiWord()
	}
	if unicode.IsUpper(r) {
		return p.negated(set)
	}
	return set
}

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

func (p *parser) property(at int, negated bool) (charset, error) {
	name := ""
	if p.accept("{") {
		end := strings.IndexByte(p.text[p.at:], '}')
		if end < 0 {
			return nil, syntaxError(at, `unclosed \p{`)
		}
		name = p.text[p.at : p.at+end]
		p.at += end + 1
	} else if r := p.next(); r != eof {
		name = string(r)
	}
	if !p.flags.unicode {
		return nil, syntaxError(at, `\p{%s} with the flag -u`, name)
	}
	if key, value, ok := strings.Cut(name, "!="); ok {
		name, negated = key+"="+value, !negated
	}
	set, ok := p.remember(fmt.Sprintf(`p%v{%s`, negated, name), func() (charset, bool) {
		set, ok := propertySet(name)
		if set = p.folded(set); negated {
			set = p.negated(set)
		}
		return append(charset{}, set...), ok
	})
	if !ok {
		return nil, syntaxError(at, `Unicode property %q is not supported (general categories such as Lu, scripts such as Greek, and some binary properties are),`, name)
	}
	return set, nil
}

// hex parses the digits of \x, \u or \U, in braces or of fixed length.
func (p *parser) hex(at int, kind rune) (rune, error) {
	digits, braces := map[rune]int{'x': 2, 'u': 4, 'U': 8}[kind], p.accept("{")
	var n, count int
	for braces || count < digits {
		r := p.next()
		if braces && r == '}' {
			break
		}
		digit := strings.IndexRune("0123456789abcdef", unicode.ToLower(r))
		if r == eof || digit < 0 || r > unicode.MaxASCII {
			return 0, syntaxError(at, `\%c without its hexadecimal digits`, kind)
		}
		if n = n*16 + digit; n > maxRune {
			return 0, syntaxError(at, `\%c: beyond the last character, U+10FFFF`, kind)
		}
		count++
	}
	if count == 0 || !utf8.ValidRune(rune(n)) {
		return 0, syntaxError(at, `\%c: not a character`, kind)
	}
	if !p.flags.unicode && kind == 'x' && !braces && n >= 0x80 {
		return rawBase + rune(n), nil
	}
	return rune(n), nil
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
