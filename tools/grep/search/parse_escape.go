package search

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// escape parses an item that begins with a backslash, outside brackets.
func (p *parser) escape() (*regexNode, error) {
	at := p.pos
	if l, ok := p.lookEscape(); ok {
		if l == wordBoundary && p.peek() == '{' {
			return p.bracedBoundary(at)
		}
		return p.lookNode(l), nil
	}
	set, r, err := p.setOrCharEscape()
	switch {
	case err != nil:
		return nil, err
	case set != nil:
		return &regexNode{op: opSet, set: set}, nil
	case r >= rawBase:
		return &regexNode{op: opSet, set: singleRune(r)}, nil
	}
	return p.literalNode(r), nil
}

// lookNode returns the tree's node for the look l (^, \b and the like). Without
// the flag u, a look for words knows only ASCII words.
func (p *parser) lookNode(l look) *regexNode {
	if l >= wordBoundary && !p.flags.unicode {
		l += asciiLooks
	}
	return &regexNode{op: opLook, look: l}
}

// lookEscape parses an escape that is a look. It returns false, and consumes
// nothing, if something else follows.
func (p *parser) lookEscape() (look, bool) {
	for i, name := range []string{`\A`, `\z`, `\b`, `\B`, `\<`, `\>`} {
		if p.accept(name) {
			return textStart + look(i), true
		}
	}
	return 0, false
}

// bracedBoundary parses the rest of \b{...} if the braces contain a word. If
// they contain a count, it consumes nothing and returns a word boundary.
func (p *parser) bracedBoundary(at int) (*regexNode, error) {
	rest := p.text[p.pos+1:]
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
	p.pos += 1 + end + 1
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

// setOrCharEscape parses an escape. set is nil if it means a single character
// r.
func (p *parser) setOrCharEscape() (set charset, r rune, err error) {
	at := p.pos
	p.next()
	r = p.next()
	switch r {
	case eof:
		return nil, 0, syntaxError(at, `\ at the end of the pattern`)
	case 'd', 'D', 's', 'S', 'w', 'W':
		return p.perlClass(r), 0, nil
	case 'p', 'P':
		set, err = p.unicodeProperty(at, r == 'P')
		return set, 0, err
	case 'x', 'u', 'U':
		r, err = p.hexEscape(at, r)
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

// cachedSet returns the set of an escape, built once for each meaning under the
// current flags. The caller must not change it. It returns false if build does.
func (p *parser) cachedSet(escape string, build func() (charset, bool)) (charset, bool) {
	key := fmt.Sprint(p.flags.ignoreCase, p.flags.unicode, escape)
	set, ok := p.escapeSets[key]
	if !ok {
		if set, ok = build(); ok {
			p.escapeSets[key] = set
		}
	}
	return set, ok
}

// perlClass returns the set of \d, \s, \w or of their negations, under the
// current flags.
func (p *parser) perlClass(r rune) charset {
	set, _ := p.cachedSet(string(r), func() (charset, bool) { return p.newPerlClass(r), true })
	return set
}

// newPerlClass builds the set that perlClass returns and caches.
func (p *parser) newPerlClass(r rune) charset {
	var set charset
	switch lower := unicode.ToLower(r); {
	case lower == 'd' && p.flags.unicode:
		set = digitSet()
	case lower == 'd':
		set = asciiDigitSet()
	case lower == 's' && p.flags.unicode:
		set = spaceSet()
	case lower == 's':
		set = asciiSpaceSet()
	case p.flags.unicode:
		set = wordSet()
	default:
		set = asciiWordSet()
	}
	if unicode.IsUpper(r) {
		return p.negated(set)
	}
	return set
}

// unicodeProperty parses the name of a property after \p or \P. at is the
// offset of the escape.
func (p *parser) unicodeProperty(at int, negated bool) (charset, error) {
	name := ""
	if p.accept("{") {
		end := strings.IndexByte(p.text[p.pos:], '}')
		if end < 0 {
			return nil, syntaxError(at, `unclosed \p{`)
		}
		name = p.text[p.pos : p.pos+end]
		p.pos += end + 1
	} else if r := p.next(); r != eof {
		name = string(r)
	}
	if !p.flags.unicode {
		return nil, syntaxError(at, `\p{%s} with the flag -u`, name)
	}
	if key, value, ok := strings.Cut(name, "!="); ok {
		name, negated = key+"="+value, !negated
	}
	set, ok := p.cachedSet(fmt.Sprintf(`p%v{%s`, negated, name), func() (charset, bool) {
		set, ok := propertySet(name)
		if set = p.applyCase(set); negated {
			set = p.negated(set)
		}
		return append(charset{}, set...), ok
	})
	if !ok {
		return nil, syntaxError(at, `Unicode property %q is not supported (supported: general categories such as Lu, scripts such as Greek, and some binary properties),`, name)
	}
	return set, nil
}

// hexEscape parses the digits of \x, \u or \U, in braces or of fixed length. at
// is the offset of the escape, kind its letter.
func (p *parser) hexEscape(at int, kind rune) (rune, error) {
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
