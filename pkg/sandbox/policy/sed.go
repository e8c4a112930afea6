package policy

import (
	"strings"
)

// sed judges a sed script: e and the flag e of s run commands, w writes where
// the script says.
func (s *scope) sed(c call) {
	g := grammar{short: "efl", optional: "iI", long: "expression file line-length"}
	var scripts []field
	operands, sandbox := 0, false
	for args := c.args(); len(args) > 0; {
		options, rest, sure := g.options(args)
		for _, o := range options {
			switch o.name {
			case "-e", "--expression":
				scripts = append(scripts, o.value)
			case "-f", "--file":
				s.doubt(true, "%s runs the script in a file", c.base)
				operands++
			case "--sandbox":
				sandbox = true
			}
		}
		if !sure && operands == 0 && len(scripts) == 0 {
			s.doubt(true, "the script that %s runs is not known", c.base)
			return
		}
		if len(rest) == 0 {
			break
		}
		if operands == 0 && len(scripts) == 0 {
			scripts = append(scripts, rest[0])
		}
		operands++
		args = rest[1:]
	}
	for _, script := range scripts {
		switch {
		case sandbox:
		case script.unknown() || script.many:
			if !onlyReplaces(script.text) {
				s.doubt(true, "the script of %s is not known", c.base)
			}
		case sedRuns(script.text):
			s.doubt(true, "%s can run commands or write files (e, w)", c.base)
		}
	}
}

// onlyReplaces reports whether a script with unknown parts is s/…/…/ with
// known flags. The unknown text could still end the command early; that is
// so seldom, and so little a wall, that it is not worth a doubt for every
// sed "s/$old/$new/".
func onlyReplaces(script string) bool {
	known := strings.ReplaceAll(script, anything, "x")
	return strings.HasPrefix(known, "s") && strings.HasPrefix(script, known[:2]) && !sedRuns(known)
}

// sedRuns reports whether a sed script holds e, w or W, or s with such a
// flag. What it does not understand it takes for yes.
func sedRuns(script string) bool {
	if len(script) > maxForeignCode {
		return true
	}
	p := sedParser{text: script}
	for p.at < len(p.text) {
		if !p.command() {
			return true
		}
	}
	return false
}

type sedParser struct {
	text string
	at   int
}

func (p *sedParser) peek() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

func (p *sedParser) skip(set string) {
	for p.at < len(p.text) && strings.IndexByte(set, p.text[p.at]) >= 0 {
		p.at++
	}
}

// command reads one command; false where it runs or writes something, or is
// not understood.
func (p *sedParser) command() bool {
	p.skip(" \t\n;{}")
	if p.at >= len(p.text) {
		return true
	}
	if p.peek() == '#' {
		p.line()
		return true
	}
	if !p.address() {
		return false
	}
	c := p.peek()
	p.at++
	switch c {
	case '{', '}', '=', 'd', 'D', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z', 'F':
		return true
	case 'l', 'L', 'q', 'Q':
		p.skip(" 0123456789")
		return true
	case 'a', 'i', 'c':
		for p.at < len(p.text) && p.text[p.at] != '\n' {
			if p.text[p.at] == '\\' {
				p.at++
			}
			p.at++
		}
		return true
	case 'r', 'R', 'v':
		p.line()
		return true
	case ':', 'b', 't', 'T':
		for p.at < len(p.text) && p.text[p.at] != '\n' && p.text[p.at] != ';' && p.text[p.at] != '}' {
			p.at++
		}
		return true
	case 's', 'y':
		delimiter := p.peek()
		p.at++
		if delimiter == 0 || delimiter == '\n' || delimiter == '\\' || !p.until(delimiter, c == 's') || !p.until(delimiter, false) {
			return false
		}
		if c == 's' {
			p.skip("gpiImM0123456789 \t")
		}
		return p.at >= len(p.text) || strings.IndexByte(";}\n#", p.peek()) >= 0
	}
	return false
}

func (p *sedParser) line() {
	for p.at < len(p.text) && p.text[p.at] != '\n' {
		p.at++
	}
}

// until skips text up to the delimiter. In a regular expression a bracket
// expression may hold the delimiter; sed's own rule differs between versions,
// so that such a script is not understood.
func (p *sedParser) until(delimiter byte, expression bool) bool {
	for ; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == '\\':
			p.at++
		case c == delimiter:
			p.at++
			return true
		case expression && c == '[':
			if end := skipBracket(p.text, p.at); strings.IndexByte(p.text[p.at:end], delimiter) >= 0 {
				return false
			}
			p.at = max(p.at, skipBracket(p.text, p.at))
		}
	}
	return false
}

// address skips the lines that a command is for.
func (p *sedParser) address() bool {
	for {
		p.skip(" \t")
		switch c := p.peek(); {
		case c >= '0' && c <= '9' || c == '$' || c == '~' || c == '+':
			p.at++
			p.skip("0123456789")
		case c == '/':
			p.at++
			if !p.until('/', true) {
				return false
			}
			p.skip("IM")
		case c == '\\' && p.at+1 < len(p.text):
			delimiter := p.text[p.at+1]
			p.at += 2
			if !p.until(delimiter, true) {
				return false
			}
			p.skip("IM")
		case c == ',' || c == '!':
			p.at++
		default:
			return true
		}
	}
}
