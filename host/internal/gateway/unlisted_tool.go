package gateway

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// requestError is the error of a call whose request is wrong, which the client gets as a
// JSON-RPC error instead of a result.
type requestError struct {
	error
	code int // of JSON-RPC
}

// Unwrap returns the cause.
func (e *requestError) Unwrap() error { return e.error }

// unknownTool returns the error of a call of a tool that no server has.
func unknownTool(name string) *requestError {
	return &requestError{toolerr.New(toolerr.ToolNotFound, "unknown tool %s; tools/list lists the tools", quoted(name)), jsonrpc.CodeInvalidParams}
}

// checkedWhenListed returns a copy of a tool that is not listed yet. Its Find makes the
// checks that findTool makes of listed tools: it returns a *requestError for an unknown
// tool, and for headers of x that differ from the arguments.
func checkedWhenListed(x exchange, tool *call.Tool) *call.Tool {
	find, checked, unlisted := tool.Unlisted.Find, *tool, *tool.Unlisted
	unlisted.Find = func(ctx context.Context) (*call.Tool, error) {
		listed, err := find(ctx)
		if toolerr.Is(err, toolerr.ToolNotFound) {
			return nil, unknownTool(tool.Name)
		}
		if err != nil {
			return nil, err
		}
		if err := checkHeaders(x, listed); err != nil {
			return nil, &requestError{toolerr.New(toolerr.InvalidParams, "%w", err), mcp.HEADER_MISMATCH}
		}
		return listed, nil
	}
	checked.Unlisted = &unlisted
	return &checked
}
