package search

import (
	"strings"
	"unicode"
)

// flags are the flags that a pattern can set, such as (?i).
type flags struct {
	ignoreCase, perLine, dotAll, swapGreed, unicode, verbose bool // i, m, s, U, u, x
}

// unsupportedGroups are the beginnings of groups that the engine does not
// support, since it is linear in the length of the text.
var unsupportedGroups = []struct{ open, name string }{
	{"(?=", "look-ahead"}, {"(?!", "negative look-ahead"}, {"(?<=", "look-behind"}, {"(?<!", "negative look-behind"},
	{"(?>", "atomic group"}, {"(?P=", "back-reference"}, {"(?P>", "recursion"}, {"(?#", "comment group"}, {"(?|", "branch reset"}, {"(?(", "conditional group"},
}

// group parses a group or a setting of flags. For the latter it returns nil.
func (p *parser) group() (*regexNode, error) {
	open, outer := p.pos, p.flags
	for _, u := range unsupportedGroups {
		if strings.HasPrefix(p.text[p.pos:], u.open) {
			return nil, syntaxError(p.pos, "%s %s is not supported,", u.name, u.open)
		}
	}
	p.next()
	p.skipSpace()
	switch {
	case p.accept("?P<"), p.accept("?<"):
		if err := p.groupName(); err != nil {
			return nil, err
		}
	case p.accept("?"):
		closed, err := p.setFlags(open)
		if err != nil || closed {
			return nil, err
		}
	}
	n, err := p.alternation()
	if err != nil {
		return nil, err
	}
	if !p.accept(")") {
		return nil, syntaxError(open, "unclosed group (")
	}
	p.flags = outer
	return n, nil
}

// groupName parses a name up to and including ">".
func (p *parser) groupName() error {
	start := p.pos
	end := strings.IndexByte(p.text[start:], '>')
	if end <= 0 {
		return syntaxError(start, "group name empty or unclosed")
	}
	name := p.text[start : start+end]
	for i, r := range name {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsNumber(r) && !strings.ContainsRune(".[]", r)) {
			return syntaxError(start+i, "%q in a group name", r)
		}
	}
	if p.groupNames[name] {
		return syntaxError(start, "duplicate group name %s", name)
	}
	p.groupNames[name] = true
	p.pos = start + end + 1
	return nil
}

// setFlags parses and sets the flags after "(?", up to and including ":" or
// ")". closed is true for ")". open is the offset of the group.
func (p *parser) setFlags(open int) (closed bool, err error) {
	on, seen, last := true, "", rune(0)
	for {
		at := p.pos
		r := p.next()
		switch {
		case r == ':' || r == ')':
			if last == '-' {
				return false, syntaxError(at, "flags end in -")
			}
			if r == ')' && seen == "" {
				return false, syntaxError(open, "(?) has no flag")
			}
			return r == ')', nil
		case r == eof:
			return false, syntaxError(open, "unclosed group (?")
		case strings.ContainsRune(seen, r):
			return false, syntaxError(at, "flag %c given twice", r)
		case r == '-':
			on = false
		case r == 'R':
			return false, syntaxError(at, `flag R (CRLF mode, or recursion) is not supported (\r\n is one line ending without it),`)
		case !p.setFlag(r, on):
			return false, syntaxError(at, "flag %c is not supported", r)
		}
		seen += string(r)
		last = r
	}
}

// setFlag sets a flag, and returns false if the flag is unknown.
func (p *parser) setFlag(r rune, on bool) bool {
	switch r {
	case 'i':
		p.flags.ignoreCase = on
	case 'm':
		p.flags.perLine = on
	case 's':
		p.flags.dotAll = on
	case 'U':
		p.flags.swapGreed = on
	case 'u':
		p.flags.unicode = on
	case 'x':
		p.flags.verbose = on
	default:
		return false
	}
	return true
}
