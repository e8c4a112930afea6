package core

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/timeout"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream/oauth"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// unlistedTools returns the stage for calls of tools whose server could not be listed so
// far: a client can know them from an earlier session. It lists the server as a call would,
// with a sign-in through the client if it is needed, and makes the call with the listed
// tool. If the server cannot be listed, the call passes the other stages all the same,
// which count and limit it as other failed calls. A call that the policy denies is not a
// reason to list the server.
func (a *App) unlistedTools(p pipeline) call.Stage {
	list := call.Chain(func(ctx context.Context, req *call.Request) (*call.Result, error) {
		return &call.Result{}, a.listForCall(ctx, req)
	}, p.limiter.Stage, timeout.New(p.cfg.Timeout))
	return func(next call.Handler) call.Handler {
		return func(ctx context.Context, req *call.Request) (*call.Result, error) {
			if req.Tool.Unlisted == nil {
				return next(ctx, req)
			}
			listed, err := findUnlisted(ctx, req, p, list)
			if err != nil {
				return nil, err
			}
			return next(ctx, listed)
		}
	}
}

// findUnlisted has the servers listed that may have the tool of req, one after another, and
// returns req with the listed tool. It returns req with an unlisted tool that has Err set
// if the policy denies the call, or if a server could not be listed and no other has the
// tool. The error says that the servers are listed and none of them has the tool, that the
// request is wrong, or that ctx has ended.
func findUnlisted(ctx context.Context, req *call.Request, p pipeline, list call.Handler) (*call.Request, error) {
	find := req.Tool.Unlisted.Find
	var failed *call.Request
	var missing error
	for _, tool := range slices.Concat([]*call.Tool{req.Tool}, req.Tool.Unlisted.Others) {
		one := *req
		one.Tool = tool
		if p.cfg.Policy.Check(&one) != nil {
			return withListError(&one, errNotListed), nil
		}
		_, err := list(ctx, &one)
		if ctx.Err() != nil {
			return nil, cmp.Or(err, ctx.Err()) // ctx can end after the list
		}
		if err != nil {
			if failed == nil {
				failed = withListError(&one, err)
			}
			continue
		}
		one.Tool, err = find(ctx)
		switch {
		case err != nil:
			missing = err
		case one.Caller.Tools != nil && !one.Caller.Tools(one.Tool.Name): // its other names are known now
			return nil, toolerr.New(toolerr.ToolNotFound, "no tool %q", one.Tool.Name)
		default:
			return &one, nil
		}
	}
	if failed != nil {
		return failed, nil
	}
	return nil, missing
}

// errNotListed is the error of a call of a tool whose server was not listed for the call.
var errNotListed = toolerr.New(toolerr.ServerOffline, "the server has not listed its tools")

// withListError returns req with an unlisted tool whose Err is err.
func withListError(req *call.Request, err error) *call.Request {
	tool := *req.Tool
	tool.Unlisted = &call.Unlisted{Err: err}
	failed := *req
	failed.Tool = &tool
	return &failed
}

// listForCall lists the server of an unlisted tool for its caller, if necessary after a
// sign-in through the caller's client, and then has the catalog list it. It returns the
// error of a call that cannot connect to the server.
func (a *App) listForCall(ctx context.Context, req *call.Request) error {
	name := req.Tool.Server
	s, leave, err := a.acquireServer(name)
	if err != nil {
		return err
	}
	defer leave()
	a.requestReplacement(name)
	list := s.Tools
	p, ok := a.snapshot.Load().byName[name]
	own := ok && req.Caller.User != "" && a.usesCallerCredentials(p.cfg)
	if own {
		list = func(ctx context.Context) ([]json.RawMessage, error) { return s.ListFor(ctx, req.Caller) }
	}
	before := a.signIns.count.Load()
	if err = req.Tool.Unlisted.Err; err == nil || own || errors.Is(err, oauth.ErrSignIn) { // another call can have signed in
		_, err = list(ctx)
	}
	if err != nil {
		var again bool
		if again, err = a.signInThroughClient(ctx, req, before, err); again {
			_, err = list(ctx)
		}
	}
	if err == nil && !a.Catalog.HasListed(name) {
		a.Catalog.Relist(ctx, name)
		a.Catalog.Refresh(name, call.Resources, call.Templates, call.Prompts)
		if !a.Catalog.HasListed(name) {
			err = errors.Join(a.ListErrors(name)...)
		}
	}
	if answered := new(call.MCPError); errors.As(err, &answered) { // it answers tools/list, not the call
		err = toolerr.New(toolerr.ServerOffline, "its tools cannot be listed: %s", answered.Error())
	}
	if err == nil || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return err
	}
	return &call.ExecutionError{
		Tool: req.Tool.Name, Phase: call.PhaseConnect, Cause: err,
		Message: fmt.Sprintf("server %s could not execute %s", name, req.Tool.Name),
	}
}
