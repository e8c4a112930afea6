// Package timeout is the stage that ends calls after their time: the earliest of the tool's
// configured timeout, its server's, and the caller's deadline; 30 s if neither timeout is
// configured.
//
// A tool that declares its longest duration ends its calls itself, with a better answer than a
// stage can give (a partial result, a job that continues). So it gets some time beyond that
// duration. A tool that declares that it has no deadline gets no timeout. A configured timeout
// applies to both kinds.
//
// While the caller's client is asked, or a nested call waits for approval, the clock is paused:
// the time in which a person decides is not the tool's.
//
// The stage relies on the handler to return when its context ends, and waits for it, because
// notifications must not follow the answer.
package timeout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// Config holds the time limits of calls. A negative duration means no limit.
type Config struct {
	Default time.Duration            // 0: 30 s
	Servers map[string]time.Duration // by name of the server
	Tools   map[string]time.Duration // by served name
	Grace   time.Duration            // for tools that end their calls themselves; 0: 5 s

	// MakesCalls, unless nil, reports whether a server's tools call other tools, which
	// may wait for approval.
	MakesCalls func(server string) bool
}

// Validate returns an error that names the wrong field.
func (c Config) Validate() error {
	if c.Grace < 0 {
		return fmt.Errorf("timeout: grace must not be negative, got %v", c.Grace)
	}
	return nil
}

// New returns the stage, which limits the time of each call; Default 0 means 30 s, and
// Grace 0 means 5 s.
func New(c Config) call.Stage {
	if c.Default == 0 {
		c.Default = 30 * time.Second
	}
	if c.Grace == 0 {
		c.Grace = 5 * time.Second
	}
	return func(next call.Handler) call.Handler {
		return func(ctx context.Context, req *call.Request) (*call.Result, error) {
			after := c.limitFor(req.Tool)
			if after <= 0 {
				return next(ctx, req)
			}
			if at, ok := ctx.Deadline(); ok && time.Until(at) <= after {
				return next(ctx, req) // the caller's deadline is earlier
			}
			if req.Ask != nil || c.MakesCalls != nil && c.MakesCalls(req.Tool.Server) {
				return callWithPauses(ctx, next, req, after)
			}
			timed, cancel := context.WithTimeout(ctx, after)
			defer cancel()
			res, err := next(timed, req)
			if err != nil && timed.Err() != nil && ctx.Err() == nil && errors.Is(err, timed.Err()) {
				return nil, &call.TimeoutError{Tool: req.Tool.Name, After: after}
			}
			return res, err
		}
	}
}

// limitFor returns the time limit for calls of a tool: the lower of those configured for
// the tool and its server, else the tool's own with Grace, else the default. 0 means none:
// it is configured so, or the tool limits its calls itself.
func (c Config) limitFor(t *call.Tool) time.Duration {
	least := time.Duration(0)
	for _, configured := range [...]time.Duration{c.Tools[t.Name], c.Servers[t.Server]} {
		if configured > 0 && (least == 0 || configured < least) {
			least = configured
		}
	}
	switch {
	case least > 0:
		return least
	case c.Tools[t.Name] < 0, c.Servers[t.Server] < 0, t.OwnsDeadline:
		return 0
	case t.Timeout > 0:
		return t.Timeout + c.Grace
	}
	return c.Default
}
