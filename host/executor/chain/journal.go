package chain

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/toolroom-mcp/toolroom/host/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A Journal keeps what calls have done that wait for somebody, so that the
// very same call, made again afterwards, goes on from there.
type Journal interface {
	// Take returns what was kept of the same call, which then is kept no more;
	// nil: nothing was.
	Take(ctx context.Context, req *call.Request) ([]byte, error)

	// Allowed reports why the caller must not make a call of a tool, whose
	// result is known; nil: it may.
	Allowed(ctx context.Context, req *call.Request, tool string, arguments json.RawMessage) error

	// Keep keeps it until a time.
	Keep(ctx context.Context, req *call.Request, value []byte, until time.Time) error
}

// maxJournal bounds what is kept of one call: results, as they are.
const maxJournal = 900 << 10

// patience is how long after a question that nobody answered the call may be
// made again; keepTime bounds how long writing that down may take.
const (
	patience = 10 * time.Minute
	keepTime = 10 * time.Second
)

// begun are the results of a call that this one goes on with.
func begun(ctx context.Context, journal Journal, req *call.Request) (map[string]json.RawMessage, error) {
	made := map[string]json.RawMessage{}
	if journal == nil {
		return made, nil
	}
	value, err := journal.Take(ctx, req)
	if err != nil || value == nil {
		return made, err
	}
	if err := json.Unmarshal(value, &made); err != nil {
		return nil, toolerr.New(toolerr.Internal, "what was kept of this call is malformed: %w", err)
	}
	return made, nil
}

// waits reports whether a call waits for somebody's decision.
func waits(err error) bool { return toolerr.Is(err, toolerr.PendingApproval) }

// goesOn reports whether a call that ended with err is to be gone on with when
// it is made again. One that goes on with another is so, too, where what kept it
// from its end is none of its own doing.
func (r *run) goesOn(ctx context.Context, err error) bool {
	unanswered := ctx.Err() != nil && r.open > 0
	return len(r.made) > 0 && (waits(err) || unanswered || r.again && (ctx.Err() != nil || passes(err)))
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

// keep keeps what was done when the call ended with err, if that is to be gone
// on with, and returns what the caller is told.
func (r *run) keep(ctx context.Context, journal Journal, req *call.Request, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.goesOn(ctx, err) {
		return err
	}
	now := time.Now()
	until := now.Add(patience)
	var waiting *call.PendingError
	if errors.As(err, &waiting) && !waiting.Pending.ExpiresAt.IsZero() {
		// As long as there is to decide, and as long again to come back.
		until = waiting.Pending.ExpiresAt.Add(max(0, waiting.Pending.ExpiresAt.Sub(now)) + time.Minute)
	}
	value, fault := jsonrpc.Marshal(r.made)
	if fault == nil && len(value) > maxJournal {
		fault = toolerr.New(toolerr.TooLarge, "they have %d bytes, of %d", len(value), maxJournal)
	}
	if fault == nil && journal == nil {
		fault = errors.New("there is no store")
	}
	if fault == nil {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTime)
		defer cancel()
		fault = journal.Keep(late, req, value, until)
	}
	if fault == nil || waiting == nil {
		return err
	}
	told := *waiting
	told.Resumes = false
	told.Pending.Message += ". The steps before it will be made again then, since their results cannot be kept: " + fault.Error()
	return &told
}

// placed is where a step is, and what the steps have given that its arguments
// refer to: where one was waited for, and has come to something else when the
// call goes on, the step is another. The call's own arguments are the same.
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

// before is what a step has given that was made before; nil: it was not.
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
// that what is made of it is the same then.
func (r *run) did(at string, res *call.Result) *call.Result {
	var compact bytes.Buffer
	if json.Compact(&compact, res.Raw) == nil {
		res = &call.Result{Raw: compact.Bytes()}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.made[at] = res.Raw
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
