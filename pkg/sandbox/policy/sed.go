package policy

import (
	"strings"
)

// checkSed adds a doubt about a sed script that may run commands (e, and the
// flag e of s), write files (w), or is not known.
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
				s.addDoubt(true, "%s reads its script from a file; give the script itself, with -e", c.progName)
				operands++
			case "--sandbox":
				sandbox = true
			}
		}
		if !sure && operands == 0 && len(scripts) == 0 {
			s.addDoubt(true, "the options of %s are known only at run time; write them and the script without variables", c.progName)
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
				s.addDoubt(true, "the script of %s is known only at run time; write it without variables", c.progName)
			}
		case sedRunsOrWrites(script.text):
			s.addDoubt(true, "the script of %s runs commands or writes files (e, w), or is too complex to check", c.progName)
		}
	}
}

// isPlainReplacement reports whether a script with unknown parts is s/…/…/ with
// known flags. The unknown text could still end the command early. That is so
// rare, and the check is so little a barrier, that it is not worth a doubt for
// every sed "s/$old/$new/".
func isPlainReplacement(script string) bool {
	known := strings.ReplaceAll(script, unknownText, "x")
	return strings.HasPrefix(known, "s") && strings.HasPrefix(script, known[:2]) && !sedRunsOrWrites(known)
}

// sedRunsOrWrites reports whether a sed script has e, w or W, or s with such a
// flag. It returns true for a script that it does not understand.
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

// sedParser skips through a sed script.
type sedParser struct {
	text string
	at   int // index of the next byte
}

// peek returns the next byte without taking it; 0 at the end.
func (p *sedParser) peek() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

// skipAny skips bytes as long as they are in set.
func (p *sedParser) skipAny(set string) {
	for p.at < len(p.text) && strings.IndexByte(set, p.text[p.at]) >= 0 {
		p.at++
	}
}

// skipCommand skips one command. It returns false if the command runs or writes
// something, or is not understood.
func (p *sedParser) skipCommand() (isHarmless bool) {
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

// skipLine skips to the end of the line.
func (p *sedParser) skipLine() {
	for p.at < len(p.text) && p.text[p.at] != '\n' {
		p.at++
	}
}

// skipPast skips text up to and including the delimiter. isRegexp says that the
// text is a regular expression: a bracket expression in it may contain the
// delimiter, and sed's rule for that differs between versions, so that such a
// script is not understood. It returns false then, and if there is no
// delimiter.
func (p *sedParser) skipPast(delimiter byte, isRegexp bool) bool {
	for ; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == '\\':
			p.at++
		case c == delimiter:
			p.at++
			return true
		case isRegexp && c == '[':
			if end := bracketEnd(p.text, p.at); strings.IndexByte(p.text[p.at:end], delimiter) >= 0 {
				return false
			}
			p.at = max(p.at, bracketEnd(p.text, p.at))
		}
	}
	return false
}

// skipAddress skips the line addresses before a command. It returns false if
// they are malformed.
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
