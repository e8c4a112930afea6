package secret

import (
	"bytes"

	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
)

// openQuotes holds the quotes and blocks that the lines read so far leave open, by
// the rules of each kind of program: shells, dotenv libraries of several languages, YAML and TOML.
// None of them compares text of the file with other text of it, except for
// quotes and indentation: otherwise a guess at a value could be tried out by
// writing it next to the value.
type openQuotes struct {
	shell           byte      // in a quote as a shell reads it: ', ", `, or $ for $'
	valueQuotesOpen [9]bool   // in a quote that began a value: of valueQuotes, with \ as an escape, then without
	triple          []byte    // in """ or '''
	blockIndent     int       // in a block of YAML, indented by more than this; -1: none
	pem             bool      // between BEGIN and END
	inHereDocument  bool      // in a here-document or the like: its end is not looked for
	noLaterQuote    [256]bool // quotes that do not come again
}

// isInsideValue reports whether a line begins in a value.
func (o *openQuotes) isInsideValue(line []byte) bool {
	if o.blockIndent >= 0 && len(bytes.TrimSpace(line)) > 0 && indentWidth(line) <= o.blockIndent {
		o.blockIndent = -1
	}
	return o.shell != 0 || o.valueQuotesOpen != [9]bool{} || o.triple != nil || o.blockIndent >= 0 || o.pem || o.inHereDocument
}

// read updates o by a line, whose value begins at the offset key, -1 if it has
// none. rest is the text after the line. carried says that it continues the
// line before.
func (o *openQuotes) read(line []byte, key int, rest []byte, carried bool) {
	trimmed := bytes.TrimSpace(line)
	comment := len(trimmed) > 0 && (trimmed[0] == '#' || trimmed[0] == ';') && !carried
	value := trimmed
	if key >= 0 {
		value = bytes.TrimSpace(line[key:])
	}
	value = valuePrefix().ReplaceAll(value, nil)
	o.readPEM(line, rest, comment)
	o.readTriple(line, value, rest, comment)
	o.readValueQuotes(line, value, rest, comment)
	if o.blockIndent < 0 && !comment && blockStart().Match(value) {
		o.blockIndent = indentWidth(line)
	}
	if !comment || o.shell != 0 {
		o.readShell(line, rest)
	}
}

var (
	// valuePrefix matches the text that may precede a value: list items, tags and anchors of
	// YAML, and an = whose name is on the line before.
	valuePrefix = lazyregexp.New(`^((-|\?|[!&][^\s]*)\s+|[=:]\s*)+`)
	// blockStart matches the head of a block scalar of YAML at the end of a
	// line.
	blockStart = lazyregexp.New(`(^|\s)[|>][+-]?[0-9]?[+-]?(\s+#.*)?$`)
	// hereDocument matches the beginning of a here-document.
	hereDocument = lazyregexp.New(`^<<[-~]?\s*["'\\]?[A-Za-z0-9_]`)
)

// readPEM notes whether a line begins or ends a key or certificate. In a comment, where
// BEGIN may be mentioned only, its END has to follow.
func (o *openQuotes) readPEM(line, rest []byte, comment bool) {
	end := []byte("-----END ")
	if i := bytes.LastIndex(line, []byte("-----BEGIN ")); i >= 0 && (!comment || bytes.Contains(rest, end)) {
		o.pem = true
		line = line[i:]
	}
	o.pem = o.pem && !bytes.Contains(line, end)
}

// readTriple reads quotes of three characters, as in TOML and Python, that begin value,
// the value in line, and do not end in the line. rest is the text after the line. comment
// says that the line is a comment, which begins no quotes.
func (o *openQuotes) readTriple(line, value, rest []byte, comment bool) {
	if o.triple != nil {
		if bytes.Contains(line, o.triple) {
			o.triple = nil
		}
		return
	}
	for _, quote := range []string{`"""`, "'''"} {
		if after, ok := bytes.CutPrefix(value, []byte(quote)); ok && !comment && !bytes.Contains(after, []byte(quote)) && bytes.Contains(rest, []byte(quote)) {
			o.triple = []byte(quote)
		}
	}
}

// valueQuotes are the quotes that a value can begin with.
const valueQuotes = "\"'`"

// readValueQuotes reads quotes that count only at the beginning of a value. Some
// programs take back a quote when text follows its end: so one within another
// counts, too.
func (o *openQuotes) readValueQuotes(line, value, rest []byte, comment bool) {
	for i := range o.valueQuotesOpen {
		c, how := valueQuotes[i%3], escape(i/3)
		if o.valueQuotesOpen[i] && hasClosingQuote(line, c, how) {
			o.valueQuotesOpen[i] = false
		}
		if !comment && len(value) > 0 && value[0] == c && !hasClosingQuote(value[1:], c, how) && o.occursIn(c, rest) {
			o.valueQuotesOpen[i] = true
		}
	}
}

// occursIn reports whether c, a quote, is in rest, the text after what was
// read.
func (o *openQuotes) occursIn(c byte, rest []byte) bool {
	if o.noLaterQuote[c] {
		return false
	}
	o.noLaterQuote[c] = bytes.IndexByte(rest, c) < 0
	return !o.noLaterQuote[c]
}

// readShell updates o for a line, read as a shell does. rest is the text after the line:
// a quote that is not closed in it is an ordinary character.
func (o *openQuotes) readShell(line, rest []byte) {
	depth := 0 // of parentheses
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '\\' && o.shell != '\'':
			i++
		case o.shell != 0:
			if c == o.shell || o.shell == '$' && c == '\'' {
				o.shell = 0
			} else if o.shell == '"' && c == '$' && i+1 < len(line) && line[i+1] == '(' {
				o.inHereDocument = o.inHereDocument || bytes.IndexByte(line[i:], ')') < 0 && o.occursIn(')', rest) // quotes in it are its own
			}
		case c == '#' && (i == 0 || bytes.IndexByte([]byte(" \t;&|()"), line[i-1]) >= 0):
			return
		case c == '\'' || c == '"' || c == '`':
			if bytes.IndexByte(line[i+1:], c) >= 0 || o.occursIn(c, rest) {
				o.shell = c
				if c == '\'' && i > 0 && line[i-1] == '$' {
					o.shell = '$'
				}
			}
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == '{' && i > 0 && line[i-1] == '$':
			o.inHereDocument = o.inHereDocument || bytes.IndexByte(line[i:], '}') < 0 && o.occursIn('}', rest)
		case c == '<' && hereDocument().Match(line[i:]) && (i == 0 || line[i-1] != '<'):
			o.inHereDocument = true
		}
	}
	o.inHereDocument = o.inHereDocument || depth > 0 && o.occursIn(')', rest)
}

// escape says how a quote is written within such quotes: after a backslash, not
// at all, or doubled.
type escape int

const (
	backslashEscape escape = iota
	noEscape
	doubledQuote // as in YAML
)

// hasClosingQuote reports whether text contains quote, not escaped as how says.
func hasClosingQuote(text []byte, quote byte, how escape) bool {
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && how == backslashEscape:
			i++
		case text[i] == quote && how == doubledQuote && i+1 < len(text) && text[i+1] == quote:
			i++
		case text[i] == quote:
			return true
		}
	}
	return false
}

// indentWidth returns the number of bytes of white space that a line begins with.
func indentWidth(line []byte) int {
	return len(line) - len(bytes.TrimLeft(line, " \t"))
}
