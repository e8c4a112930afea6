// Package approve is the stage that holds back calls until a person approves them, if a rule
// of the policy requires it.
//
// # Procedure
//
// The stage stores a request for approval and asks the person at the caller's client, if the
// client supports that (elicitation, in either era). Otherwise, and if the question is
// dismissed, the call is answered with PENDING_APPROVAL and the request's id. A person
// approves the request, approves it with other arguments, or denies it, by command line, HTTP
// or callback. The caller repeats the same call, which then runs. The first decision counts.
//
// A request is for one tool with its definition, one server with its configuration, one
// directory with its roots, one set of arguments, one entry point, user and profile. The same
// call by another client of that user and entry point finds the same request. The call runs
// as it was shown: with the arguments of the request or those of the decision, never with
// those of the repetition. From the repetition it takes only harmless members: the progress
// token and the trace context.
//
// # States
//
//	pending → approved → running → done
//	        ↘ denied         ↕
//	                      asking
//
// Each transition is one compare-and-swap in the store, so the host may be killed at any time:
//
//   - Before a decision, the request stays pending, and the same call finds it.
//   - An approval is valid until it expires, for one call.
//   - While the call runs, a lease is renewed. If the host is killed then, it is unknown whether
//     the call took effect, and it is not repeated. After the lease has expired, the same call
//     asks again, and the new request says so.
//   - A modern server may answer a modern client with a question. The approval is then reserved
//     for the next round of that call, which carries the server's request state.
//
// So a call runs at most once for each approval. If the call did not reach its server (the
// server did not start, the queue was full, the caller gave up while it waited), its approval
// stays valid until it expires. An error POLICY_DENIED or INVALID_PARAMS uses it up.
//
// A denial is valid until it expires, or for one call if the decision says so; then the same
// call asks again. Requests and decisions expire after five minutes. A caller may have 25
// pending requests, an entry point 75, and all together 100.
package approve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Config holds the settings of the stage. Zero values mean the defaults.
type Config struct {
	Expires   time.Duration // lifetime of an undecided request and of an unused decision; 5 min
	Wait      time.Duration // time that a call waits for a decision before it is answered; 0: none
	ClientOff bool          // do not ask the caller's client
	PublicURL string        // address of this host's /v1 for others; "": the result of URL
	Callback  Callback

	// URL, unless nil, returns the address at which this host serves HTTP; "": none.
	URL func() string

	// Scope, unless nil, returns where a call of a tool has its effect. An approval
	// holds only there. Before the call is made, CheckScope checks that the scope is
	// still the same.
	Scope func(t *call.Tool) Scope
}

// withDefaults returns the settings with a lifetime of 5 minutes, unless Expires is set.
func (c Config) withDefaults() Config {
	if c.Expires <= 0 {
		c.Expires = 5 * time.Minute
	}
	return c
}

// Validate returns an error that names the wrong field.
func (c Config) Validate() error {
	switch {
	case c.Expires < 0:
		return fmt.Errorf("approval: expires must not be negative, got %v", c.Expires)
	case c.Expires > 0 && c.Expires < time.Second:
		return fmt.Errorf("approval: expires must be at least a second, got %v", c.Expires)
	case c.Wait < 0:
		return fmt.Errorf("approval: wait must not be negative, got %v", c.Wait)
	}
	return c.Callback.validate()
}

// url returns the address under which callbacks find the decisions, "" if none exists.
func (c Config) url() string {
	if c.PublicURL != "" || c.URL == nil {
		return c.PublicURL
	}
	return c.URL()
}

// A Stage obtains approvals. Close it after the last call.
type Stage struct {
	cfg      Config
	store    *Store
	check    func(ctx context.Context, req *call.Request) error
	notifier *notifier

	askingClient sync.Map // ids of requests about which a client is being asked
	secret       atomic.Pointer[[]byte]
}

// New returns the stage. check returns an error if a call must not be made with its
// arguments; it gets the arguments of the call as it would be made.
func New(c Config, store *Store, check func(ctx context.Context, req *call.Request) error) *Stage {
	return &Stage{cfg: c, store: store, check: check, notifier: newNotifier(c, store)}
}

// Close stops the notifications.
func (s *Stage) Close() { s.notifier.close() }

// Stage returns a handler that makes a call with next only if a person has approved it.
// Otherwise it asks and waits, or returns a *call.PendingError or POLICY_DENIED.
func (s *Stage) Stage(next call.Handler) call.Handler {
	return func(ctx context.Context, req *call.Request) (*call.Result, error) {
		asked := false
		for {
			// Compute it again after a question: the tool's server may have been
			// replaced.
			of, err := s.subject(ctx, req)
			if err != nil {
				return nil, err
			}
			token := randomText(15)
			r, run, err := s.store.findOrCreate(ctx, of, req, reason(req), token)
			if err != nil {
				return nil, s.storeError(req, err)
			}
			switch r.StateAt(s.store.now()) {
			case Pending:
				if asked {
					return nil, s.pendingError(r)
				}
				asked = true
				if err := s.notify(ctx, r, token); err != nil {
					return nil, s.storeError(req, err)
				}
				if err := s.awaitDecision(ctx, req, r); err != nil && ctx.Err() != nil {
					return nil, s.pendingError(r) // the caller's time is over; the request stays pending
				} else if err != nil {
					return nil, err
				}
			case Denied:
				if err := s.store.spendDenial(ctx, r); err != nil {
					return nil, s.storeError(req, err)
				}
				return nil, deniedError(r)
			case Running:
				if run != "" {
					return s.run(ctx, req, r, of, run, next)
				}
				return nil, toolerr.New(toolerr.Conflict, "%s: this call was approved (%s) and is running; wait for its result", req.Tool.Name, r.ID)
			}
		}
	}
}

// subject returns what an approval of this call covers; see type subject. It reads the
// store's secret at the first call. It returns the errors of subjectOf and storeError.
func (s *Stage) subject(ctx context.Context, req *call.Request) (subject, error) {
	var of Scope
	if s.cfg.Scope != nil {
		of = s.cfg.Scope(req.Tool)
	}
	return subjectOf(req, of, func() ([]byte, error) {
		if known := s.secret.Load(); known != nil {
			return *known, nil
		}
		secret, err := s.store.secret(ctx)
		if err != nil {
			return nil, s.storeError(req, err)
		}
		s.secret.Store(&secret)
		return secret, nil
	})
}

// reason returns the text why a call needs approval: the reason of the policy's rule, or a
// general one.
func reason(req *call.Request) string {
	if req.Reason == "" {
		return "the policy of this host requires approval for this call"
	}
	return req.Reason
}

// storeError returns the error for a request that could not be stored.
func (s *Stage) storeError(req *call.Request, err error) error {
	if toolerr.Is(err, toolerr.LimitReached) || toolerr.Is(err, toolerr.Conflict) {
		return err
	}
	return &call.ExecutionError{
		Tool: req.Tool.Name, Phase: call.PhaseValidate, Cause: err,
		Message: req.Tool.Name + " needs approval, but the request cannot be saved",
	}
}

// deniedError returns the error for a call that a person denied: POLICY_DENIED with the
// person's name and note.
func deniedError(r *Record) error {
	detail := "this call was denied by " + r.By
	if r.Note != "" {
		detail += ": " + r.Note
	}
	return &call.ValidationError{Type: call.PolicyViolation, Tool: r.Tool, Detail: detail + "; continue without it"}
}

// awaitDecision asks the caller's client, if it can ask, and then waits at most
// Config.Wait for a decision in another way. If another call is asking the client, it waits
// for that decision. It returns nil even if there is no decision; the caller reads the record
// again.
func (s *Stage) awaitDecision(ctx context.Context, req *call.Request, r *Record) error {
	forms, _ := req.Caller.Elicitation()
	ask := !s.cfg.ClientOff && forms && req.Ask != nil && isShowable(r)
	_, asked := s.askingClient.Load(r.ID)
	if ask && !asked {
		_, asked = s.askingClient.LoadOrStore(r.ID, true)
	}
	switch {
	case asked: // another call asks the same question
		return s.waitUntilDecided(ctx, r, max(s.cfg.Wait, concurrentQuestionTimeout))
	case ask:
		defer s.askingClient.Delete(r.ID)
		if err := s.elicit(ctx, req, r); err != nil {
			return err
		}
	}
	return s.waitUntilDecided(ctx, r, s.cfg.Wait)
}

const (
	// concurrentQuestionTimeout bounds the wait of a call for the decision if an equal call
	// has asked the client; a longer Config.Wait replaces it.
	concurrentQuestionTimeout = 20 * time.Second
	// pollInterval is the interval at which Await reads the record.
	pollInterval = 250 * time.Millisecond
)

// waitUntilDecided waits until the request is decided or has expired, but no longer than
// atMost. It returns nil when that time is over, and the error of ctx if that ends first.
// Meanwhile the timeouts of the call are paused.
func (s *Stage) waitUntilDecided(ctx context.Context, r *Record, atMost time.Duration) error {
	if atMost <= 0 {
		return nil
	}
	defer call.PauseClocks(ctx)() // also of the calls of which this one is a step
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	_, err := s.store.Await(ctx, r.ID)
	if ctx.Err() == context.DeadlineExceeded || toolerr.Is(err, toolerr.NotFound) { // another request has replaced it
		return nil
	}
	return err
}

// Await waits until the request with an id is decided or has expired, and returns its
// record. It returns NOT_FOUND for an unknown id. If ctx ends first, it returns the pending
// record with the error of ctx.
func (b *Store) Await(ctx context.Context, id string) (*Record, error) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		r, err := b.Find(ctx, id)
		if err != nil || r.StateAt(b.now()) != Pending {
			return r, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return r, ctx.Err()
		}
	}
}

// notify queues the notification of a request, unless it is queued or was sent. If the host
// was killed before it was sent, a repeated call sends it. It returns the error of the
// store.
func (s *Stage) notify(ctx context.Context, r *Record, token string) error {
	if s.cfg.Callback.URL == "" || r.Notified || !s.notifier.claim(r.ID) {
		return nil
	}
	if !slices.Contains(r.Tokens, digest(token)) {
		if ok, err := s.store.addToken(ctx, r.ID, token); err != nil || !ok {
			s.notifier.release(r.ID)
			return err
		}
	}
	p := s.pendingOf(r)
	if r.Where != "" { // the person who decides must know the scope; the caller need not
		p.Metadata["where"] = r.Where
	}
	s.notifier.enqueue(r, p, token)
	return nil
}

// pendingError returns the error for a call that waits for a decision. Nothing of the call
// was done.
func (s *Stage) pendingError(r *Record) error {
	return &call.PendingError{Pending: s.pendingOf(r), Resumes: true}
}

// pendingOf returns the description of a request for the caller and for notifications.
func (s *Stage) pendingOf(r *Record) call.Pending {
	at := r.Expires.UTC().Truncate(time.Second)
	p := call.Pending{
		ID: r.ID, Reason: r.Reason, Tool: r.Tool, Args: r.Args, ExpiresAt: at,
		Metadata: map[string]any{"server": r.Server, "entry_point": r.Caller.EntryPoint, "created": r.Created.UTC().Truncate(time.Second)},
	}
	if url := s.cfg.url(); url != "" {
		p.CallbackURL = url + "/v1/approvals/" + r.ID
	}
	p.Message = fmt.Sprintf("%s. Request %s waits for approval until %s: the user can approve the call with mcp-host approvals approve %s, or deny it with mcp-host approvals deny %s. "+
		"Tell the user, and after approval make exactly the same call again: it then runs once. Meanwhile, do not try to get the same result in another way",
		r.Reason, r.ID, shortTime(at, s.store.now()), r.ID, r.ID)
	return p
}

// shortTime formats a time in UTC, with the date unless that is today's.
func shortTime(at, now time.Time) string {
	if at.Sub(now) < 12*time.Hour {
		return at.Format(time.TimeOnly + "Z")
	}
	return at.Format(time.DateTime + "Z")
}

// run makes an approved call with next, in the run of its record with this random id, and
// records its outcome. The approval stays valid if the call did not reach its server, except
// for POLICY_DENIED and INVALID_PARAMS, or if it continues in another round.
func (s *Stage) run(ctx context.Context, req *call.Request, r *Record, of subject, run string, next call.Handler) (*call.Result, error) {
	key := of.key
	approved, err := onlyShownMembers(req, r.Arguments(), r.Rounds > 0)
	if err == nil {
		err = s.check(ctx, approved)
	}
	var sent atomic.Bool
	var res *call.Result
	if err == nil {
		approved.Dispatched = &sent
		res, err = s.runWithLease(s.withScope(ctx, approved.Tool, of.scopeIdentity), approved, key, run, next)
	}
	// Write it even if the caller has disconnected.
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	asked, state := false, json.RawMessage(nil)
	if err == nil && req.Caller.Modern && r.Rounds < maxRounds {
		state, asked = asksForInput(res)
	}
	var within *call.PendingError
	switch {
	case errors.As(err, &within) && within.Resumes: // a nested call waits, and the rest of this call follows later
		s.store.restoreApproval(late, key, run) //nolint:errcheck // as below
	case asked: // the rest of the call follows later
		s.store.continueRecord(late, key, run, roundWith(state, req.Caller)) //nolint:errcheck // as below
	case err != nil && !sent.Load() && !toolerr.Is(err, toolerr.PolicyDenied) && !toolerr.Is(err, toolerr.InvalidParams):
		s.store.restoreApproval(late, key, run) //nolint:errcheck // after a failure the lease runs out, and the next call asks again
	default:
		s.store.finishRecord(late, key, run, outcome(res, err)) //nolint:errcheck // as above
	}
	if err != nil {
		return nil, err
	}
	return withRemark(res, r), nil
}

// outcome returns the text for Record.Outcome: the error code of a call, or the status of
// its result.
func outcome(res *call.Result, err error) string {
	if err != nil {
		return string(toolerr.CodeOf(err))
	}
	return string(call.StatusOf(res, nil))
}

// runWithLease makes a call with next and renews the lease of its run meanwhile.
func (s *Stage) runWithLease(ctx context.Context, req *call.Request, key, run string, next call.Handler) (*call.Result, error) {
	defer s.keepLease(ctx, key, run)()
	return next(ctx, req)
}

// keepLease renews the lease of a run in the background until stop is called, even if ctx
// ends. stop waits for the end of the last renewal.
func (s *Stage) keepLease(ctx context.Context, key, run string) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(s.store.lease() / 3)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				s.store.renew(ctx, key, run) //nolint:errcheck // the next time may do
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
