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

// maxText is the number of bytes kept of a text, maxKey of a member's name.
const (
	maxText = 512
	maxKey  = 128
)

// JSON appends a JSON value with credentials hidden and long texts cut, in
// about max bytes. Members and items that do not fit are omitted and counted.
// The result is valid JSON; input that is not JSON becomes null. Members named
// in plain are not hidden because of their name.
func JSON(dst []byte, raw json.RawMessage, limit int, plain ...string) []byte {
	r := redactor{in: raw, max: len(dst) + limit, plain: plain}
	begin := len(dst)
	dst, ok := r.value(dst, 0)
	if !ok {
		return append(dst[:begin], "null"...)
	}
	return dst
}

// redactor walks over JSON; it fails if the JSON is invalid.
type redactor struct {
	in  []byte
	pos int
	max int // length of the output after which members and items are omitted

	plain []string // names whose values are not secret here
}

func (r *redactor) hides(name string) bool { return IsSecretName(name) && !equalsAny(name, r.plain) }

const maxDepth = 64

func (r *redactor) space() {
	for r.pos < len(r.in) && (r.in[r.pos] == ' ' || r.in[r.pos] == '\n' || r.in[r.pos] == '\t' || r.in[r.pos] == '\r') {
		r.pos++
	}
}

func (r *redactor) peek() byte {
	r.space()
	if r.pos < len(r.in) {
		return r.in[r.pos]
	}
	return 0
}

func (r *redactor) value(dst []byte, depth int) ([]byte, bool) {
	if depth > maxDepth {
		return dst, false
	}
	switch r.peek() {
	case '{':
		return r.container(dst, '}', depth)
	case '[':
		return r.container(dst, ']', depth)
	case '"':
		begin := r.pos
		text, ok := r.text()
		return appendCut(dst, text, r.pos-begin-2), ok
	case 0:
		return dst, false
	}
	begin := r.pos
	r.scalar()
	word := r.in[begin:r.pos]
	switch {
	case !json.Valid(word):
		return dst, false
	case len(word) > maxText:
		return AppendText(dst, string(word)), true
	}
	return append(dst, word...), true
}

func (r *redactor) scalar() {
	for r.pos < len(r.in) && !strings.ContainsRune(",]} \n\t\r:", rune(r.in[r.pos])) {
		r.pos++
	}
}

// container copies an object or an array.
func (r *redactor) container(dst []byte, end byte, depth int) ([]byte, bool) {
	dst = append(dst, r.in[r.pos])
	r.pos++
	for n, left := 0, 0; ; {
		if r.peek() == end {
			r.pos++
			return appendLeft(dst, end, n, left), true
		}
		if n+left > 0 {
			if r.peek() != ',' {
				return dst, false
			}
			r.pos++
		}
		if len(dst) >= r.max { // count the rest
			if end == '}' && (!r.skip(0) || r.peek() != ':') {
				return dst, false
			}
			if end == '}' {
				r.pos++
			}
			if !r.skip(depth + 1) {
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
			dst, ok = r.member(dst, depth)
		} else {
			dst, ok = r.value(dst, depth+1)
		}
		if !ok {
			return dst, false
		}
	}
}

// appendLeft ends a container with the number of omitted members or items.
func appendLeft(dst []byte, end byte, n, left int) []byte {
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

func (r *redactor) member(dst []byte, depth int) ([]byte, bool) {
	if r.peek() != '"' {
		return dst, false
	}
	name, ok := r.text()
	if !ok || r.peek() != ':' {
		return dst, false
	}
	r.pos++
	if len(name) > maxKey {
		name = textfmt.Head(name, maxKey) + "…"
	}
	dst = append(jsonrpc.AppendString(dst, name), ':')
	if !r.hides(name) {
		return r.value(dst, depth+1)
	}
	switch r.peek() {
	case 't', 'f', 'n': // contains no secret
		return r.value(dst, depth+1)
	}
	return append(dst, `"`+hiddenText+`"`...), r.skip(depth + 1)
}

// skip skips a value; false if it is invalid.
func (r *redactor) skip(depth int) bool {
	open := 0
	for {
		switch r.peek() {
		case 0:
			return false
		case '"':
			if _, ok := r.quotedString(); !ok {
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
			r.scalar()
		}
		if open <= 0 {
			return open == 0
		}
		if open+depth > 10*maxDepth {
			return false
		}
	}
}

// quotedString skips a string and returns it with its quotes; false if it has no end.
func (r *redactor) quotedString() ([]byte, bool) {
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

// text returns a decoded string; of a long string, the first part.
func (r *redactor) text() (string, bool) {
	raw, ok := r.quotedString()
	if !ok {
		return "", false
	}
	if enough := 8 * maxText; len(raw) > enough+12 {
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

// AppendText appends text as a JSON string, cut and with credentials hidden.
func AppendText(dst []byte, text string) []byte { return appendCut(dst, text, len(text)) }

// appendCut is AppendText for the beginning of a text of length bytes.
func appendCut(dst []byte, text string, length int) []byte {
	shown := Text(text)
	if len(shown) > maxText || len(text) >= 8*maxText && length > len(text) {
		shown = fmt.Sprintf("%s… (of %d bytes)", textfmt.Head(shown, maxText), length)
	}
	return jsonrpc.AppendString(dst, shown)
}
