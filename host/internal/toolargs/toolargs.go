// Package toolargs reads the arguments of a tool as people type them: one JSON object,
// or key=value pairs. The tool's schema decides how values are read: parameters with
// type string are texts; other values are JSON if they parse as JSON, else text.
package toolargs

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// Parse returns the arguments object that the words describe: one JSON object, or
// key=value pairs; {} without words. schema is the tool's inputSchema, nil if it is
// unknown. It fails for a word in another form and for a key given twice.
func Parse(schema json.RawMessage, words []string) (json.RawMessage, error) {
	if len(words) == 0 {
		return json.RawMessage(`{}`), nil
	}
	if len(words) == 1 && strings.HasPrefix(strings.TrimSpace(words[0]), "{") {
		raw := []byte(words[0])
		if _, err := jsonrpc.Members(raw); err != nil {
			return nil, fmt.Errorf("the arguments are not one JSON object (%w); correct it, or give key=value pairs", err)
		}
		return raw, nil
	}
	var input struct {
		Properties map[string]struct {
			Type any `json:"type"`
		} `json:"properties"`
	}
	if len(schema) > 0 {
		if err := json.Unmarshal(schema, &input); err != nil {
			return nil, fmt.Errorf("the tool's schema is malformed: %w", err)
		}
	}
	out := map[string]json.RawMessage{}
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("argument %q is not key=value; give pairs, or one JSON object", word)
		}
		if _, twice := out[key]; twice {
			return nil, fmt.Errorf("argument %s is given twice; a list is %s='[…]'", key, key)
		}
		raw := json.RawMessage(jsonrpc.AppendString(nil, value))
		if input.Properties[key].Type != "string" && jsonrpc.Valid([]byte(value)) == nil {
			raw = json.RawMessage(value)
		}
		out[key] = raw
	}
	return jsonrpc.Marshal(out)
}

// SplitWords splits a line at spaces. Quotes keep words together: '…' literally, and
// "…" with \" and \\ as escapes. Other backslashes are ordinary characters, since paths
// contain them. It fails for an unclosed quote.
func SplitWords(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	open, begun := byte(0), false
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case open == '"' && c == '\\' && i+1 < len(line) && (line[i+1] == '"' || line[i+1] == '\\'):
			i++
			word.WriteByte(line[i])
		case open != 0 && c == open:
			open = 0
		case open == 0 && (c == '"' || c == '\''):
			open, begun = c, true
		case open == 0 && (c == ' ' || c == '\t' || c == '\r' || c == '\n'):
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			begun = true
			word.WriteByte(c)
		}
	}
	if open != 0 {
		return nil, fmt.Errorf("unclosed quote (%c)", open)
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}
