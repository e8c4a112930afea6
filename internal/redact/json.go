package redact

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// hiddenText replaces a credential.
const hiddenText = "***"

// maxTextBytes is the number of bytes shown of a text, maxNameBytes that of a
// member's name.
const (
	maxTextBytes = 512
	maxNameBytes = 128
)

// AppendJSON appends a JSON value to dst, with credentials hidden and long
// texts cut. It appends about limit bytes: further members and items are
// omitted and counted. The result is valid JSON; input that is not JSON becomes
// null. The values of the members plainNames are not hidden because of their
// name.
func AppendJSON(dst []byte, raw json.RawMessage, limit int, plainNames ...string) []byte {
	r := redactor{in: raw, maxLen: len(dst) + limit, plainNames: plainNames}
	begin := len(dst)
	dst, ok := r.copyValue(dst, 0)
	if !ok {
		return append(dst[:begin], "null"...)
	}
	return dst
}

// redactor copies a JSON value. Its methods read at pos. Those that return a
// bool return false if the JSON is invalid.
type redactor struct {
	in     []byte
	pos    int
	maxLen int // length of the output after which members and items are omitted

	plainNames []string // names whose values are not secret here
}

// isSecret reports whether the value of the member name must be hidden.
func (r *redactor) isSecret(name string) bool {
	return IsSecretName(name) && !isOneOf(name, r.plainNames)
}

// maxDepth bounds the nesting of the values that are copied.
const maxDepth = 64

// skipSpace moves pos over white space.
func (r *redactor) skipSpace() {
	for r.pos < len(r.in) && (r.in[r.pos] == ' ' || r.in[r.pos] == '\n' || r.in[r.pos] == '\t' || r.in[r.pos] == '\r') {
		r.pos++
	}
}

// peek skips white space and returns the next byte, without reading it; 0 at
// the end.
func (r *redactor) peek() byte {
	r.skipSpace()
	if r.pos < len(r.in) {
		return r.in[r.pos]
	}
	return 0
}

// copyValue appends the next value, redacted, to dst. depth is the number of containers
// around it. It returns false if the value is invalid or nested too deeply.
func (r *redactor) copyValue(dst []byte, depth int) ([]byte, bool) {
	if depth > maxDepth {
		return dst, false
	}
	switch r.peek() {
	case '{':
		return r.copyContainer(dst, '}', depth)
	case '[':
		return r.copyContainer(dst, ']', depth)
	case '"':
		begin := r.pos
		text, ok := r.readString()
		return appendRedacted(dst, text, r.pos-begin-2), ok
	case 0:
		return dst, false
	}
	begin := r.pos
	r.skipScalar()
	word := r.in[begin:r.pos]
	switch {
	case !json.Valid(word):
		return dst, false
	case len(word) > maxTextBytes:
		return AppendJSONString(dst, string(word)), true
	}
	return append(dst, word...), true
}

// skipScalar moves pos over a number, true, false, null, or other text up to a
// delimiter.
func (r *redactor) skipScalar() {
	for r.pos < len(r.in) && !strings.ContainsRune(",]} \n\t\r:", rune(r.in[r.pos])) {
		r.pos++
	}
}

// copyContainer appends the next object or array, redacted, to dst. end is its last
// byte. Once dst has maxLen bytes, it only counts members and items. It returns false
// if the container is invalid.
func (r *redactor) copyContainer(dst []byte, end byte, depth int) ([]byte, bool) {
	dst = append(dst, r.in[r.pos])
	r.pos++
	for n, left := 0, 0; ; {
		if r.peek() == end {
			r.pos++
			return appendOmitted(dst, end, n, left), true
		}
		if n+left > 0 {
			if r.peek() != ',' {
				return dst, false
			}
			r.pos++
		}
		if len(dst) >= r.maxLen { // count the rest
			if end == '}' && (!r.skipValue(0) || r.peek() != ':') {
				return dst, false
			}
			if end == '}' {
				r.pos++
			}
			if !r.skipValue(depth + 1) {
				return dst, false
			}
			left++
			continue
		}
		if n > 0 {
			dst = append(dst, ',')
		}
		n++
		var ok bool
		if end == '}' {
			dst, ok = r.copyMember(dst, depth)
		} else {
			dst, ok = r.copyValue(dst, depth+1)
		}
		if !ok {
			return dst, false
		}
	}
}

// appendOmitted appends the end of a container and, before it, the number of omitted
// members or items. n is the number of those before. left is the number omitted, 0 for
// none.
func appendOmitted(dst []byte, end byte, n, left int) []byte {
	if left > 0 {
		if n > 0 {
			dst = append(dst, ',')
		}
		if end == '}' {
			dst = append(dst, `"…":`...)
		}
		dst = append(strconv.AppendInt(append(dst, `"`...), int64(left), 10), ` more"`...)
	}
	return append(dst, end)
}

// copyMember appends the next member of an object to dst. It hides the value if the
// name belongs to a credential. It returns false if the member is invalid.
func (r *redactor) copyMember(dst []byte, depth int) ([]byte, bool) {
	if r.peek() != '"' {
		return dst, false
	}
	name, ok := r.readString()
	if !ok || r.peek() != ':' {
		return dst, false
	}
	r.pos++
	if len(name) > maxNameBytes {
		name = textfmt.Head(name, maxNameBytes) + "…"
	}
	dst = append(jsonrpc.AppendString(dst, name), ':')
	if !r.isSecret(name) {
		return r.copyValue(dst, depth+1)
	}
	switch r.peek() {
	case 't', 'f', 'n': // contains no secret
		return r.copyValue(dst, depth+1)
	}
	return append(dst, `"`+hiddenText+`"`...), r.skipValue(depth + 1)
}

// skipValue skips the next value, which is depth levels deep. It returns false
// if the value is invalid or nested too deeply.
func (r *redactor) skipValue(depth int) bool {
	open := 0
	for {
		switch r.peek() {
		case 0:
			return false
		case '"':
			if _, ok := r.skipString(); !ok {
				return false
			}
		case '{', '[':
			open++
			r.pos++
		case '}', ']':
			open--
			r.pos++
		case ',', ':':
			if open == 0 {
				return false
			}
			r.pos++
		default:
			r.skipScalar()
		}
		if open <= 0 {
			return open == 0
		}
		if open+depth > 10*maxDepth {
			return false
		}
	}
}

// skipString skips a string and returns its text with the quotes. It returns false if
// the string has no end. It does not check the escapes.
func (r *redactor) skipString() ([]byte, bool) {
	begin := r.pos
	for r.pos++; r.pos < len(r.in); r.pos++ {
		switch r.in[r.pos] {
		case '\\':
			r.pos++
		case '"':
			r.pos++
			return r.in[begin:r.pos], true
		}
	}
	return nil, false
}

// readString returns the next string, decoded; of a long string the beginning. It
// returns false if the string has no end, or what it decodes is invalid.
func (r *redactor) readString() (string, bool) {
	raw, ok := r.skipString()
	if !ok {
		return "", false
	}
	if enough := 8 * maxTextBytes; len(raw) > enough+12 {
		end := 1
		for end < enough {
			switch {
			case raw[end] == '\\' && raw[end+1] == 'u':
				end += 6
			case raw[end] == '\\':
				end += 2
			default:
				end++
			}
		}
		for !utf8.RuneStart(raw[end]) {
			end--
		}
		raw = append(append([]byte(nil), raw[:end]...), '"')
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return "", false
	}
	return text, true
}

// AppendJSONString appends text to dst as a JSON string, with credentials hidden, cut to
// maxTextBytes; "… (of N bytes)" follows a cut.
func AppendJSONString(dst []byte, text string) []byte { return appendRedacted(dst, text, len(text)) }

// appendRedacted appends as AppendJSONString does. text is the beginning of a text of
// length bytes.
func appendRedacted(dst []byte, text string, length int) []byte {
	shown := Text(text)
	if len(shown) > maxTextBytes || len(text) >= 8*maxTextBytes && length > len(text) {
		shown = fmt.Sprintf("%s… (of %d bytes)", textfmt.Head(shown, maxTextBytes), length)
	}
	return jsonrpc.AppendString(dst, shown)
}
