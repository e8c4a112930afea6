package jsonrpc

import (
	"encoding/json"
)

// Kind is the kind of a message: Request, Notification or Response.
type Kind uint8

// The kinds of messages. A response carries a result or an error.
const (
	Request Kind = iota + 1
	Notification
	Response
)

// A Message is one JSON-RPC message, split into members. The byte slices alias
// the line.
type Message struct {
	Kind   Kind
	ID     json.RawMessage // as received; nil for a notification
	Method string          // of a request or notification
	Params json.RawMessage // nil if absent
	Result json.RawMessage // of a successful response, else nil
	Error  json.RawMessage // of a failed response, else nil

	// Names has the names of Result's members, if that is an object.
	Names NameSet
}
