package gitfile

import (
	"bytes"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
)

// parser reads a file as git's config.c does: by characters, so that a
// section and a key may stand on one line.
type parser struct {
	rest                []byte
	section, key, value string
	noValue             bool // the key stands alone, without "="
	malformed           bool
	// afterKey and behind are the numbers of bytes that follow the setting's key, and
	// its value: up to the comment or the line end.
	afterKey, afterValue int
}

// newParser returns a parser at the start of a file, after a UTF-8 byte order mark.
func newParser(config []byte) *parser {
	return &parser{rest: bytes.TrimPrefix(config, []byte("\xef\xbb\xbf"))}
}

// readChar returns the next character, 0 at the end; CRLF is one line end.
func (p *parser) readChar() byte {
	if len(p.rest) == 0 {
		return 0
	}
	if bytes.HasPrefix(p.rest, []byte("\r\n")) {
		p.rest = p.rest[1:]
	}
	c := p.rest[0]
	p.rest = p.rest[1:]
	if c == 0 {
		p.malformed = true
	}
	return c
}

// next reads the next setting into p.section, p.key, p.value and p.noValue. It returns
// false at the end of the file, and with p.malformed set at text that git does not
// understand.
func (p *parser) next() bool {
	for len(p.rest) > 0 && !p.malformed {
		switch c := p.readChar(); {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f':
		case c == '#' || c == ';':
			if end := bytes.IndexByte(p.rest, '\n'); end >= 0 {
				p.rest = p.rest[end:]
			} else {
				p.rest = nil
			}
		case c == '[':
			p.readSection()
		case pathname.Lower(c) >= 'a' && pathname.Lower(c) <= 'z':
			p.afterKey = len(p.rest) + 1
			p.readSetting(c)
			return !p.malformed
		default:
			p.malformed = true
		}
	}
	return false
}

// readSection reads the section between brackets, after the opening one, and sets
// p.section.
func (p *parser) readSection() {
	var name []byte
	quoted := false
	for {
		c := p.readChar()
		switch {
		case c == 0 || c == '\n':
			p.malformed = true
			return
		case c == ']' && !quoted:
			p.section = string(name)
			return
		case c == '"':
			quoted = !quoted
			if quoted {
				name = append(name, '.')
			}
		case quoted && c == '\\':
			name = append(name, p.readChar())
		case quoted:
			name = append(name, c)
		case c != ' ' && c != '\t':
			name = append(name, pathname.Lower(c))
		}
	}
}

// readSetting reads a key that begins with c, and its value.
func (p *parser) readSetting(c byte) {
	key := []byte{pathname.Lower(c)}
	for c = p.readChar(); pathname.Lower(c) >= 'a' && pathname.Lower(c) <= 'z' || c >= '0' && c <= '9' || c == '-'; c = p.readChar() {
		key = append(key, pathname.Lower(c))
	}
	for c == ' ' || c == '\t' {
		c = p.readChar()
	}
	p.key, p.value, p.noValue = string(key), "", c != '='
	switch c {
	case '=':
		p.readValue()
	case 0, '\n':
		p.endValue(c)
	default:
		p.malformed = true
	}
}

// endValue notes that a value ended at c, a line feed or the end of the file.
func (p *parser) endValue(c byte) {
	p.afterValue = len(p.rest)
	if c == '\n' {
		p.afterValue++
	}
}

// readValue reads the value of a setting, after the equals sign, up to the end of its
// last line. It sets p.malformed for a value that git refuses.
func (p *parser) readValue() {
	var value []byte
	solid := 0 // length up to which trailing white space is kept
	quoted, commented := false, false
	for {
		c := p.readChar()
		switch {
		case c == 0 || c == '\n':
			p.malformed = p.malformed || quoted
			p.value = string(value[:solid])
			if !commented {
				p.endValue(c)
			}
			return
		case !quoted && (c == ' ' || c == '\t' || c == '\r'):
			if len(value) > 0 {
				value = append(value, c)
			}
			continue
		case c == '"':
			quoted = !quoted
		case c == '\\':
			switch c = p.readChar(); c {
			case '\n':
			case 't':
				value = append(value, '\t')
			case 'n':
				value = append(value, '\n')
			case 'b':
				value = append(value, '\b')
			case '"', '\\':
				value = append(value, c)
			default:
				p.malformed = true
			}
		case !quoted && (c == '#' || c == ';'):
			commented, p.afterValue = true, len(p.rest)+1
			if end := bytes.IndexByte(p.rest, '\n'); end >= 0 {
				p.rest = p.rest[end:]
			} else {
				p.rest = nil
			}
			continue
		default:
			value = append(value, c)
		}
		solid = len(value)
	}
}

// setting returns the setting that next has read, as "section.name.key=value".
func (p *parser) setting() string { return p.section + "." + p.key + "=" + p.value }
