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

// newApproval returns the approval stage, which keeps its records in the host's store and
// checks edited arguments with checkEdited.
func (a *App) newApproval(c approve.Config) *approve.Stage {
	c.URL = func() string {
		if url := a.url.Load(); url != nil {
			return *url
		}
		return ""
	}
	c.Scope = a.approvalScope
	return approve.New(c, &approve.Store{Keys: approvalKeys{a}, Expires: c.Expires}, func(ctx context.Context, req *call.Request) error {
		w := a.currentPipeline()
		return w.checkCall(ctx, req, w.validator)
	})
}

// approvalScope returns the scope of an approval of this tool: the working directory
// and roots of this host, the configuration of the tool's server, and the servers that
// the tool calls. Hosts of several projects share a store. The host's environment is
// not part of the scope, since it differs between terminals.
func (a *App) approvalScope(t *call.Tool) approve.Scope {
	dir, err := os.Getwd()
	if err != nil { // then the roots alone distinguish the scope
		dir = ""
	}
	now, roots := a.snapshot.Load(), a.roots.get()
	at := []string{"in " + dir}
	if len(roots) > 0 {
		at = append(at, "with "+strings.Join(roots, " "))
	}
	of := now.reachableFrom(t.Server)
	at = append(at, of.descriptions...)
	text := strings.Join(at, ", ")
	if len(text) > maxWhere {
		text = strings.ToValidUTF8(text[:maxWhere], "") + "…"
	}
	return approve.Scope{Description: text, Identity: fingerprint([]any{dir, roots, of.fingerprint})}
}

// maxWhere bounds the bytes shown of a scope.
const maxWhere = 1 << 10

// SetURL sets the address at which others reach the host's HTTP server.
func (a *App) SetURL(url string) { a.url.Store(&url) }

// checkCall returns an error if the arguments violate the tool's input schema, or if the
// policy's lists or rules deny the call. It counts nothing.
func (p pipeline) checkCall(ctx context.Context, req *call.Request, v *validate.Validator) error {
	_, err := v.Arguments(func(context.Context, *call.Request) (*call.Result, error) { return nil, nil })(ctx, req)
	if err != nil {
		return err
	}
	return p.cfg.Policy.Check(req)
}

// Approvals returns the approval requests of all hosts with the same store.
func (a *App) Approvals() *approve.Store {
	return &approve.Store{Keys: approvalKeys{a}, Expires: a.currentPipeline().cfg.Approval.Expires}
}

// Decide decides an approval request; see approve.Store.Decide for the errors. If the
// decision replaces the arguments, the new ones must be valid and permitted, as if the
// caller had sent them; otherwise it returns the error of that check.
func (a *App) Decide(ctx context.Context, id string, d approve.Decision) (*approve.Record, error) {
	r, err := a.Approvals().Find(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := a.checkEdited(ctx, r, d); err != nil {
		return nil, err
	}
	return a.Approvals().Decide(ctx, r.ID, d)
}

// Redeem decides an approval request like Decide; the one-time token from the callback
// proves the right to decide. It returns AUTH_FAILED for a wrong token.
func (a *App) Redeem(ctx context.Context, id, token string, d approve.Decision) (*approve.Record, error) {
	r, err := a.Approvals().Authorize(ctx, id, token)
	if err != nil {
		return nil, err
	}
	if err := a.checkEdited(ctx, r, d); err != nil {
		return nil, err
	}
	return a.Approvals().Redeem(ctx, id, token, d)
}

// checkEdited returns an error if the decision replaces the arguments and the call must
// not be made with the new ones. The call itself is checked again when it is made.
func (a *App) checkEdited(ctx context.Context, r *approve.Record, d approve.Decision) error {
	if d.Args == nil {
		return nil
	}
	tool, ok := a.Catalog.Lookup(ctx, r.Tool)
	if !ok {
		return toolerr.New(toolerr.ToolNotFound, "tool %s does not exist now, so its arguments cannot be checked; approve the call unchanged, or deny it", r.Tool)
	}
	// The person who decides gets all errors of the arguments here, also for tools
	// that check their arguments themselves.
	checked := *tool
	checked.Validates = false
	req, err := (&call.Request{
		Tool:   &checked,
		Caller: call.Caller{EntryPoint: r.Caller.EntryPoint, ID: r.Caller.ID, User: r.Caller.User, Profile: r.Caller.Profile, Depth: r.Caller.Depth},
	}).WithArguments(d.Args)
	if err != nil {
		return toolerr.New(toolerr.InvalidParams, "the arguments: %w", err)
	}
	return a.currentPipeline().checkCall(ctx, req, validate.New(validate.Config{}))
}

// approvalKeys adapts the store's keys to the approval stage.
type approvalKeys struct{ a *App }

// errNoStore is the error of calls that need approval on a host without a state directory.
var errNoStore = toolerr.New(toolerr.PolicyDenied, "no state directory, so approval cannot be requested; give --state")

// Get returns the entry of a key, or NOT_FOUND.
func (k approvalKeys) Get(ctx context.Context, key string) (approve.Entry, error) {
	if k.a.store == nil {
		return approve.Entry{}, errNoStore
	}
	e, err := k.a.store.Keys.Get(ctx, key)
	return approve.Entry{Key: e.Key, Value: e.Value, Version: int64(e.Version)}, err
}

// Put sets a key's value if the key still has the given version (0: the key does not
// exist), and returns the new version. Otherwise it returns CONFLICT.
func (k approvalKeys) Put(ctx context.Context, key string, value []byte, version int64, expires time.Time) (int64, error) {
	if k.a.store == nil {
		return 0, errNoStore
	}
	k.a.storeUsed.Store(true)
	v, err := k.a.store.Keys.Put(ctx, key, value, store.Version(version), expires)
	return int64(v), err
}

// Delete removes a key if it still has the given version; otherwise it returns CONFLICT.
func (k approvalKeys) Delete(ctx context.Context, key string, version int64) error {
	if k.a.store == nil {
		return errNoStore
	}
	return k.a.store.Keys.Delete(ctx, key, store.Version(version))
}

// List returns at most limit entries whose keys begin with prefix and sort behind after.
func (k approvalKeys) List(ctx context.Context, prefix, after string, limit int) ([]approve.Entry, error) {
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

// Policy returns the policy in force now. A conversation with a model begins its turns
// with it; see policy.Turn.
func (a *App) Policy() *policy.Policy { return a.currentPipeline().policy }
