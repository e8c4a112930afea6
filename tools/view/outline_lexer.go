package main

import "strings"

// lexer tracks comments, strings and braces through a text, well enough to tell
// code from comments and strings. It knows no grammar.
type lexer struct {
	language  *language
	depth     int    // open braces
	openUntil string // end delimiter of the open multi-line comment or string; "": none
}

// scanLines splits a text into lines, with the lexer's state at each line.
func (l *language) scanLines(text string) []scannedLine {
	state := lexer{language: l}
	lines := make([]scannedLine, 0, strings.Count(text, "\n")+1)
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		scanned := scannedLine{text: line, startsInside: state.openUntil != "", depthBefore: state.depth, indent: indentColumns(line)}
		state.consumeLine(line)
		scanned.depthAfter = state.depth
		lines = append(lines, scanned)
	}
	return lines
}

// indentColumns returns the columns of leading white space; -1 for a blank
// line.
func indentColumns(line string) int {
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

// consumeLine updates the state by a line.
func (x *lexer) consumeLine(line string) {
	for i := 0; i < len(line); {
		if x.openUntil != "" {
			at := strings.Index(line[i:], x.openUntil)
			if at < 0 {
				return
			}
			i += at + len(x.openUntil)
			x.openUntil = ""
			continue
		}
		skip, done := x.consumeToken(line[i:])
		if done {
			return
		}
		i += skip
	}
}

// consumeToken updates the state by the first piece of code in rest, which must not be
// empty, and returns its length. done is true, and the length 0, if the rest of the line
// is a comment.
func (x *lexer) consumeToken(rest string) (length int, done bool) {
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
				x.openUntil = "*/"
				return 2, false
			}
		}
	case '#':
		if strings.HasPrefix(l.comments, "#") {
			return 0, true
		}
	case '`':
		if l.strings == "`" {
			x.openUntil = "`"
		}
	case '"', '\'':
		triple := rest[:min(3, len(rest))]
		if l.strings == "py" && (triple == `"""` || triple == `'''`) {
			x.openUntil = triple
			return 3, false
		}
		if c == '\'' && l.strings == "rust" && !(len(rest) > 2 && (rest[1] == '\\' || rest[2] == '\'')) {
			return 1, false // a lifetime
		}
		return quotedLength(rest), false
	}
	return 1, false
}

// quotedLength returns the length of a string that ends on the same line. A
// quote without an end on the line, such as an apostrophe, counts as a single
// character.
func quotedLength(rest string) int {
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
