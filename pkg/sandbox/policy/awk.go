package policy

import (
	"slices"
	"strings"
)

// maxForeignCode bounds code of other languages that is checked, in bytes;
// longer code counts as code that may run commands.
const maxForeignCode = 8 << 10

// checkAwk adds a doubt about an awk program that may start commands: by
// system(), a pipe, /inet or what gawk loads.
func (s *shellText) checkAwk(c simpleCommand) {
	g := grammar{short: "FvfeEilovW", long: "field-separator assign file source exec include load"}
	options, rest, sure := g.leadingOptions(c.args())
	var programs []field
	for _, o := range options {
		switch o.name {
		case "-f", "--file", "-E", "--exec", "-i", "--include", "-l", "--load":
			s.addDoubt(false, "%s reads its program from a file", c.progName)
			rest = append([]field{{}}, rest...)
		case "-W":
			s.addDoubt(true, "%s -W may hold a program", c.progName)
		case "-e", "--source":
			programs, rest = append(programs, o.value), append([]field{{}}, rest...)
		}
	}
	if !sure {
		s.addDoubt(true, "the options of %s are known only at run time; write them and the program without variables", c.progName)
		return
	}
	if len(programs) == 0 && len(rest) > 0 {
		programs = rest[:1]
	}
	for _, program := range programs {
		if program.hasUnknown() || program.maybeMany || awkStartsCommand(program.text) {
			s.addDoubt(true, "%s can run commands (system, pipes)", c.progName)
			return
		}
	}
}

// awkStartsCommand reports whether an awk program may start commands. It
// returns true if that is not sure.
func awkStartsCommand(program string) bool {
	if len(program) > maxForeignCode {
		return true
	}
	regexpMay := true // a / here begins a regular expression, not a division
	unsure := false   // it may do either
	for i := 0; i < len(program); i++ {
		if program[i] == '/' && unsure {
			return mentionsAwkStarter(program)
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
					i = bracketEnd(program, i)
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
		case isLetterByte(c):
			start := i
			for i+1 < len(program) && (isLetterByte(program[i+1]) || program[i+1] >= '0' && program[i+1] <= '9') {
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

// mentionsAwkStarter reports whether an awk program contains, even in a string
// or comment, what starts commands.
func mentionsAwkStarter(program string) bool {
	return strings.Contains(program, "system") || strings.Contains(program, "/inet") || strings.Contains(program, "@") ||
		strings.Contains(strings.ReplaceAll(program, "||", ""), "|")
}

// isLetterByte reports whether c is an ASCII letter or an underscore.
func isLetterByte(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }

// bracketEnd returns the index of the ] that ends the bracket expression at i,
// or i if it has no end in its line.
func bracketEnd(text string, i int) int {
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
