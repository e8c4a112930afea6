package catalog

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// A form is how clients want a value. It returns the value, or what is to stand
// for it, nil when nothing can, and whether that loses something that was said:
// null says nothing.
//
// Many clients, all that are made with the official TypeScript SDK, read a list
// as a whole: one entry with a member that is not as they want it, and they have
// none of any server's.
type form func(value json.RawMessage) (fitted json.RawMessage, lost bool)

// forms are how clients want the members of a kind's entries, as the schema of
// version 2025-11-25 has them.
func forms(kind call.Kind) map[string]form {
	all := map[string]form{
		"title": isText, "description": isText, "_meta": members(nil),
		"icons": listOf(members(map[string]form{"src": isText, "mimeType": isText, "sizes": listOf(isText), "theme": oneOf("light", "dark")}, "src")),
	}
	switch kind {
	case call.Tools:
		all["inputSchema"], all["outputSchema"] = fitInput, fitOutput
		all["annotations"] = members(map[string]form{"title": isText, "readOnlyHint": isFlag, "destructiveHint": isFlag, "idempotentHint": isFlag, "openWorldHint": isFlag})
		all["execution"] = members(map[string]form{"taskSupport": oneOf("required", "optional", "forbidden")})
	case call.Prompts:
		all["arguments"] = listOf(members(map[string]form{"name": isText, "description": isText, "required": isFlag}, "name"))
	default:
		all["name"], all["mimeType"], all["size"] = isText, isText, isNumber
		all["annotations"] = members(map[string]form{"audience": listOf(oneOf("user", "assistant")), "priority": isShare, "lastModified": isTime})
	}
	return all
}

// fit makes an entry one that clients can read, and names the members of which
// something is lost. What has to be there and is not says as little as it can.
func fit(kind call.Kind, definition json.RawMessage, entry []jsonrpc.Member) (json.RawMessage, []string) {
	var lost []string
	wanted := forms(kind)
	needs, otherwise := "name", jsonrpc.MemberOf(definition, named(kind))
	if kind == call.Tools {
		needs, otherwise = "inputSchema", json.RawMessage(anyArguments)
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

// replaceMembers returns the object with what f gives for each of its members in
// its place, and without those for which that is nil. The other bytes stay as they
// are.
func replaceMembers(object json.RawMessage, all []jsonrpc.Member, f func(jsonrpc.Member) json.RawMessage) json.RawMessage {
	open := bytes.IndexByte(object, '{') + 1
	out, changed, end := slices.Clone(object[:open]), false, open
	for i, m := range all {
		value, before := f(m), object[end:m.Start]
		end = m.End
		changed = changed || !bytes.Equal(value, m.Value)
		switch {
		case value == nil:
			continue
		case i > 0 && len(out) == open:
			before = bytes.TrimLeft(before, ", \t\r\n")
		}
		out = append(append(out, before...), value...)
	}
	if !changed {
		return object
	}
	return append(out, object[end:]...)
}

func isNull(value json.RawMessage) bool { return string(value) == "null" }

// simple is the form of a value of which no part can be lost.
func simple(is func(value json.RawMessage) bool) form {
	return func(value json.RawMessage) (json.RawMessage, bool) {
		if is(value) {
			return value, false
		}
		return nil, !isNull(value)
	}
}

func isText(value json.RawMessage) (json.RawMessage, bool) {
	return simple(func(v json.RawMessage) bool { return v[0] == '"' })(value)
}

func isFlag(value json.RawMessage) (json.RawMessage, bool) {
	return oneOfValues("true", "false")(value)
}

func isNumber(value json.RawMessage) (json.RawMessage, bool) {
	return simple(func(v json.RawMessage) bool { _, err := strconv.ParseFloat(string(v), 64); return err == nil })(value)
}

// isShare wants a number from 0 to 1.
func isShare(value json.RawMessage) (json.RawMessage, bool) {
	return simple(func(v json.RawMessage) bool {
		n, err := strconv.ParseFloat(string(v), 64)
		return err == nil && n >= 0 && n <= 1
	})(value)
}

// isTime wants a time of ISO 8601 that says in which zone it is.
func isTime(value json.RawMessage) (json.RawMessage, bool) {
	return simple(func(v json.RawMessage) bool { _, err := time.Parse(`"`+time.RFC3339+`"`, string(v)); return err == nil })(value)
}

func oneOfValues(values ...string) form {
	return simple(func(v json.RawMessage) bool { return slices.Contains(values, string(v)) })
}

func oneOf(words ...string) form {
	values := make([]string, len(words))
	for i, word := range words {
		values[i] = strconv.Quote(word)
	}
	return oneOfValues(values...)
}

// listOf wants a list, and leaves out what is not of the form.
func listOf(of form) form {
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

// members wants an object, and leaves out the members that are not of their
// forms. Without one of those that are required nothing is left of it.
func members(of map[string]form, required ...string) form {
	return func(value json.RawMessage) (json.RawMessage, bool) {
		if value[0] != '{' {
			return nil, !isNull(value)
		}
		if of == nil {
			return value, false
		}
		all, err := jsonrpc.Members(value)
		if err != nil { // one of them twice, say
			return nil, true
		}
		lost, there := false, 0
		value = replaceMembers(value, all, func(m jsonrpc.Member) json.RawMessage {
			f := of[m.Name]
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
