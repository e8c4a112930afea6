package wire

import (
	"encoding/json"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// PlainError rewrites an error object of mcp-go that quotes Go's JSON decoder:
// params of the wrong form become -32602, described by their JSON names and
// types. It returns other objects unchanged.
func PlainError(object json.RawMessage) json.RawMessage {
	var e struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	if json.Unmarshal(object, &e) != nil {
		return object
	}
	problem := ""
	if rest, ok := strings.CutPrefix(e.Message, "unparsable "); ok {
		problem = explainDecoding(rest)
	} else if strings.HasPrefix(e.Message, "illegal base64 data") { // mcp-go decodes base64 only for cursors
		problem = "unknown cursor: list again without a cursor"
	}
	if problem == "" {
		return object
	}
	plain, err := jsonrpc.Marshal(struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}{jsonrpc.CodeInvalidParams, "invalid params: " + problem})
	if err != nil { // two plain members always encode
		return object
	}
	return plain
}

// explainDecoding rewrites "METHOD request: json: cannot unmarshal GOT into Go
// struct field TYPE.params.NAME of type WANT" as "params.NAME must be WANT, not
// GOT", with JSON types.
func explainDecoding(text string) string {
	method, why, _ := strings.Cut(text, " request: ")
	found, isType := strings.CutPrefix(why, "json: cannot unmarshal ")
	if !isType {
		if strings.HasPrefix(why, "json: ") {
			return "they do not fit " + method + ""
		}
		return why
	}
	got, where, _ := strings.Cut(found, " into Go ")
	where, want, _ := strings.Cut(where, " of type ")
	// Text before params names Go types.
	if i := strings.Index(where, "params"); i >= 0 {
		where = where[i:]
	} else {
		where = "params"
	}
	got, _, _ = strings.Cut(got, " ") // "number 1.5"
	return where + " must be " + jsonTypeOf(want) + ", not " + jsonTypeOf(got)
}

// jsonTypeOf returns the JSON type, with its article, for the name of a Go type
// or of a kind of JSON value.
func jsonTypeOf(name string) string {
	switch {
	case name == "string", strings.HasSuffix(name, "Cursor"), strings.HasSuffix(name, "LoggingLevel"):
		return "a string"
	case name == "bool":
		return "a boolean"
	case name == "number", strings.HasPrefix(name, "int"), strings.HasPrefix(name, "uint"), strings.HasPrefix(name, "float"):
		return "a number"
	case name == "array", strings.HasPrefix(name, "[]"):
		return "a list"
	}
	return "an object"
}
