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
	// LoadAndLock returns the stored data of an earlier identical call, and locks it for this
	// call; nil: nothing is stored. It does not remove the data.
	LoadAndLock(ctx context.Context, req *call.Request) (*StoredSteps, error)

	// CheckAllowed returns an error if the caller may not call the tool, although the
	// result is stored.
	CheckAllowed(ctx context.Context, req *call.Request, tool string, arguments json.RawMessage) error

	// Save replaces the stored data, which expires at until.
	Save(ctx context.Context, req *call.Request, value []byte, until time.Time) error
}

// StoredSteps holds the steps of an earlier call that this call continues.
type StoredSteps struct {
	Value   []byte
	Until   time.Time
	Drop    func(ctx context.Context) // removes the stored data
	Release func()                    // unlocks the stored data
}

// maxJournal bounds the stored data of one call, including unchanged results.
const maxJournal = 900 << 10

// unansweredLifetime is how long a call with an unanswered question can be repeated after
// that question. journalTimeout limits writing the journal.
const (
	unansweredLifetime = 10 * time.Minute
	journalTimeout     = 10 * time.Second
)

// loadJournal loads the results of an earlier call that this call continues. Without an
// error, call end after the call.
func (r *run) loadJournal(ctx context.Context) (end func(), err error) {
	r.results, end = map[string]json.RawMessage{}, func() {}
	if r.journal == nil {
		return end, nil
	}
	kept, err := r.journal.LoadAndLock(ctx, r.req)
	if err != nil || kept == nil {
		return end, err
	}
	if err := json.Unmarshal(kept.Value, &r.results); err != nil {
		kept.Drop(ctx)
		kept.Release()
		return nil, toolerr.New(toolerr.Internal, "the journal of this call is malformed: %w", err)
	}
	r.continued = kept
	return kept.Release, nil
}

// isPending reports whether a call waits for a decision.
func isPending(err error) bool { return toolerr.Is(err, toolerr.PendingApproval) }

// canContinue reports whether a call that ended with err can be continued when it is
// repeated. A call that continues an earlier one stays continuable if the cause of its
// end is outside of it.
func (r *run) canContinue(ctx context.Context, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	unanswered := ctx.Err() != nil && r.unanswered > 0
	return err != nil && len(r.results) > 0 && (isPending(err) || unanswered || r.continued != nil && (ctx.Err() != nil || isTemporary(err)))
}

// isTemporary reports whether the same call can succeed later despite the error.
func isTemporary(err error) bool {
	switch toolerr.CodeOf(err) {
	case toolerr.RateLimited, toolerr.ServerOffline, toolerr.TransportError, toolerr.Timeout, toolerr.PolicyDenied:
		return true
	}
	return false
}

// storeOrDropSteps stores the finished steps if the call can be continued after err, and
// otherwise removes them. It returns the error for the caller: err or, for a pending call whose
// steps could not be stored, a copy of it that says so. Other faults of the store are ignored.
func (r *run) storeOrDropSteps(ctx context.Context, err error) error {
	if !r.canContinue(ctx, err) {
		if r.continued != nil {
			late, cancel := context.WithTimeout(context.WithoutCancel(ctx), journalTimeout)
			defer cancel()
			r.continued.Drop(late)
		}
		return err
	}
	now := time.Now()
	until := now.Add(unansweredLifetime)
	var waiting *call.PendingError
	if errors.As(err, &waiting) && !waiting.Pending.ExpiresAt.IsZero() {
		// The time for the decision, and the same time again to repeat the call.
		until = waiting.Pending.ExpiresAt.Add(max(0, waiting.Pending.ExpiresAt.Sub(now)) + time.Minute)
	}
	fault := r.store(ctx, until)
	if fault == nil || waiting == nil {
		return err
	}
	told := *waiting
	told.Resumes = false
	told.Pending.Message += ". Then the steps before it run again, because their results cannot be saved: " + fault.Error()
	return &told
}

// store stores the finished steps in the journal until a time, even if ctx has ended. It
// returns TOO_LARGE for more than maxJournal bytes.
func (r *run) store(ctx context.Context, until time.Time) error {
	if r.journal == nil {
		return errors.New("no store")
	}
	r.storing.Lock() // so that an older state never replaces a newer one
	defer r.storing.Unlock()
	r.mu.Lock()
	value, err := jsonrpc.Marshal(r.results)
	r.mu.Unlock()
	if err == nil && len(value) > maxJournal {
		err = toolerr.New(toolerr.TooLarge, "%d bytes, more than %d", len(value), maxJournal)
	}
	if err != nil {
		return err
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), journalTimeout)
	defer cancel()
	return r.journal.Save(late, r.req, value, until)
}

// stepID identifies a step by its position and the results to which its arguments
// refer: after a change of such a result it is a different step. The call's own
// arguments do not change.
func (r *run) stepID(at string, arguments json.RawMessage) string {
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

// storedOutcome returns the result, in the earlier call, of the step with this stepID; nil
// if none exists.
func (r *run) storedOutcome(at string) *outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	raw, ok := r.results[at]
	if !ok {
		return nil
	}
	res := &call.Result{Raw: raw}
	return &outcome{result: res, failed: res.IsError()}
}

// record records the result of a step and returns it as it would be read from the
// journal, so that later steps get the same bytes now and after a restart. If this
// call continues another one, the journal is written at once, so that a kill of the
// process loses no step.
func (r *run) record(ctx context.Context, at string, res *call.Result) *call.Result {
	var compact bytes.Buffer
	if json.Compact(&compact, res.Raw) == nil {
		res = &call.Result{Raw: compact.Bytes()}
	}
	r.mu.Lock()
	r.results[at] = res.Raw
	r.mu.Unlock()
	if r.continued != nil {
		until := time.Now().Add(unansweredLifetime)
		if r.continued.Until.After(until) {
			until = r.continued.Until
		}
		r.store(ctx, until) //nolint:errcheck // the earlier data is still stored; the end of the call reports the error
	}
	return res
}

// countQuestions returns the request with an Ask that counts, in r.unanswered, the
// questions whose context ended before the answer.
func (r *run) countQuestions(req *call.Request) *call.Request {
	if req.Ask == nil {
		return req
	}
	asked := *req
	asked.Ask = func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		r.mu.Lock()
		r.unanswered++
		r.mu.Unlock()
		answer, err := req.Ask(ctx, method, params)
		if ctx.Err() == nil {
			r.mu.Lock()
			r.unanswered--
			r.mu.Unlock()
		}
		return answer, err
	}
	return &asked
}
