package core

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/approve"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/policy"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/validate"
	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// newApproval makes the stage that gets approvals.
func (a *App) newApproval(c approve.Config) *approve.Stage {
	c.URL = func() string {
		if url := a.url.Load(); url != nil {
			return *url
		}
		return ""
	}
	c.Scope = a.scopeOf
	return approve.New(c, &approve.Book{Keys: approvals{a}, Expires: c.Expires}, func(ctx context.Context, req *call.Request) error {
		w := a.way()
		return w.right(ctx, req, w.validator)
	})
}

// scopeOf is where calls of a tool have their effect: in the directory and the
// roots of this host, at the server as it is configured, and at those that the
// tool itself calls. Hosts of several projects share a store. What the host's
// own environment says is not part of it: it differs from terminal to terminal.
func (a *App) scopeOf(t *call.Tool) approve.Scope {
	dir, err := os.Getwd()
	if err != nil { // then the roots alone tell
		dir = ""
	}
	now, roots := a.present.Load(), a.roots.get()
	at := []string{"in " + dir}
	if len(roots) > 0 {
		at = append(at, "with "+strings.Join(roots, " "))
	}
	of := now.behind(t.Server)
	at = append(at, of.where...)
	text := strings.Join(at, ", ")
	if len(text) > maxWhere {
		text = strings.ToValidUTF8(text[:maxWhere], "") + "…"
	}
	return approve.Scope{Text: text, Bound: fingerprint([]any{dir, roots, of.sum})}
}

// maxWhere bounds what of a place is shown.
const maxWhere = 1 << 10

// SetURL says at which address others reach the host's HTTP door.
func (a *App) SetURL(url string) { a.url.Store(&url) }

// right reports why a call must not be made with its arguments.
func (w way) right(ctx context.Context, req *call.Request, v *validate.Validator) error {
	_, err := v.Arguments(func(context.Context, *call.Request) (*call.Result, error) { return nil, nil })(ctx, req)
	if err != nil {
		return err
	}
	return w.cfg.Policy.Check(req)
}

// Approvals are the requests for approval of all hosts with the same store.
func (a *App) Approvals() *approve.Book {
	return &approve.Book{Keys: approvals{a}, Expires: a.way().cfg.Approval.Expires}
}

// Decide decides on a request for approval. Arguments in place of the
// caller's have to be right and allowed, as if the caller had sent them.
func (a *App) Decide(ctx context.Context, id string, d approve.Decision) (*approve.Record, error) {
	r, err := a.Approvals().Find(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := a.edited(ctx, r, d); err != nil {
		return nil, err
	}
	return a.Approvals().Decide(ctx, r.ID, d)
}

// Redeem is Decide for who has the one-time token.
func (a *App) Redeem(ctx context.Context, id, token string, d approve.Decision) (*approve.Record, error) {
	r, err := a.Approvals().Authorize(ctx, id, token)
	if err != nil {
		return nil, err
	}
	if err := a.edited(ctx, r, d); err != nil {
		return nil, err
	}
	return a.Approvals().Redeem(ctx, id, token, d)
}

// edited reports why a call must not be made with what a decision puts in the
// place of its arguments. It is asked again when the call is made.
func (a *App) edited(ctx context.Context, r *approve.Record, d approve.Decision) error {
	if d.Args == nil {
		return nil
	}
	tool, ok := a.Catalog.Lookup(ctx, r.Tool)
	if !ok {
		return toolerr.New(toolerr.ToolNotFound, "tool %s does not exist now, so its arguments cannot be checked; approve the call unchanged, or deny it", r.Tool)
	}
	// Who decides is told what is wrong here, also by tools that check their
	// arguments themselves.
	checked := *tool
	checked.Validates = false
	req, err := (&call.Request{
		Tool:   &checked,
		Caller: call.Caller{Door: r.Caller.Door, ID: r.Caller.ID, User: r.Caller.User, Profile: r.Caller.Profile, Depth: r.Caller.Depth},
	}).WithArguments(d.Args)
	if err != nil {
		return toolerr.New(toolerr.InvalidParams, "the arguments: %w", err)
	}
	return a.way().right(ctx, req, validate.New(validate.Config{}))
}

// approvals are the store's keys as the stage wants them.
type approvals struct{ a *App }

var errNoStore = toolerr.New(toolerr.PolicyDenied, "no state directory, so approval cannot be requested; give --state")

// Get returns the entry of a key, or NOT_FOUND.
func (k approvals) Get(ctx context.Context, key string) (approve.Entry, error) {
	if k.a.store == nil {
		return approve.Entry{}, errNoStore
	}
	e, err := k.a.store.Keys.Get(ctx, key)
	return approve.Entry{Key: e.Key, Value: e.Value, Version: int64(e.Version)}, err
}

// Put gives a key a value if its version is still was, else CONFLICT.
func (k approvals) Put(ctx context.Context, key string, value []byte, was int64, expires time.Time) (int64, error) {
	if k.a.store == nil {
		return 0, errNoStore
	}
	k.a.used.Store(true)
	v, err := k.a.store.Keys.Put(ctx, key, value, store.Version(was), expires)
	return int64(v), err
}

// Delete removes a key if its version is still was, else CONFLICT.
func (k approvals) Delete(ctx context.Context, key string, was int64) error {
	if k.a.store == nil {
		return errNoStore
	}
	return k.a.store.Keys.Delete(ctx, key, store.Version(was))
}

// List returns a page of entries.
func (k approvals) List(ctx context.Context, prefix, after string, limit int) ([]approve.Entry, error) {
	if k.a.store == nil {
		return nil, errNoStore
	}
	page, err := k.a.store.Keys.List(ctx, prefix, after, limit)
	all := make([]approve.Entry, len(page))
	for i, e := range page {
		all[i] = approve.Entry{Key: e.Key, Value: e.Value, Version: int64(e.Version)}
	}
	return all, err
}

// Policy is what decides on calls now, for who leads a conversation with a
// model: see policy.Turn.
func (a *App) Policy() *policy.Policy { return a.way().policy }
