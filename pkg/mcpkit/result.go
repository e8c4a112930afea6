package mcpkit

import (
	"encoding/json"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Image is one picture of a result.
type Image struct {
	Data []byte
	MIME string // image/png, …
}

// Result is a tool function's result. With an error it describes the work done
// before the error: its text follows the error's.
type Result struct {
	Text   string // header line first
	Images []Image
	Meta   any // counters for programs, sent as _meta["toolroom/result"]; fits Def.Output
	Rows   any // for --structured: a slice of Def.Row, or a func() any that makes it on demand

	// ExitStatus is the exit status of a command that the tool ran. A one-shot
	// call with --text ends with it.
	ExitStatus int
}

// CallResult is the outcome of one call, success or error, ready to be encoded.
type CallResult struct {
	Text       string          // what the model reads, within the budget
	Notes      string          // notes in a separate item if Text is data; else Text has them
	Images     []Image         // those that fit the message
	Details    json.RawMessage // an object for _meta["toolroom/result"], or nil: none
	Structured json.RawMessage // structuredContent: an object with the whole answer, or nil: none
	IsError    bool
	Code       toolerr.Code // "" unless IsError
	Rows       any          // as the tool returned them
	ExitStatus int          // as the tool returned it
	Err        error        // the cause of IsError, for logs; may wrap a *callerror.Panic

	rawResult          json.RawMessage // as another server sent it
	isStructuredAnswer bool            // Structured was made by structuredAnswer
}

// Limits of a result.
const (
	// DefaultMaxTokens is the result budget of a tool without MaxTokens.
	DefaultMaxTokens = 12_000
	// MaxMessage is the hard limit of a message in bytes, including images and
	// envelope.
	MaxMessage = 1 << 20
)
