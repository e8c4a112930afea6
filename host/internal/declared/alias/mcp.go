// Package alias carries out tools that are a server's tool under another name.
// What the server answers is passed on as it came: every kind of content,
// isError, progress, questions. The call goes through all stages once more
// under the server's own name for it, so that what a policy says of that holds
// whatever the tool is called here.
package alias

import (
	"context"
	"errors"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// Config is one tool.
type Config struct {
	Server string // as configured
	Tool   string // the server's own name
}

// Validate names the field that is wrong.
func (c Config) Validate() error {
	switch {
	case c.Server == "":
		return errors.New("mcp.server: is missing: the name of the server")
	case c.Tool == "":
		return errors.New("mcp.tool: is missing: the tool's name on the server")
	}
	return nil
}

// Forward carries out a call as one of a server's tool.
type Forward func(ctx context.Context, req *call.Request, server, tool string) (*call.Result, error)

// New makes the handler of a valid configuration.
func New(c Config, forward Forward) (call.Handler, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return func(ctx context.Context, req *call.Request) (*call.Result, error) {
		return forward(ctx, req, c.Server, c.Tool)
	}, nil
}
