package dialect

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// parseJSON parses JSON with comments and trailing commas, as in the settings of editors.
// Other errors are syntax errors.
func parseJSON(text string) (*node, error) { return (&jsonParser{text: text, line: 1}).parse() }

// parse returns the only value of the text. It returns a syntax error for text after
// it.
func (p *jsonParser) parse() (*node, error) {
	n, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if err := p.space(); err != nil {
		return nil, err
	}
	if p.at < len(p.text) {
		return nil, syntax(p.line, "text after the end of the JSON value")
	}
	return n, nil
}

// jsonParser parses JSON with comments and trailing commas.
type jsonParser struct {
	text  string
	at    int
	line  int
	nodes int

	passesOver func(path []string) bool // members that are only read over; nil: none
	path       []string                 // of the member being read
	over       bool                     // it is one of them
}

// space skips white space and comments.
func (p *jsonParser) space() error {
	for p.at < len(p.text) {
		switch rest := p.text[p.at:]; {
		case rest[0] == '\n':
			p.line++
			p.at++
		case rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\r':
			p.at++
		case strings.HasPrefix(rest, "//"):
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			p.at += end
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				return syntax(p.line, "unclosed comment")
			}
			p.line += strings.Count(rest[:end+4], "\n")
			p.at += end + 4
		default:
			return nil
		}
	}
	return nil
}

// peek returns the next byte that is not space; 0 at the end.
func (p *jsonParser) peek() (byte, error) {
	if err := p.space(); err != nil {
		return 0, err
	}
	if p.at >= len(p.text) {
		return 0, nil
	}
	return p.text[p.at], nil
}

// value parses a value at the current position. It returns a syntax error above maxNodes
// or maxDepth.
func (p *jsonParser) value(depth int) (*node, error) {
	c, err := p.peek()
	if err != nil {
		return nil, err
	}
	if !p.over {
		p.nodes++
	}
	if p.nodes > maxNodes || depth > maxDepth {
		return nil, syntax(p.line, "too large or nested too deep for a configuration")
	}
	n := &node{line: p.line}
	switch c {
	case '{':
		return n, p.object(n, depth)
	case '[':
		return n, p.array(n, depth)
	case '"':
		n.kind = textNode
		n.text, err = p.str()
		return n, err
	case 0:
		return nil, syntax(p.line, "the JSON ends before it is complete")
	}
	word := p.text[p.at:]
	if end := strings.IndexFunc(word, func(r rune) bool { return strings.ContainsRune(" \t\r\n,:[]{}\"/", r) }); end >= 0 {
		word = word[:end]
	}
	switch {
	case word == "null":
	case word == "true" || word == "false":
		n.kind = boolNode
	case json.Valid([]byte(word)):
		n.kind = numberNode
	default:
		return nil, syntax(p.line, "a value is neither in quotes nor a number, true, false or null")
	}
	p.at += len(word)
	n.text = word
	return n, nil
}

// str parses a string at its opening quote.
func (p *jsonParser) str() (string, error) {
	for end := p.at + 1; end < len(p.text); end++ {
		switch p.text[end] {
		case '\\':
			end++
		case '\n':
			return "", syntax(p.line, "unclosed string on this line")
		case '"':
			raw := p.text[p.at : end+1]
			var s string
			if !utf8.ValidString(raw) || json.Unmarshal([]byte(raw), &s) != nil {
				return "", syntax(p.line, `a string has a bad escape or character; write \\ for a backslash`)
			}
			p.at = end + 1
			return s, nil
		}
	}
	return "", syntax(p.line, "unclosed string")
}

// array parses the rest of an array after [ into n.
func (p *jsonParser) array(n *node, depth int) error {
	n.kind = listNode
	for p.at++; ; {
		c, err := p.peek()
		if err != nil {
			return err
		}
		if c == ']' {
			p.at++
			return nil
		}
		item, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		if !p.over {
			n.items = append(n.items, item)
		}
		if err := p.comma(']', "list"); err != nil {
			return err
		}
	}
}

// object parses the rest of an object after { into n. A repeated key is a syntax error.
func (p *jsonParser) object(n *node, depth int) error {
	n.kind = mapNode
	seen := map[string]bool{}
	for p.at++; ; {
		c, err := p.peek()
		if err != nil {
			return err
		}
		switch c {
		case '}':
			p.at++
			return nil
		case '"':
		default:
			return syntax(p.line, `a name in double quotes is missing here`)
		}
		line := p.line
		key, err := p.str()
		if err != nil {
			return err
		}
		if seen[key] {
			return syntax(line, "%s appears twice", show(key))
		}
		seen[key] = !p.over
		if c, err = p.peek(); err != nil {
			return err
		}
		if c != ':' {
			return syntax(p.line, "a colon is missing after a name")
		}
		p.at++
		v, err := p.member(key, depth+1)
		if err != nil {
			return err
		}
		if !p.over {
			n.pairs = append(n.pairs, pair{key, line, v})
		}
		if err := p.comma('}', "object"); err != nil {
			return err
		}
	}
}

// member reads the value of a member of an object.
func (p *jsonParser) member(key string, depth int) (*node, error) {
	if p.over || p.passesOver == nil {
		return p.value(depth)
	}
	p.path = append(p.path, key)
	defer func() { p.path = p.path[:len(p.path)-1] }()
	if !p.passesOver(p.path) {
		return p.value(depth)
	}
	p.over = true
	defer func() { p.over = false }()
	line := p.line
	_, err := p.value(depth)
	return &node{line: line}, err
}

// comma skips a comma; it does nothing before the byte end.
func (p *jsonParser) comma(end byte, of string) error {
	c, err := p.peek()
	switch {
	case err != nil:
		return err
	case c == ',':
		p.at++
	case c == 0:
		return syntax(p.line, "unclosed %s", of)
	case c != end:
		return syntax(p.line, "a comma is missing, on this line or the one before")
	}
	return nil
}

// show returns a name from a file in a form that is short and printable, for a message.
func show(name string) string {
	const most = 60
	runes := []rune(strings.ToValidUTF8(name, "?"))
	if len(runes) > most {
		runes = append(runes[:most:most], '…')
	}
	if slices.ContainsFunc(runes, func(r rune) bool {
		return r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
	}) || len(runes) == 0 {
		raw, _ := json.Marshal(string(runes)) //nolint:errcheck // a string
		return string(raw)
	}
	return string(runes)
}
