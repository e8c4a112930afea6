package sandbox

import "bytes"

// mask stands for a value that is not shown.
const mask = "***"

// MaskSecrets replaces each value of a settings file (.env, .npmrc) by ***,
// keeping names, comments, empty values and every line end, so that line
// numbers stay true. A line that is not understood is masked whole. It needs
// the whole text: a value may span lines.
func MaskSecrets(text []byte) []byte {
	out := make([]byte, 0, len(text))
	var m masker
	for len(text) > 0 {
		line, rest := text, []byte(nil)
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			line, rest = text[:i], text[i:]
		}
		end := len(line)
		for end > 0 && line[end-1] == '\r' {
			end--
		}
		out = m.line(out, line[:end], rest)
		out = append(out, line[end:]...)
		if len(rest) > 0 {
			out = append(out, '\n')
			rest = rest[1:]
		}
		text = rest
	}
	return out
}

// masker carries what one line leaves open for the next.
type masker struct {
	quote   byte // a quoted value goes on until this
	pem     bool // between BEGIN and END
	unknown bool // the line before was not understood
	carried bool // the line before ended in a backslash
}

// line appends a masked line, given without its end; rest is the text behind
// it.
func (m *masker) line(out, line, rest []byte) []byte {
	trimmed := bytes.TrimSpace(line)
	carried := m.carried
	m.carried = bytes.HasSuffix(trimmed, []byte(`\`))
	switch {
	case m.quote != 0:
		if closes(line, m.quote) {
			m.quote = 0
		}
		return m.whole(out, line)
	case m.pem:
		m.pem = !bytes.Contains(line, []byte("-----END "))
		return m.whole(out, line)
	case bytes.HasPrefix(trimmed, []byte("-----BEGIN ")):
		m.pem = !bytes.Contains(line, []byte("-----END "))
		return m.whole(out, line)
	case carried:
		return m.whole(out, line)
	case len(trimmed) == 0 || structural(trimmed):
		return append(out, line...)
	}
	comment := trimmed[0] == '#' || trimmed[0] == ';'
	key := keyEnd(line)
	if key < 0 {
		if comment {
			m.unknown = false
			return maskURLs(out, line)
		}
		return m.whole(out, line)
	}
	value := bytes.TrimSpace(line[key:])
	if len(bytes.Trim(value, "=")) == 0 {
		if m.unknown || len(value) > 0 || key > 64 {
			return m.whole(out, line) // the end of something in base64
		}
		return append(out, line...)
	}
	m.unknown = false
	if !comment {
		m.open(value, rest)
	}
	for line[key] == ' ' || line[key] == '\t' {
		key++
	}
	out = append(out, line[:key]...)
	return append(out, mask...)
}

// whole masks a line of which nothing is known to be harmless.
func (m *masker) whole(out, line []byte) []byte {
	m.unknown = true
	if len(bytes.TrimSpace(line)) == 0 {
		return append(out, line...)
	}
	return append(out, mask...)
}

// open notes that a value goes on over the next lines: a quote that is closed
// on one of them (one that never is closed is an ordinary character), or a
// PEM block without quotes.
func (m *masker) open(value, rest []byte) {
	if c := value[0]; c == '"' || c == '\'' || c == '`' {
		if !closes(value[1:], c) && closes(rest, c) {
			m.quote = c
		}
		return
	}
	m.pem = bytes.Contains(value, []byte("-----BEGIN ")) && !bytes.Contains(value, []byte("-----END "))
}

// closes reports whether text holds the quote, not escaped.
func closes(text []byte, quote byte) bool {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case quote:
			return true
		}
	}
	return false
}

// structural reports whether a line is only brackets, as in JSON, or an INI
// section.
func structural(trimmed []byte) bool {
	if len(bytes.Trim(trimmed, "{}[](),;")) == 0 {
		return true
	}
	return trimmed[0] == '[' && trimmed[len(trimmed)-1] == ']' && !bytes.ContainsAny(trimmed, `"'=:,`) && len(trimmed) <= 64
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
	for i < len(line) && keyByte(line[i]) {
		i++
	}
	// npm's keys are host names: //registry.example.com/:_authToken=…
	if bytes.HasPrefix(line[start:], []byte("//")) || bytes.HasPrefix(line[start:], []byte("@")) {
		if eq := bytes.IndexByte(line[start:], '='); eq > 0 {
			return start + eq + 1
		}
	}
	if i == start {
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

func keyByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		c == '_' || c == '-' || c == '.' || c == '"' || c == '\'' || c == '[' || c == ']'
}

// maskURLs masks the user and password of addresses in a comment.
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
			out = append(out, mask...)
			line = line[at:]
		}
	}
}
