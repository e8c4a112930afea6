// Package jsonrpc reads and writes JSON-RPC 2.0 messages without decoding their
// content: it splits a line into its top-level members, as unchanged bytes, and
// builds messages from such bytes. It serves both ends of the stdio transport
// (one message a line).
//
// It is strict where two parsers could read a message differently, since that
// could fool a router that checks one reading and forwards the other: member
// names match exactly (including case), no name appears twice, and the text is
// valid UTF-8 and valid JSON throughout.
//
// Sources: the JSON-RPC 2.0 specification, sections 4 and 5; RFC 8259; the
// MCP specification, "Base protocol" (ids are strings or integers, never
// null; no batches).
package jsonrpc

import (
	"encoding/json"
)

// Error codes of the JSON-RPC specification, section 5.1.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
)

// An Error says why a line is not a message, with the code to answer.
type Error struct {
	Code    int
	Message string
	ID      json.RawMessage // to answer with; nil: unknown
}

// Error returns Message.
func (e *Error) Error() string { return e.Message }
