package core

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/chain"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/policy"
	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// chainJournal stores the finished steps of chains that wait for an approval; see
// chain.Journal. Two calls are the same if an approval of one is valid for the other.
type chainJournal struct{ a *App }

// key returns the store key of a chain call's finished steps: a digest of the tool, its
// scope, the caller's entry point, profile and signed-in user, and the arguments. It
// returns INVALID_PARAMS for ambiguous arguments.
func (j chainJournal) key(req *call.Request) (string, error) {
	args, err := req.Arguments()
	if err != nil {
		return "", err
	}
	canonical, ok := jsonrpc.Canonical(nil, args)
	if !ok {
		return "", toolerr.New(toolerr.InvalidParams, "the arguments of %s are ambiguous: a member appears twice, or they are nested too deep", req.Tool.Name)
	}
	c := req.Caller
	sum := sha256.Sum256(fingerprint([]any{
		req.Tool.Name, req.Tool.Definition, j.a.approvalScope(req.Tool).Identity, c.EntryPoint, c.Profile, c.User, c.Subject, canonical,
	}))
	return "chain/" + hex.EncodeToString(sum[:]), nil
}

// LoadAndLock returns the stored steps; nil without any. Only one call of all hosts on this
// machine gets them at a time; others get CONFLICT. Hosts on several machines that share a
// store do not exclude each other; a step that needs approval still runs once, because its
// approval is valid once.
func (j chainJournal) LoadAndLock(ctx context.Context, req *call.Request) (*chain.StoredSteps, error) {
	if j.a.store == nil || !j.mayHaveSteps() {
		return nil, nil // nothing was ever stored; do not open the store
	}
	key, err := j.key(req)
	if err != nil {
		return nil, err
	}
	if _, err = j.a.store.Keys.Get(ctx, key); toolerr.Is(err, toolerr.NotFound) {
		return nil, nil
	}
	release, err := j.a.claim(ctx, key)
	if toolerr.Is(err, toolerr.Locked) {
		return nil, toolerr.New(toolerr.Conflict, "%s: this call is pending and is being continued; wait for its result", req.Tool.Name)
	}
	if err != nil {
		return nil, err
	}
	entry, err := j.a.store.Keys.Get(ctx, key) // read again, now that nobody else has the claim
	if err != nil {
		release()
		if toolerr.Is(err, toolerr.NotFound) {
			err = nil
		}
		return nil, err
	}
	drop := func(ctx context.Context) {
		if err := j.a.store.Keys.Delete(ctx, key, store.Any); err != nil {
			j.a.notify(fmt.Sprintf("the journal of %s cannot be deleted; a call before %s reuses its finished steps: %v",
				req.Tool.Name, entry.Expires.Format(time.TimeOnly), err))
		}
	}
	return &chain.StoredSteps{Value: entry.Value, Until: entry.Expires, Drop: drop, Release: release}, nil
}

// mayHaveSteps reports whether the store may contain finished steps: this host stored some
// for a pending approval, or a store file of an earlier host exists. If not, Take does not
// open the store.
func (j chainJournal) mayHaveSteps() bool {
	asks := func(r policy.Rule) bool { return r.Do == policy.Ask }
	return j.a.storeUsed.Load() || slices.ContainsFunc(j.a.currentPipeline().cfg.Policy.Rules, asks) ||
		j.a.Config.Store.URL == "" && j.a.storedTools.stored.Exists()
}

// CheckAllowed returns an error if the current policy would refuse a step that was made before
// the chain waited, as if it were made now by this caller.
func (j chainJournal) CheckAllowed(ctx context.Context, req *call.Request, name string, arguments json.RawMessage) error {
	caller, err := nestedCaller(req)
	if err != nil {
		return err
	}
	tool, ok := j.a.Catalog.Lookup(ctx, name)
	if !ok {
		return toolerr.New(toolerr.ToolNotFound, "no tool %q", name)
	}
	made, err := (&call.Request{Tool: tool, Caller: caller}).WithArguments(arguments)
	if err != nil {
		return err
	}
	return j.a.currentPipeline().cfg.Policy.Check(made)
}

// Save stores the state of a chain's call until a time. It returns errNoStore without a
// store.
func (j chainJournal) Save(ctx context.Context, req *call.Request, value []byte, until time.Time) error {
	if j.a.store == nil {
		return errNoStore
	}
	key, err := j.key(req)
	if err != nil {
		return err
	}
	j.a.storeUsed.Store(true)
	_, err = j.a.store.Keys.Put(ctx, key, value, store.Any, until)
	return err
}
