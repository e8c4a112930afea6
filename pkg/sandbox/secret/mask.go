package secret

import (
	"bytes"
	"iter"

	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
)

// maskedValue is shown instead of a value.
const maskedValue = "***"

// Mask returns the text of a settings file (.env, .npmrc) with *** for each
// value. Names, comments, empty values and line ends stay, so that line numbers
// stay the same. A line that Mask cannot parse is masked whole. text must be the
// whole file, because a value may span lines.
//
// Of XML, it masks each line whole.
//
// Programs read such files differently. A line is shown only if none of them
// could take it for a part of a value: see opened.
func Mask(text []byte) []byte {
	out := make([]byte, 0, len(text))
	m := masker{openQuotes: openQuotes{blockIndent: -1}, pendingIndent: -1, isXML: isXML(text)}
	old := bytes.IndexByte(text, '\n') < 0 // lines end in CR, as on old systems
	for len(text) > 0 {
		line, rest := text, []byte(nil)
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			line, rest = text[:i], text[i:]
		}
		end := len(line)
		for end > 0 && line[end-1] == '\r' {
			end--
		}
		// Some programs end a line at a CR alone, others do not: what is
		// behind one is no comment.
		for part, at := range splitCR(line[:end]) {
			if at > 0 {
				out = append(out, '\r')
			}
			m.afterLoneCR, m.insideCRLine = at > 0, at > 0 && !old
			out = m.maskLine(out, part, text[at+len(part):])
		}
		out = append(out, line[end:]...)
		if len(rest) > 0 {
			out = append(out, '\n')
			rest = rest[1:]
		}
		text = rest
	}
	return out
}

// isXML reports whether the first character of text, except blanks and a byte
// order mark, is <.
func isXML(text []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), " \t\r\n"), []byte("<"))
}

// splitCR yields the parts of a line between its carriage returns, each with
// its offset.
func splitCR(line []byte) iter.Seq2[[]byte, int] {
	return func(yield func([]byte, int) bool) {
		at := 0
		for {
			i := bytes.IndexByte(line[at:], '\r')
			if i < 0 {
				yield(line[at:], at)
				return
			}
			if !yield(line[at:at+i], at) {
				return
			}
			at += i + 1
		}
	}
}

// masker is the state of Mask between two lines.
type masker struct {
	openQuotes
	isXML           bool
	prevMaskedWhole bool // the line before was masked whole
	afterUnparsed   bool // since a line that is not understood, up to one that is
	prevContinues   bool // the line before ended in a backslash
	afterLoneCR     bool // the line is behind a CR alone
	insideCRLine    bool // and so in the middle of what most take for one line
	pendingIndent   int  // indentation of a line "key:" whose value may begin on the next line; -1: none
	prevLastByte    byte // last character of the line before that is not blank; 0: none
}

// maskLine appends line, which has no line end, to out with its value masked.
// rest is the text after the line.
func (m *masker) maskLine(out, line, rest []byte) []byte {
	if m.isXML {
		return m.maskWholeLine(out, line)
	}
	trimmed := bytes.TrimSpace(line)
	carried, inside := m.prevContinues, m.isInsideValue(line)
	m.prevContinues = bytes.HasSuffix(trimmed, []byte(`\`))
	comment := len(trimmed) > 0 && (trimmed[0] == '#' || trimmed[0] == ';')
	key := keyEnd(line)
	m.read(line, key, rest, carried)
	section := isSection(line) && (m.prevLastByte == 0 || bytes.IndexByte([]byte("[{(,:"), m.prevLastByte) < 0)
	only := m.prevLastByte == 0 && len(bytes.TrimSpace(rest)) == 0
	value := m.isPendingValue(line, key, comment)
	if len(trimmed) > 0 && !comment {
		m.prevLastByte = trimmed[len(trimmed)-1]
	}
	switch {
	case inside || carried || m.insideCRLine || value:
		return m.maskWholeLine(out, line)
	case bytes.HasPrefix(trimmed, []byte("-----BEGIN ")):
		return m.maskWholeLine(out, line)
	case len(trimmed) == 0:
		m.afterUnparsed = false
		return append(out, line...)
	case section || len(bytes.Trim(trimmed, "{}[](),;")) == 0:
		return append(out, line...)
	}
	if key < 0 {
		if comment && !m.afterUnparsed && !m.afterLoneCR && !hasLineBreak(line) {
			m.prevMaskedWhole = false
			return maskURLs(out, line)
		}
		m.afterUnparsed = m.afterUnparsed || !comment
		return m.maskWholeLine(out, line)
	}
	behind := bytes.TrimSpace(line[key:])
	if len(bytes.Trim(behind, "=")) == 0 {
		encoded := line[key-1] == '=' && (only || !isVariable(line[:key-1]))
		if m.prevMaskedWhole || len(behind) > 0 || key > 64 || encoded {
			return m.maskWholeLine(out, line) // the end of something in base64
		}
		return append(out, line...)
	}
	m.prevMaskedWhole, m.afterUnparsed = false, false
	for line[key] == ' ' || line[key] == '\t' {
		key++
	}
	out = append(out, line[:key]...)
	return append(out, maskedValue...)
}

// maskWholeLine appends *** to out instead of line, of which no part is known
// to be harmless. A blank line stays.
func (m *masker) maskWholeLine(out, line []byte) []byte {
	m.prevMaskedWhole = true
	if len(bytes.TrimSpace(line)) == 0 {
		return append(out, line...)
	}
	return append(out, maskedValue...)
}

// hasLineBreak reports whether a line has a character that ends lines for some
// programs: VT, FF, FS, GS, RS, NEL, LS, PS. Other control characters count,
// too, except the tab.
func hasLineBreak(line []byte) bool {
	control := func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
	return bytes.IndexFunc(line, control) >= 0 || bytes.ContainsAny(line, "\u0085\u2028\u2029") || bytes.IndexByte(line, 0x85) >= 0
}

// isPendingValue reports whether a line is the value, or a part of it, of a line "key:"
// before it. Entries of a mapping are none. It updates m.pendingIndent. key is the offset
// after the key and its separator, -1 for a line without one; comment says that the line
// is a comment.
func (m *masker) isPendingValue(line []byte, key int, comment bool) bool {
	trimmed := bytes.TrimSpace(line)
	if len(trimmed) == 0 || comment {
		return false
	}
	at := m.pendingIndent
	m.pendingIndent = -1
	colon := key >= 0 && line[key-1] == ':'
	behind := trimmed
	if key >= 0 {
		behind = bytes.TrimSpace(line[key:])
	}
	entry := colon && (key == len(line) || line[key] == ' ' || line[key] == '\t')
	if at >= 0 && !entry {
		if indentWidth(line) > at {
			m.pendingIndent = at
			return true
		}
		if key >= 0 && len(behind) == 0 || len(trimmed) > 2 && trimmed[0] == '[' {
			return true
		}
	}
	if colon && (len(behind) == 0 || behind[0] == '#') {
		m.pendingIndent = indentWidth(line)
	}
	return false
}

// isSection reports whether a line is the head of a section of an INI file.
func isSection(line []byte) bool {
	line = bytes.TrimRight(line, " \t")
	return sectionHead().Match(line) && len(line) <= 64
}

var (
	// sectionHead matches the head of a section of an INI file: [name].
	sectionHead = lazyregexp.New(`^\[[A-Za-z_][^"'=:,\[\]]*\]$`)
	// variableName matches the names of variables, and separated words in one case.
	// What else ends in an = may be a value in base64 or base32.
	variableName = lazyregexp.New(`^([A-Z][A-Z0-9]{0,14}|[a-z][a-z0-9]{0,14}|[A-Za-z][a-zA-Z]{0,14}|([A-Z0-9]+[_.-])+[A-Z0-9]+|([a-z0-9]+[_.-])+[a-z0-9]+)$`)
	// npmKey matches the keys of .npmrc that are hosts and scopes.
	npmKey = lazyregexp.New(`^(//[^\s=@]+/:[A-Za-z_-]+|@[A-Za-z0-9._~-]+:registry)[ \t]*=`)
)

// isVariable reports whether text that ends before an = is the name of a
// variable.
func isVariable(text []byte) bool {
	text = bytes.TrimLeft(text, " \t#;")
	text = bytes.TrimSpace(bytes.TrimPrefix(text, []byte("export ")))
	return variableName().Match(text)
}

// keyEnd returns where the value of a line begins, just behind its = or :, or
// -1 when the line does not begin with a name. Comments are looked into: a
// value that was commented out is often still a secret.
func keyEnd(line []byte) int {
	i := 0
	for i < len(line) && bytes.IndexByte([]byte(" \t#;"), line[i]) >= 0 {
		i++
	}
	if rest, ok := bytes.CutPrefix(line[i:], []byte("export ")); ok {
		i = len(line) - len(rest)
	}
	start := i
	for i < len(line) && isKeyByte(line[i]) {
		i++
	}
	// npm's keys are host names: //registry.example.com/:_authToken=…
	if match := npmKey().Find(line[start:]); match != nil {
		return start + len(match)
	}
	if i == start || !isQuotedWhole(line[start:i]) {
		return -1
	}
	for i < len(line) && (line[i] == ' ' || line[i] == '\t') {
		i++
	}
	if i < len(line) && (line[i] == '=' || line[i] == ':') {
		return i + 1
	}
	return -1
}

// isQuotedWhole reports whether a name has no quotes except one pair around the
// whole.
func isQuotedWhole(name []byte) bool {
	if q := name[0]; len(name) > 1 && (q == '"' || q == '\'') && name[len(name)-1] == q {
		name = name[1 : len(name)-1]
	}
	return !bytes.ContainsAny(name, `"'`)
}

// isKeyByte reports whether c may be part of a name, which may have quotes and
// brackets.
func isKeyByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		c == '_' || c == '-' || c == '.' || c == '"' || c == '\'' || c == '[' || c == ']'
}

// maskURLs appends line, a comment, to out with the user and password of URLs
// masked.
func maskURLs(out, line []byte) []byte {
	for {
		i := bytes.Index(line, []byte("://"))
		if i < 0 {
			return append(out, line...)
		}
		i += len("://")
		out = append(out, line[:i]...)
		line = line[i:]
		host := bytes.IndexAny(line, " \t/?#\"'<>")
		if host < 0 {
			host = len(line)
		}
		if at := bytes.LastIndexByte(line[:host], '@'); at >= 0 {
			out = append(out, maskedValue...)
			line = line[at:]
		}
	}
}
