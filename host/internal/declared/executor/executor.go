// Package executor has the common parts of the kinds of declared tools: the conversion
// of a JSON value into a tool's result, and limits. Each package next to it implements
// a kind, with a Config whose Validate names the wrong field, and a New that returns a
// call.Handler.
package executor

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// MaxResult bounds the data of a tool's result, in bytes.
const MaxResult = 10 << 20

// A Shape says how the value of a tool becomes its result.
type Shape struct {
	// Wrapped means that the tool declares an output schema of another type than
	// object, which MCP does not permit: the value is then the member "result" of
	// structuredContent.
	Wrapped bool
	// Declared means that the tool has an output schema: the value is also
	// structuredContent. A value that is not an object then violates it, unless
	// Wrapped is set.
	Declared bool
}

// Result returns a result with a value as text (a JSON string without its quotes),
// after the content items of more. If the tool has an output schema, the value is in
// structuredContent, too, as Shape says. The error names tool, and is RESULT_INVALID for
// a value that is not JSON, or not an object although the schema requires one.
func (s Shape) Result(tool string, value json.RawMessage, more ...json.RawMessage) (*call.Result, error) {
	value = bytes.TrimSpace(value)
	if err := jsonrpc.Valid(value); err != nil {
		return nil, invalid(tool, "it is not JSON: "+err.Error())
	}
	var structured json.RawMessage
	switch {
	case s.Wrapped:
		structured = append(append([]byte(`{"result":`), value...), '}')
	case s.Declared && value[0] != '{':
		return nil, invalid(tool, fmt.Sprintf("it is %s, but the output schema requires an object", nonObjectKind(value)))
	case s.Declared:
		structured = value
	}
	raw := []byte(`{"content":[`)
	for _, content := range more {
		raw = append(append(raw, content...), ',')
	}
	raw = append(jsonrpc.AppendString(append(raw, `{"type":"text","text":`...), textOf(value)), "}]"...)
	if structured != nil {
		raw = append(append(raw, `,"structuredContent":`...), structured...)
	}
	return &call.Result{Raw: append(raw, '}')}, nil
}

// Text returns a result with a text that is not JSON; see Result for the errors.
func (s Shape) Text(tool, text string) (*call.Result, error) {
	return s.Result(tool, jsonrpc.AppendString(nil, text))
}

// Failed returns a result with isError and a text.
func Failed(text string) *call.Result {
	raw := jsonrpc.AppendString([]byte(`{"content":[{"type":"text","text":`), text)
	return &call.Result{Raw: append(raw, `}],"isError":true}`...)}
}

// invalid returns the error for a result that cannot be used.
func invalid(tool, why string) error {
	return &call.ValidationError{Type: call.ResultInvalid, Tool: tool, Detail: "the result cannot be used: " + why}
}

// Invalid returns the error for a result that does not have the declared form.
func Invalid(tool, format string, args ...any) error {
	return invalid(tool, fmt.Sprintf(format, args...))
}

// Missing returns the error for a call without an argument that the declaration uses.
func Missing(tool, argument, where string) error {
	detail := fmt.Sprintf("argument %s is missing, required by %s; give it and call again", argument, where)
	return &call.ValidationError{
		Type: call.ArgsInvalid, Tool: tool, Path: "/" + argument, Detail: detail,
		Cause: toolerr.New(toolerr.MissingParameter, "%s", detail),
	}
}

// Arguments returns a call's arguments by name. Numbers keep their text. It returns
// INVALID_PARAMS if they are not an object.
func Arguments(req *call.Request) (map[string]json.RawMessage, error) {
	raw, err := req.Arguments()
	if err != nil {
		return nil, err
	}
	members, err := jsonrpc.Members(raw)
	if err != nil {
		return nil, toolerr.New(toolerr.InvalidParams, "arguments: %w", err)
	}
	all := make(map[string]json.RawMessage, len(members))
	for _, m := range members {
		all[m.Name] = m.Value
	}
	return all, nil
}

// textOf returns a value as text: a JSON string without its quotes, any other value as
// JSON.
func textOf(value json.RawMessage) string {
	var text string
	if len(value) > 0 && value[0] == '"' && json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}

// TextOf returns a value as text, such as a parameter of a URL.
func TextOf(value json.RawMessage) string { return textOf(value) }

// nonObjectKind names the kind of a JSON value that is not an object, for messages.
func nonObjectKind(value json.RawMessage) string {
	switch value[0] {
	case '"':
		return "a string"
	case '[':
		return "a list"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	return "a number"
}
