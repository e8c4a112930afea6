// Package alias implements tools that are a server's tool under another name. The
// server's answer is passed on unchanged: all kinds of content, isError, progress and
// questions. The call also passes all stages under the server's name for the tool, so
// that a policy for that name holds under the new name, too.
package alias

import (
	"context"
	"errors"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// Config is the declaration of one tool.
type Config struct {
	Server string // name of the configured server
	Tool   string // the server's name for the tool
}

// Validate returns an error that names the wrong field.
func (c Config) Validate() error {
	switch {
	case c.Server == "":
		return errors.New("mcp.server: is missing: the name of the server")
	case c.Tool == "":
		return errors.New("mcp.tool: is missing: the tool's name on the server")
	}
	return nil
}

// Forward makes a call of a server's tool.
type Forward func(ctx context.Context, req *call.Request, server, tool string) (*call.Result, error)

// New returns the handler of an alias, which passes calls to forward. It returns the error
// of c.Validate.
func New(c Config, forward Forward) (call.Handler, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return func(ctx context.Context, req *call.Request) (*call.Result, error) {
		return forward(ctx, req, c.Server, c.Tool)
	}, nil
}
