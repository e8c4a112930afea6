package gateway

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// delegation names the caller on whose behalf a client on a pair of streams makes its
// calls: the caller of the call that started this client. nil means that the client
// calls for itself.
type delegation struct {
	id      string // of the connection
	as      call.Caller
	catalog Catalog // the catalog that the caller may use; nil: all of it
}

// delegationKey is the context key of the *delegation of a connection.
type delegationKey struct{}

// entryPoint returns the name of the entry point: socket, or stdio for nil.
func (e *delegation) entryPoint() string {
	if e == nil {
		return stdioID
	}
	return "socket"
}

// identity returns the identity of the client, as in call.Caller; for nil, that of the
// client on stdio.
func (e *delegation) identity() string {
	if e == nil {
		return stdioID
	}
	return e.id
}

// applyTo replaces the identity, user, profile, depth and limits in c by those of the
// delegation's caller. nil changes nothing.
func (e *delegation) applyTo(c *call.Caller) {
	if e != nil {
		c.User, c.Subject, c.Token = e.as.User, e.as.Subject, e.as.Token
		c.EntryPoint, c.ID, c.Account, c.ModelTurn, c.Depth, c.Profile = e.as.EntryPoint, e.as.ID, e.as.Account, e.as.ModelTurn, e.as.Depth, e.as.Profile
		c.Agent, c.Tools = e.as.Agent, e.as.Tools
	}
}

// ServeAs serves a client like ServeStdio, but on behalf of a caller: the client's calls
// have the identity, profile and depth of as, and reach only the tools that as.Tools
// permits. Several clients can be served at once. It returns an error if the profile no
// longer exists.
func (g *Gateway) ServeAs(ctx context.Context, as call.Caller, in io.Reader, out io.Writer, logf func(string, ...any)) error {
	e := &delegation{id: "socket " + strconv.FormatUint(g.delegations.Add(1), 10), as: as}
	find := g.cfg.DelegatedCatalog
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
		e.catalog = filteredCatalog{e.catalog, as.Tools}
	}
	defer g.forgetLegacyClient(e.id)
	return g.serve(ctx, e, e.id, in, out, logf)
}
