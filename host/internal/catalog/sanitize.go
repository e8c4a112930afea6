package catalog

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// A sanitizer returns a value in the form that clients accept, or a replacement, or
// nil if none exists, and whether information was lost.
//
// Many clients, among them all that use the official TypeScript SDK, parse a list as a
// whole: one entry with an invalid member, and they have none of any server's tools.
type sanitizer func(value json.RawMessage) (fitted json.RawMessage, lost bool)

// sanitizersOf holds the sanitizers of each kind, made when they are first needed.
var sanitizersOf = func() map[call.ListKind]func() map[string]sanitizer {
	all := map[call.ListKind]func() map[string]sanitizer{}
	for _, kind := range kinds() {
		all[kind] = sync.OnceValue(func() map[string]sanitizer { return newSanitizers(kind) })
	}
	return all
}()

// newSanitizers returns the sanitizers of the members of a kind's entries, according to
// the schema of version 2025-11-25.
func newSanitizers(kind call.ListKind) map[string]sanitizer {
	all := map[string]sanitizer{
		"title": keepText, "description": keepText, "_meta": keepMembers(nil),
		"icons": keepList(keepMembers(map[string]sanitizer{"src": keepText, "mimeType": keepText, "sizes": keepList(keepText), "theme": keepWords("light", "dark")}, "src")),
	}
	switch kind {
	case call.Tools:
		all["inputSchema"], all["outputSchema"] = sanitizeInput, sanitizeOutput
		all["annotations"] = keepMembers(map[string]sanitizer{"title": keepText, "readOnlyHint": keepBool, "destructiveHint": keepBool, "idempotentHint": keepBool, "openWorldHint": keepBool})
		all["execution"] = keepMembers(map[string]sanitizer{"taskSupport": keepWords("required", "optional", "forbidden")})
	case call.Prompts:
		all["arguments"] = keepList(keepMembers(map[string]sanitizer{"name": keepText, "description": keepText, "required": keepBool}, "name"))
	default:
		all["name"], all["mimeType"], all["size"] = keepText, keepText, keepNumber
		all["annotations"] = keepMembers(map[string]sanitizer{"audience": keepList(keepWords("user", "assistant")), "priority": keepFraction, "lastModified": keepTime})
	}
	return all
}

// sanitize changes an entry so that clients can read it, and names the members of
// which information was lost. A missing required member gets the shortest valid value.
func sanitize(kind call.ListKind, definition json.RawMessage, entry []jsonrpc.Member) (json.RawMessage, []string) {
	var lost []string
	wanted := sanitizersOf[kind]()
	needs, otherwise := "name", jsonrpc.MemberOf(definition, nameMember(kind))
	if kind == call.Tools {
		needs, otherwise = "inputSchema", json.RawMessage(anyArgumentsSchema)
	}
	definition = replaceMembers(definition, entry, func(m jsonrpc.Member) json.RawMessage {
		f := wanted[m.Name]
		if f == nil {
			return m.Value
		}
		fitted, less := f(m.Value)
		if less {
			lost = append(lost, m.Name)
		}
		return fitted
	})
	if jsonrpc.MemberOf(definition, needs) == nil && otherwise != nil {
		definition, _ = jsonrpc.SetMember(definition, needs, otherwise) //nolint:errcheck // it has been split before
	}
	return definition, lost
}

// replaceMembers returns the object with each member replaced by the result of f; nil
// removes it. All other bytes stay unchanged.
func replaceMembers(object json.RawMessage, all []jsonrpc.Member, f func(jsonrpc.Member) json.RawMessage) json.RawMessage {
	open := bytes.IndexByte(object, '{') + 1
	var out json.RawMessage // nil: all values so far are the same
	end := open
	for i, m := range all {
		value, before := f(m), object[end:m.Start]
		end = m.End
		if out == nil {
			if bytes.Equal(value, m.Value) {
				continue
			}
			out = slices.Clone(object[:m.Start-len(before)])
		}
		switch {
		case value == nil:
			continue
		case i > 0 && len(out) == open:
			before = bytes.TrimLeft(before, ", \t\r\n")
		}
		out = append(append(out, before...), value...)
	}
	if out == nil {
		return object
	}
	return append(out, object[end:]...)
}

// isNull reports whether a JSON value is null.
func isNull(value json.RawMessage) bool { return string(value) == "null" }

// keepIf returns a sanitizer for a value that is kept or dropped as a whole.
func keepIf(is func(value json.RawMessage) bool) sanitizer {
	return func(value json.RawMessage) (json.RawMessage, bool) {
		if is(value) {
			return value, false
		}
		return nil, !isNull(value)
	}
}

// keepText is a sanitizer that keeps a string and drops other values. It returns true for a
// dropped value.
func keepText(value json.RawMessage) (json.RawMessage, bool) {
	return keepIf(func(v json.RawMessage) bool { return v[0] == '"' })(value)
}

// keepBool is a sanitizer that keeps true and false and drops other values.
func keepBool(value json.RawMessage) (json.RawMessage, bool) {
	return keepValues("true", "false")(value)
}

// keepNumber is a sanitizer that keeps a number and drops other values. It returns true for
// a dropped value.
func keepNumber(value json.RawMessage) (json.RawMessage, bool) {
	return keepIf(func(v json.RawMessage) bool { _, err := strconv.ParseFloat(string(v), 64); return err == nil })(value)
}

// keepFraction is a sanitizer that keeps a number from 0 to 1. It returns true for a dropped
// value.
func keepFraction(value json.RawMessage) (json.RawMessage, bool) {
	return keepIf(func(v json.RawMessage) bool {
		n, err := strconv.ParseFloat(string(v), 64)
		return err == nil && n >= 0 && n <= 1
	})(value)
}

// keepTime is a sanitizer that keeps an ISO 8601 time with a zone. It returns true for a
// dropped value.
func keepTime(value json.RawMessage) (json.RawMessage, bool) {
	return keepIf(func(v json.RawMessage) bool { _, err := time.Parse(`"`+time.RFC3339+`"`, string(v)); return err == nil })(value)
}

// keepValues returns a sanitizer that keeps these JSON values and drops others.
func keepValues(values ...string) sanitizer {
	return keepIf(func(v json.RawMessage) bool { return slices.Contains(values, string(v)) })
}

// keepWords returns a sanitizer that keeps these strings, given without quotes, and drops
// others.
func keepWords(words ...string) sanitizer {
	values := make([]string, len(words))
	for i, word := range words {
		values[i] = strconv.Quote(word)
	}
	return keepValues(values...)
}

// keepList accepts a list and drops the elements that of does not accept.
func keepList(of sanitizer) sanitizer {
	return func(value json.RawMessage) (json.RawMessage, bool) {
		var items []json.RawMessage
		if value[0] != '[' || json.Unmarshal(value, &items) != nil {
			return nil, !isNull(value)
		}
		out, changed, lost := []byte{'['}, false, false
		for _, item := range items {
			fitted, less := of(item)
			lost = lost || less || fitted == nil
			changed = changed || !bytes.Equal(fitted, item)
			if fitted == nil {
				continue
			}
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(out, fitted...)
		}
		if !changed {
			return value, false
		}
		return append(out, ']'), lost
	}
}

// keepMembers returns a sanitizer that accepts an object and drops the members that their
// sanitizers in members do not accept. Without a member in required the object is dropped.
// It returns true if information was lost.
func keepMembers(members map[string]sanitizer, required ...string) sanitizer {
	return func(value json.RawMessage) (json.RawMessage, bool) {
		if value[0] != '{' {
			return nil, !isNull(value)
		}
		if members == nil {
			return value, false
		}
		all, err := jsonrpc.Members(value)
		if err != nil { // for example a duplicate member
			return nil, true
		}
		lost, there := false, 0
		value = replaceMembers(value, all, func(m jsonrpc.Member) json.RawMessage {
			f := members[m.Name]
			if f == nil {
				return m.Value
			}
			fitted, less := f(m.Value)
			lost = lost || less
			if fitted != nil && slices.Contains(required, m.Name) {
				there++
			}
			return fitted
		})
		if there < len(required) {
			return nil, true
		}
		return value, lost
	}
}
