package wire

import (
	"context"
	"time"
)

// DefaultMaxConcurrent is the default limit of calls running at once.
const DefaultMaxConcurrent = 64

// DefaultGrace is the default time that running calls have to kill their
// processes when the server must stop at once.
const DefaultGrace = time.Second

// ServeOptions are the settings of ServeStdio. The zero value means the
// defaults.
type ServeOptions struct {
	MaxConcurrent int           // limit of calls running at once; 0: DefaultMaxConcurrent
	MaxLine       int           // longest message in bytes; 0: jsonrpc.MaxLine
	Grace         time.Duration // for running calls if the server must stop at once; 0: DefaultGrace

	// Session identifies the client if a server has several at the same time;
	// "" means "stdio".
	Session string

	// Trace, unless nil, is called with every message, without its newline.
	// sent is false for a received message. It must be safe for concurrent use
	// and must not keep the bytes.
	Trace func(sent bool, message []byte)

	// Logf, unless nil, logs errors that are not sent to the client, mostly one
	// line each, without a final newline.
	Logf func(format string, args ...any)

	// Call, unless nil, answers tools/call instead of mcp-go, which would
	// decode the arguments of each call several times. It reads RawParams,
	// answers with SetRawResult or SetRawError, and returns true. If it returns
	// false, without an answer, mcp-go handles the request. Requests of the
	// modern era still pass through mcp-go, without their arguments.
	Call func(ctx context.Context) bool

	now func() time.Time // for tests
}
