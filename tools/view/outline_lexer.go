package main

import "strings"

// lexer tracks comments, strings and braces through a text, well enough to tell
// code from comments and strings. It knows no grammar.
type lexer struct {
	language *language
	depth    int
	open     string // end delimiter of the multi-line comment or string; "": none
}

// scan splits a text into lines, with the lexer's state at each line.
func (l *language) scan(text string) []scannedLine {
	state := lexer{language: l}
	lines := make([]scannedLine, 0, strings.Count(text, "\n")+1)
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		scanned := scannedLine{text: line, inside: state.open != "", depth: state.depth, indent: indentOf(line)}
		state.line(line)
		scanned.after = state.depth
		lines = append(lines, scanned)
	}
	return lines
}

func indentOf(line string) int {
	column := 0
	for _, c := range []byte(line) {
		switch c {
		case ' ':
			column++
		case '\t':
			column += 8 - column%8
		default:
			return column
		}
	}
	return -1
}

func (x *lexer) line(line string) {
	for i := 0; i < len(line); {
		if x.open != "" {
			at := strings.Index(line[i:], x.open)
			if at < 0 {
				return
			}
			i += at + len(x.open)
			x.open = ""
			continue
		}
		skip, done := x.token(line[i:])
		if done {
			return
		}
		i += skip
	}
}

// token consumes a piece of code; done means that the rest of the line is a
// comment.
func (x *lexer) token(rest string) (length int, done bool) {
	l := x.language
	switch c := rest[0]; c {
	case '{':
		x.depth++
	case '}':
		x.depth = max(0, x.depth-1)
	case '/':
		if strings.HasPrefix(l.comments, "//") && len(rest) > 1 {
			if rest[1] == '/' {
				return 0, true
			}
			if rest[1] == '*' {
				x.open = "*/"
				return 2, false
			}
		}
	case '#':
		if strings.HasPrefix(l.comments, "#") {
			return 0, true
		}
	case '`':
		if l.strings == "`" {
			x.open = "`"
		}
	case '"', '\'':
		triple := rest[:min(3, len(rest))]
		if l.strings == "py" && (triple == `"""` || triple == `'''`) {
			x.open = triple
			return 3, false
		}
		if c == '\'' && l.strings == "rust" && !(len(rest) > 2 && (rest[1] == '\\' || rest[2] == '\'')) {
			return 1, false // a lifetime
		}
		return quoted(rest), false
	}
	return 1, false
}

// quoted returns the length of a string that ends on the same line. A quote
// without an end on the line, such as an apostrophe, counts as a single
// character.
func quoted(rest string) int {
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case rest[0]:
			return i + 1
		}
	}
	return 1
}
