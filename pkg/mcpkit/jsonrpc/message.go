package jsonrpc

import (
	"encoding/json"
)

// Kind is the kind of a message.
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
	Method string
	Params json.RawMessage // nil when absent
	Result json.RawMessage // of a response
	Error  json.RawMessage // of a response

	Names NameSet // of the members of Result, if it is an object
}
