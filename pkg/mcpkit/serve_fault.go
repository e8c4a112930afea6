package mcpkit

import (
	"encoding/json"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// PlainError puts an error object of mcp-go's into plain words where it
// quotes Go: params of the wrong form are -32602 and named by their JSON
// names and types. Other objects come back as they are.
func PlainError(object json.RawMessage) json.RawMessage {
	var e struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	if json.Unmarshal(object, &e) != nil {
		return object
	}
	said := ""
	if rest, ok := strings.CutPrefix(e.Message, "unparsable "); ok {
		said = plainDecoding(rest)
	} else if strings.HasPrefix(e.Message, "illegal base64 data") { // the only thing it decodes
		said = "unknown cursor: list again without a cursor"
	}
	if said == "" {
		return object
	}
	plain, err := jsonrpc.Marshal(struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}{jsonrpc.CodeInvalidParams, "invalid params: " + said})
	if err != nil { // two plain members always encode
		return object
	}
	return plain
}

// plainDecoding rewrites "METHOD request: json: cannot unmarshal GOT into Go
// struct field TYPE.params.NAME of type WANT".
func plainDecoding(text string) string {
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
	// What stands before params are names of Go types.
	if i := strings.Index(where, "params"); i >= 0 {
		where = where[i:]
	} else {
		where = "params"
	}
	got, _, _ = strings.Cut(got, " ") // "number 1.5"
	return where + " must be " + jsonType(want) + ", not " + jsonType(got)
}

// jsonType says in JSON's words what a Go type, or a value, is.
func jsonType(name string) string {
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
