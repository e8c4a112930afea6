package gateway

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// errand says on whose behalf a client on a pair of streams calls, when it is
// not its own: that of a call by which it was started.
type errand struct {
	id      string // of the connection
	as      call.Caller
	catalog Catalog // that the caller is offered; nil: the whole
}

type errandKey struct{}

func (e *errand) door() string {
	if e == nil {
		return stdioID
	}
	return "socket"
}

func (e *errand) identity() string {
	if e == nil {
		return stdioID
	}
	return e.id
}

// name makes a caller of the connection's the one it calls for.
func (e *errand) name(c *call.Caller) {
	if e != nil {
		c.Door, c.ID, c.Account, c.Turn, c.Depth, c.Profile = e.as.Door, e.as.ID, e.as.Account, e.as.Turn, e.as.Depth, e.as.Profile
		c.Agent, c.Tools = e.as.Agent, e.as.Tools
	}
}

// ServeAs serves a client like ServeStdio, any number of them at once, each on
// behalf of a caller: its calls are that caller's, as deep as as says.
func (g *Gateway) ServeAs(ctx context.Context, as call.Caller, in io.Reader, out io.Writer, logf func(string, ...any)) error {
	e := &errand{id: "socket " + strconv.FormatUint(g.errands.Add(1), 10), as: as}
	find := g.cfg.Joined
	if find == nil && as.Profile != "" {
		find = g.cfg.Profile
	}
	if find != nil {
		var ok bool
		if e.catalog, ok = find(as.Profile); !ok {
			return fmt.Errorf("profile %s no longer exists", as.Profile)
		}
	}
	if as.Tools != nil {
		if e.catalog == nil {
			e.catalog = g.catalog
		}
		e.catalog = narrowed{e.catalog, as.Tools}
	}
	defer g.forget(e.id)
	return g.serve(context.WithValue(ctx, errandKey{}, e), e.id, in, out, logf)
}
