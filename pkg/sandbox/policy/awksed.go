package policy

import (
	"slices"
	"strings"
)

// maxForeignCode bounds the programs of awk and sed that are read, in bytes.
const maxForeignCode = 8 << 10

// awk judges an awk program: system(), pipes, /inet and what gawk loads run
// other things; the rest is text processing.
func (s *scope) awk(c call) {
	g := grammar{short: "FvfeEilovW", long: "field-separator assign file source exec include load"}
	options, rest, sure := g.options(c.args())
	var programs []field
	for _, o := range options {
		switch o.name {
		case "-f", "--file", "-E", "--exec", "-i", "--include", "-l", "--load":
			s.doubt(false, "%s runs the program in a file", c.base)
			rest = append([]field{{}}, rest...)
		case "-W":
			s.doubt(true, "%s -W may hold a program", c.base)
		case "-e", "--source":
			programs, rest = append(programs, o.value), append([]field{{}}, rest...)
		}
	}
	if !sure {
		s.doubt(true, "the program that %s runs is not known", c.base)
		return
	}
	if len(programs) == 0 && len(rest) > 0 {
		programs = rest[:1]
	}
	for _, program := range programs {
		if program.unknown() || program.many || awkRuns(program.text) {
			s.doubt(true, "%s can run commands (system, pipes)", c.base)
			return
		}
	}
}

// awkRuns reports whether an awk program starts commands. It errs on the side
// of yes.
func awkRuns(program string) bool {
	if len(program) > maxForeignCode {
		return true
	}
	regexpMay := true // a / here begins a regular expression, not a division
	unsure := false   // it may do either
	for i := 0; i < len(program); i++ {
		if program[i] == '/' && unsure {
			return awkMentions(program)
		}
		unsure = unsure && (program[i] == ' ' || program[i] == '\t')
		switch c := program[i]; {
		case c == '#':
			for i+1 < len(program) && program[i+1] != '\n' {
				i++
			}
		case c == '"' || c == '/' && regexpMay:
			start := i
			for i++; i < len(program) && program[i] != c; i++ {
				if program[i] == '\\' {
					i++
				} else if c == '/' && program[i] == '[' {
					i = skipBracket(program, i)
				}
			}
			if c == '"' && strings.Contains(program[start:min(i, len(program))], "/inet") {
				return true
			}
			regexpMay = false
		case c == '|':
			if i+1 >= len(program) || program[i+1] != '|' {
				return true
			}
			i++
			regexpMay = true
		case c == '@':
			return true // gawk: @load, @include, calls by name
		case letter(c):
			start := i
			for i+1 < len(program) && (letter(program[i+1]) || program[i+1] >= '0' && program[i+1] <= '9') {
				i++
			}
			word := program[start : i+1]
			if word == "system" {
				return true
			}
			regexpMay = slices.Contains([]string{"return", "print", "printf", "in", "else", "do", "case", "exit"}, word)
			unsure = word == "getline"
		case c == ' ' || c == '\t':
		default:
			regexpMay = c != ')' && c != ']' && (c < '0' || c > '9') && c != '$'
			// if (x) /y/ and (x) / y; x++ / y and a + +/y/.
			unsure = c == ')' || (c == '+' || c == '-') && i > 0 && program[i-1] == c
		}
	}
	return false
}

// awkMentions reports whether what starts commands stands anywhere in an awk
// program, be it in a text or a comment.
func awkMentions(program string) bool {
	return strings.Contains(program, "system") || strings.Contains(program, "/inet") || strings.Contains(program, "@") ||
		strings.Contains(strings.ReplaceAll(program, "||", ""), "|")
}

func letter(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }

// skipBracket returns the end of the bracket expression that begins at i, or
// i where it has none.
func skipBracket(text string, i int) int {
	j := i + 1
	if j < len(text) && text[j] == '^' {
		j++
	}
	if j < len(text) && text[j] == ']' {
		j++
	}
	for ; j < len(text) && text[j] != '\n'; j++ {
		if text[j] == ']' {
			return j
		}
	}
	return i
}

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
