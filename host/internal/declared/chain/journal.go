package chain

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A Journal stores the finished steps of calls that wait for a decision, so that the
// same call continues from there when it is repeated, even if the process was killed.
type Journal interface {
	// Take returns what was kept of the same call, for this one alone to go on
	// with; nil: nothing was. It stays kept.
	Take(ctx context.Context, req *call.Request) (*Kept, error)

	// Allowed reports why the caller must not make a call of a tool, whose
	// result is known; nil: it may.
	Allowed(ctx context.Context, req *call.Request, tool string, arguments json.RawMessage) error

	// Keep replaces the stored data, until a time.
	Keep(ctx context.Context, req *call.Request, value []byte, until time.Time) error
}

// Kept holds the steps of an earlier call that this call continues.
type Kept struct {
	Value   []byte
	Until   time.Time
	Drop    func(ctx context.Context) // keeps nothing any more
	Release func()                    // lets others go on with it
}

// maxJournal bounds the stored data of one call, including unchanged results.
const maxJournal = 900 << 10

// patience is the time after an unanswered question in which the call may be repeated.
// keepTime limits writing it down.
const (
	patience = 10 * time.Minute
	keepTime = 10 * time.Second
)

// begin looks for the results of a call that this one goes on with. end is to
// be called when this one is over.
func (r *run) begin(ctx context.Context) (end func(), err error) {
	r.made, end = map[string]json.RawMessage{}, func() {}
	if r.journal == nil {
		return end, nil
	}
	kept, err := r.journal.Take(ctx, r.req)
	if err != nil || kept == nil {
		return end, err
	}
	if err := json.Unmarshal(kept.Value, &r.made); err != nil {
		kept.Drop(ctx)
		kept.Release()
		return nil, toolerr.New(toolerr.Internal, "the journal of this call is malformed: %w", err)
	}
	r.again = kept
	return kept.Release, nil
}

// waits reports whether a call waits for somebody's decision.
func waits(err error) bool { return toolerr.Is(err, toolerr.PendingApproval) }

// goesOn reports whether a call that ended with err can be continued when it is
// repeated. A call that continues an earlier one stays continuable if the cause of its
// end is outside of it.
func (r *run) goesOn(ctx context.Context, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	unanswered := ctx.Err() != nil && r.open > 0
	return err != nil && len(r.made) > 0 && (waits(err) || unanswered || r.again != nil && (ctx.Err() != nil || passes(err)))
}

// passes reports whether an error is of what may be otherwise the next time,
// while the call is as it was.
func passes(err error) bool {
	switch toolerr.CodeOf(err) {
	case toolerr.RateLimited, toolerr.ServerOffline, toolerr.TransportError, toolerr.Timeout, toolerr.PolicyDenied:
		return true
	}
	return false
}

// over stores the finished steps if the call can be continued after err, otherwise it
// removes them. It returns the error for the caller.
func (r *run) over(ctx context.Context, err error) error {
	if !r.goesOn(ctx, err) {
		if r.again != nil {
			late, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTime)
			defer cancel()
			r.again.Drop(late)
		}
		return err
	}
	now := time.Now()
	until := now.Add(patience)
	var waiting *call.PendingError
	if errors.As(err, &waiting) && !waiting.Pending.ExpiresAt.IsZero() {
		// As long as there is to decide, and as long again to come back.
		until = waiting.Pending.ExpiresAt.Add(max(0, waiting.Pending.ExpiresAt.Sub(now)) + time.Minute)
	}
	fault := r.keep(ctx, until)
	if fault == nil || waiting == nil {
		return err
	}
	told := *waiting
	told.Resumes = false
	told.Pending.Message += ". Then the steps before it run again, because their results cannot be saved: " + fault.Error()
	return &told
}

// keep keeps what was done until a time.
func (r *run) keep(ctx context.Context, until time.Time) error {
	if r.journal == nil {
		return errors.New("no store")
	}
	r.keeping.Lock() // what is kept is never less than what was
	defer r.keeping.Unlock()
	r.mu.Lock()
	value, err := jsonrpc.Marshal(r.made)
	r.mu.Unlock()
	if err == nil && len(value) > maxJournal {
		err = toolerr.New(toolerr.TooLarge, "%d bytes, more than %d", len(value), maxJournal)
	}
	if err != nil {
		return err
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTime)
	defer cancel()
	return r.journal.Keep(late, r.req, value, until)
}

// placed identifies a step by its position and the results that its arguments refer
// to: if a result has changed since the step waited, it is a different step. The
// call's own arguments are the same.
func (r *run) placed(at string, arguments json.RawMessage) string {
	if arguments == nil {
		return at
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var given []byte
	for _, ref := range refsIn(arguments) {
		if ref.root == "steps" {
			one := r.scope.steps[ref.step]
			given = append(given, one.sum[:]...)
		}
	}
	if given == nil {
		return at
	}
	sum := sha256.Sum256(given)
	return at + " " + hex.EncodeToString(sum[:8])
}

// before returns the result of a step that an earlier call made, nil if none exists.
func (r *run) before(at string) *outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	raw, ok := r.made[at]
	if !ok {
		return nil
	}
	res := &call.Result{Raw: raw}
	return &outcome{result: res, failed: res.IsError()}
}

// did notes what a step has given, and returns it as it is when it was kept, so
// that what is made of it is the same then. Of a call that goes on with another
// it is kept at once: killed now, it goes on from here.
func (r *run) did(ctx context.Context, at string, res *call.Result) *call.Result {
	var compact bytes.Buffer
	if json.Compact(&compact, res.Raw) == nil {
		res = &call.Result{Raw: compact.Bytes()}
	}
	r.mu.Lock()
	r.made[at] = res.Raw
	r.mu.Unlock()
	if r.again != nil {
		until := time.Now().Add(patience)
		if r.again.Until.After(until) {
			until = r.again.Until
		}
		r.keep(ctx, until) //nolint:errcheck // what was kept before still is; the end says so
	}
	return res
}

// asking returns the request with an Ask that knows of questions that are not
// answered.
func (r *run) asking(req *call.Request) *call.Request {
	if req.Ask == nil {
		return req
	}
	asked := *req
	asked.Ask = func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		r.mu.Lock()
		r.open++
		r.mu.Unlock()
		answer, err := req.Ask(ctx, method, params)
		if ctx.Err() == nil {
			r.mu.Lock()
			r.open--
			r.mu.Unlock()
		}
		return answer, err
	}
	return &asked
}
