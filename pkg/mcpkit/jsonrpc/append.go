package jsonrpc

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf8"
)

// AppendRequest appends a request, without a final newline. Nil params are
// omitted.
func AppendRequest(dst []byte, id json.RawMessage, method string, params json.RawMessage) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = append(dst, id...)
	return appendMethod(append(dst, ','), method, params)
}

// AppendNotification appends a notification.
func AppendNotification(dst []byte, method string, params json.RawMessage) []byte {
	return appendMethod(append(dst, `{"jsonrpc":"2.0",`...), method, params)
}

func appendMethod(dst []byte, method string, params json.RawMessage) []byte {
	dst = append(dst, `"method":`...)
	dst = AppendString(dst, method)
	if params != nil {
		dst = append(dst, `,"params":`...)
		dst = append(dst, params...)
	}
	return append(dst, '}')
}

// AppendResult appends a response with a result.
func AppendResult(dst []byte, id, result json.RawMessage) []byte {
	return append(append(AppendResultHead(dst, id), result...), '}')
}

// AppendResultHead appends the part of a response before its result. Append the
// result and a closing brace.
func AppendResultHead(dst []byte, id json.RawMessage) []byte {
	return append(appendID(dst, id), `,"result":`...)
}

// AppendErrorObject appends a response with an error object, unchanged.
func AppendErrorObject(dst []byte, id, object json.RawMessage) []byte {
	dst = appendID(dst, id)
	dst = append(dst, `,"error":`...)
	dst = append(dst, object...)
	return append(dst, '}')
}

// AppendError appends a response with an error. A nil id is sent as null.
func AppendError(dst []byte, id json.RawMessage, code int, message string) []byte {
	object := append([]byte(nil), `{"code":`...)
	object = appendInt(object, code)
	object = append(object, `,"message":`...)
	object = AppendString(object, message)
	return AppendErrorObject(dst, id, append(object, '}'))
}

func appendID(dst []byte, id json.RawMessage) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	if id == nil {
		return append(dst, "null"...)
	}
	return append(dst, id...)
}

// AppendString appends s as a JSON string. Unlike encoding/json by default, it
// does not escape < > &.
func AppendString(dst []byte, s string) []byte {
	dst = append(slices.Grow(dst, len(s)+len(s)/16+2), '"')
	plain := 0 // s[plain:i] needs no escape
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if i++; c < ' ' || c == '"' || c == '\\' {
				dst = appendEscape(append(dst, s[plain:i-1]...), c)
				plain = i
			}
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		if escape := needsEscape(r, size); escape != "" {
			dst = append(append(dst, s[plain:i-size]...), escape...)
			plain = i
		}
	}
	return append(append(dst, s[plain:]...), '"')
}

// appendEscape appends the escape of an ASCII character that a JSON string
// cannot hold.
func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, `\n`...)
	case '\t':
		return append(dst, `\t`...)
	case '\r':
		return append(dst, `\r`...)
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	}
	const hex = "0123456789abcdef"
	return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

// needsEscape returns the escape of a non-ASCII character, or "" if it needs
// none. It escapes bytes that are not UTF-8, and the two line ends that
// JavaScript strings cannot hold.
func needsEscape(r rune, size int) string {
	switch {
	case r == utf8.RuneError && size == 1:
		return `\ufffd`
	case r == '\u2028':
		return `\u2028`
	case r == '\u2029':
		return `\u2029`
	}
	return ""
}

func appendInt(dst []byte, n int) []byte {
	raw, err := json.Marshal(n)
	if err != nil { // an int always encodes
		return append(dst, '0')
	}
	return append(dst, raw...)
}

// Marshal is json.Marshal without the escapes for < > &: source files often
// have them, and each would take six bytes.
func Marshal(v any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// SetMember returns object, a valid JSON object, with a member set to value: it
// replaces the member of that name or appends a new one. Other bytes stay
// unchanged.
func SetMember(object []byte, name string, value json.RawMessage) ([]byte, error) {
	members, err := Members(object)
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		if m.Name == name {
			return slices.Concat(object[:m.Start], value, object[m.End:]), nil
		}
	}
	end := bytes.LastIndexByte(object, '}')
	out := append(make([]byte, 0, len(object)+len(name)+len(value)+4), object[:end]...)
	if len(members) > 0 {
		out = append(out, ',')
	}
	out = AppendString(out, name)
	out = append(out, ':')
	out = append(out, value...)
	return append(out, object[end:]...), nil
}
