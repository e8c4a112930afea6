package policy

import (
	"strings"
)

// sed judges a sed script: e and the flag e of s run commands, w writes where
// the script says.
func (s *shellText) checkSed(c simpleCommand) {
	g := grammar{short: "efl", optional: "iI", long: "expression file line-length"}
	var scripts []field
	operands, sandbox := 0, false
	for args := c.args(); len(args) > 0; {
		options, rest, sure := g.leadingOptions(args)
		for _, o := range options {
			switch o.name {
			case "-e", "--expression":
				scripts = append(scripts, o.value)
			case "-f", "--file":
				s.addDoubt(true, "%s runs the script in a file", c.progName)
				operands++
			case "--sandbox":
				sandbox = true
			}
		}
		if !sure && operands == 0 && len(scripts) == 0 {
			s.addDoubt(true, "the script that %s runs is not known", c.progName)
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
		case script.hasUnknown() || script.maybeMany:
			if !isPlainReplacement(script.text) {
				s.addDoubt(true, "the script of %s is not known", c.progName)
			}
		case sedRunsOrWrites(script.text):
			s.addDoubt(true, "%s can run commands or write files (e, w)", c.progName)
		}
	}
}

// onlyReplaces reports whether a script with unknown parts is s/…/…/ with
// known flags. The unknown text could still end the command early; that is
// so seldom, and so little a wall, that it is not worth a doubt for every
// sed "s/$old/$new/".
func isPlainReplacement(script string) bool {
	known := strings.ReplaceAll(script, unknownText, "x")
	return strings.HasPrefix(known, "s") && strings.HasPrefix(script, known[:2]) && !sedRunsOrWrites(known)
}

// sedRuns reports whether a sed script holds e, w or W, or s with such a
// flag. What it does not understand it takes for yes.
func sedRunsOrWrites(script string) bool {
	if len(script) > maxForeignCode {
		return true
	}
	p := sedParser{text: script}
	for p.at < len(p.text) {
		if !p.skipCommand() {
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

func (p *sedParser) skipAny(set string) {
	for p.at < len(p.text) && strings.IndexByte(set, p.text[p.at]) >= 0 {
		p.at++
	}
}

// command reads one command; false where it runs or writes something, or is
// not understood.
func (p *sedParser) skipCommand() bool {
	p.skipAny(" \t\n;{}")
	if p.at >= len(p.text) {
		return true
	}
	if p.peek() == '#' {
		p.skipLine()
		return true
	}
	if !p.skipAddress() {
		return false
	}
	c := p.peek()
	p.at++
	switch c {
	case '{', '}', '=', 'd', 'D', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z', 'F':
		return true
	case 'l', 'L', 'q', 'Q':
		p.skipAny(" 0123456789")
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
		p.skipLine()
		return true
	case ':', 'b', 't', 'T':
		for p.at < len(p.text) && p.text[p.at] != '\n' && p.text[p.at] != ';' && p.text[p.at] != '}' {
			p.at++
		}
		return true
	case 's', 'y':
		delimiter := p.peek()
		p.at++
		if delimiter == 0 || delimiter == '\n' || delimiter == '\\' || !p.skipPast(delimiter, c == 's') || !p.skipPast(delimiter, false) {
			return false
		}
		if c == 's' {
			p.skipAny("gpiImM0123456789 \t")
		}
		return p.at >= len(p.text) || strings.IndexByte(";}\n#", p.peek()) >= 0
	}
	return false
}

func (p *sedParser) skipLine() {
	for p.at < len(p.text) && p.text[p.at] != '\n' {
		p.at++
	}
}

// until skips text up to the delimiter. In a regular expression a bracket
// expression may hold the delimiter; sed's own rule differs between versions,
// so that such a script is not understood.
func (p *sedParser) skipPast(delimiter byte, expression bool) bool {
	for ; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == '\\':
			p.at++
		case c == delimiter:
			p.at++
			return true
		case expression && c == '[':
			if end := bracketEnd(p.text, p.at); strings.IndexByte(p.text[p.at:end], delimiter) >= 0 {
				return false
			}
			p.at = max(p.at, bracketEnd(p.text, p.at))
		}
	}
	return false
}

// address skips the lines that a command is for.
func (p *sedParser) skipAddress() bool {
	for {
		p.skipAny(" \t")
		switch c := p.peek(); {
		case c >= '0' && c <= '9' || c == '$' || c == '~' || c == '+':
			p.at++
			p.skipAny("0123456789")
		case c == '/':
			p.at++
			if !p.skipPast('/', true) {
				return false
			}
			p.skipAny("IM")
		case c == '\\' && p.at+1 < len(p.text):
			delimiter := p.text[p.at+1]
			p.at += 2
			if !p.skipPast(delimiter, true) {
				return false
			}
			p.skipAny("IM")
		case c == ',' || c == '!':
			p.at++
		default:
			return true
		}
	}
}
