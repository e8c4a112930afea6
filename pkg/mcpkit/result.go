package mcpkit

import (
	"encoding/json"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Image is one picture of a result.
type Image struct {
	Data []byte // the encoded image file
	MIME string // its type: image/png, …
}

// Result is the result of a tool's function. Next to an error it describes the
// work done before the error: its text then follows the error's.
type Result struct {
	Text   string // for the model; the first line is a header
	Images []Image

	// Meta holds counters and the like for programs, sent as
	// _meta["toolroom/result"]: a value of the type of Def.Output, or nil.
	Meta any

	// Rows is the result as data, for --structured: a slice of Def.Row's type,
	// or a func() any that makes it on demand; nil: none.
	Rows any

	// ExitStatus is the exit status of a command that the tool ran. A one-shot
	// call with --text exits with it.
	ExitStatus int
}

// CallResult is the outcome of one call, success or error, ready to be encoded.
type CallResult struct {
	Text       string          // for the model, within the budget
	Notes      string          // sent after the text if that is data; otherwise "", as Text has them
	Images     []Image         // those that fit the message
	Details    json.RawMessage // JSON object for _meta["toolroom/result"]; nil: none
	Structured json.RawMessage // structuredContent, an object with the whole answer; nil: none
	IsError    bool
	Code       toolerr.Code // "" unless IsError
	Rows       any          // Result.Rows, unchanged
	ExitStatus int          // Result.ExitStatus, unchanged
	Err        error        // cause of an error result, for logs; may wrap a *callerror.Panic

	rawResult          json.RawMessage // the whole result as another server sent it; nil: none
	isStructuredAnswer bool            // Structured was made by structuredAnswer
}

// Limits of a result.
const (
	// DefaultMaxTokens is the result budget of a tool without MaxTokens, in
	// tokens of 4 bytes.
	DefaultMaxTokens = 12_000
	// MaxMessage is the size limit of a message in bytes, with images and the
	// JSON-RPC envelope.
	MaxMessage = 1 << 20
)
