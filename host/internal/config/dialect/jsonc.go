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
	n, err := p.parseValue(0)
	if err != nil {
		return nil, err
	}
	if err := p.skipSpace(); err != nil {
		return nil, err
	}
	if p.at < len(p.text) {
		return nil, newSyntaxError(p.line, "text after the end of the JSON value")
	}
	return n, nil
}

// jsonParser parses JSON with comments and trailing commas.
type jsonParser struct {
	text  string
	at    int
	line  int
	nodes int

	skips    func(path []string) bool // members that are only read over; nil: none
	path     []string                 // of the member being read
	skipping bool                     // it is one of them
}

// skipSpace skips white space and comments. It returns an error for an unclosed comment.
func (p *jsonParser) skipSpace() error {
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
				return newSyntaxError(p.line, "unclosed comment")
			}
			p.line += strings.Count(rest[:end+4], "\n")
			p.at += end + 4
		default:
			return nil
		}
	}
	return nil
}

// peekToken skips space and comments and returns the next byte, without taking it. next is 0
// at the end of the text. It returns a syntax error for a comment that is not closed.
func (p *jsonParser) peekToken() (next byte, err error) {
	if err := p.skipSpace(); err != nil {
		return 0, err
	}
	if p.at >= len(p.text) {
		return 0, nil
	}
	return p.text[p.at], nil
}

// parseValue parses a value at the current position. It returns a syntax error above maxNodes
// or maxDepth.
func (p *jsonParser) parseValue(depth int) (*node, error) {
	c, err := p.peekToken()
	if err != nil {
		return nil, err
	}
	if !p.skipping {
		p.nodes++
	}
	if p.nodes > maxNodes || depth > maxDepth {
		return nil, newSyntaxError(p.line, "too large or nested too deep for a configuration")
	}
	n := &node{line: p.line}
	switch c {
	case '{':
		return n, p.parseObject(n, depth)
	case '[':
		return n, p.parseArray(n, depth)
	case '"':
		n.kind = textNode
		n.text, err = p.parseString()
		return n, err
	case 0:
		return nil, newSyntaxError(p.line, "the JSON ends before it is complete")
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
		return nil, newSyntaxError(p.line, "a value is neither in quotes nor a number, true, false or null")
	}
	p.at += len(word)
	n.text = word
	return n, nil
}

// parseString parses a string at its opening quote, and returns an error for an unclosed or
// invalid one.
func (p *jsonParser) parseString() (string, error) {
	for end := p.at + 1; end < len(p.text); end++ {
		switch p.text[end] {
		case '\\':
			end++
		case '\n':
			return "", newSyntaxError(p.line, "unclosed string on this line")
		case '"':
			raw := p.text[p.at : end+1]
			var s string
			if !utf8.ValidString(raw) || json.Unmarshal([]byte(raw), &s) != nil {
				return "", newSyntaxError(p.line, `a string has a bad escape or character; write \\ for a backslash`)
			}
			p.at = end + 1
			return s, nil
		}
	}
	return "", newSyntaxError(p.line, "unclosed string")
}

// parseArray parses an array, at its [, into n.
func (p *jsonParser) parseArray(n *node, depth int) error {
	n.kind = listNode
	for p.at++; ; {
		c, err := p.peekToken()
		if err != nil {
			return err
		}
		if c == ']' {
			p.at++
			return nil
		}
		item, err := p.parseValue(depth + 1)
		if err != nil {
			return err
		}
		if !p.skipping {
			n.items = append(n.items, item)
		}
		if err := p.skipComma(']', "list"); err != nil {
			return err
		}
	}
}

// parseObject parses the rest of an object after { into n. A repeated key is a syntax error.
func (p *jsonParser) parseObject(n *node, depth int) error {
	n.kind = mapNode
	seen := map[string]bool{}
	for p.at++; ; {
		c, err := p.peekToken()
		if err != nil {
			return err
		}
		switch c {
		case '}':
			p.at++
			return nil
		case '"':
		default:
			return newSyntaxError(p.line, `a name in double quotes is missing here`)
		}
		line := p.line
		key, err := p.parseString()
		if err != nil {
			return err
		}
		if seen[key] {
			return newSyntaxError(line, "%s appears twice", shownName(key))
		}
		seen[key] = !p.skipping
		if c, err = p.peekToken(); err != nil {
			return err
		}
		if c != ':' {
			return newSyntaxError(p.line, "a colon is missing after a name")
		}
		p.at++
		v, err := p.parseMember(key, depth+1)
		if err != nil {
			return err
		}
		if !p.skipping {
			n.pairs = append(n.pairs, pair{key, line, v})
		}
		if err := p.skipComma('}', "object"); err != nil {
			return err
		}
	}
}

// parseMember reads the value of a member of an object. If p.skips says so, it skips the
// value and returns a null node.
func (p *jsonParser) parseMember(key string, depth int) (*node, error) {
	if p.skipping || p.skips == nil {
		return p.parseValue(depth)
	}
	p.path = append(p.path, key)
	defer func() { p.path = p.path[:len(p.path)-1] }()
	if !p.skips(p.path) {
		return p.parseValue(depth)
	}
	p.skipping = true
	defer func() { p.skipping = false }()
	line := p.line
	_, err := p.parseValue(depth)
	return &node{line: line}, err
}

// skipComma skips a comma; before the byte end, which closes the value named of, it skips
// nothing. It returns an error for anything else.
func (p *jsonParser) skipComma(end byte, of string) error {
	c, err := p.peekToken()
	switch {
	case err != nil:
		return err
	case c == ',':
		p.at++
	case c == 0:
		return newSyntaxError(p.line, "unclosed %s", of)
	case c != end:
		return newSyntaxError(p.line, "a comma is missing, on this line or the one before")
	}
	return nil
}

// shownName returns a name from a file in a form that is short and printable, for a message.
func shownName(name string) string {
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
