package call

import "context"

// Unlisted describes a tool whose server could not list its tools so far, for example
// because it needs a sign-in. Only the served name is known, and which server may have it.
type Unlisted struct {
	// Others are tools of other servers that may have the name as well.
	Others []*Tool

	// Find returns the listed tool with the name after its server was listed, or
	// TOOL_NOT_FOUND.
	Find func(ctx context.Context) (*Tool, error)

	// Err is the error of the server's list if it was requested for this call; nil: it was
	// not.
	Err error
}
