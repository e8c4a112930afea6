package approve

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Keys holds the operations of the store that a Store needs; package store documents them.
// version is the expected version of the key, 0 for a key that must not exist; with
// another version, Put and Delete return CONFLICT.
type Keys interface {
	// Get returns the entry of a key, or NOT_FOUND.
	Get(ctx context.Context, key string) (Entry, error)
	// Put sets the value of a key until it expires, and returns the new version.
	Put(ctx context.Context, key string, value []byte, version int64, expires time.Time) (int64, error)
	// Delete removes a key.
	Delete(ctx context.Context, key string, version int64) error
	// List returns at most limit entries whose keys begin with prefix and sort behind
	// after.
	List(ctx context.Context, prefix, after string, limit int) ([]Entry, error)
}

// An Entry is a key and its value.
type Entry struct {
	Key     string
	Value   []byte
	Version int64
}

// A Store holds the requests for approval. Each change of a record is one
// compare-and-swap, so that of several simultaneous changes one is first, and a killed
// host leaves a record before or after a change.
type Store struct {
	Keys    Keys
	Now     func() time.Time // nil: time.Now
	Expires time.Duration    // lifetime of a pending request and of an unused decision; 0: as in Config
	Lease   time.Duration    // time without renewal after which a run counts as interrupted; 0: 30 s
}

// now returns the time of b.Now, or the current time without it.
func (b *Store) now() time.Time {
	if b.Now != nil {
		return b.Now()
	}
	return time.Now()
}

// expires returns how long a request or decision is valid: Expires, or the default of
// Config.Expires if it is 0.
func (b *Store) expires() time.Duration { return Config{Expires: b.Expires}.withDefaults().Expires }

// lease returns how long a run counts as running after its last renewal, by default 30 s.
func (b *Store) lease() time.Duration {
	if b.Lease > 0 {
		return b.Lease
	}
	return 30 * time.Second
}

// read returns the record at a key and its version; nil and 0 without a record. It returns
// INTERNAL for a malformed one.
func (b *Store) read(ctx context.Context, key string) (*Record, int64, error) {
	entry, err := b.Keys.Get(ctx, key)
	if toolerr.Is(err, toolerr.NotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	r := new(Record)
	if err := json.Unmarshal(entry.Value, r); err != nil {
		return nil, 0, toolerr.New(toolerr.Internal, "the record %s is malformed: %w", key, err)
	}
	return r, entry.Version, nil
}

// write stores a record at a key that has the given version. Otherwise it returns
// CONFLICT.
func (b *Store) write(ctx context.Context, key string, r *Record, version int64) error {
	value, err := jsonrpc.Marshal(r)
	if err != nil {
		return err
	}
	_, err = b.Keys.Put(ctx, key, value, version, r.keptUntil())
	return err
}

// maxTries bounds the attempts of a change while other processes change the record.
const maxTries = 1000

// change applies f to the record at a key, nil if none exists, and repeats it if another
// process changed the record meanwhile. f returns the new record, or nil to keep the old
// one. change returns the record as it is then, and the error of f or of the store.
func (b *Store) change(ctx context.Context, key string, f func(*Record) (*Record, error)) (*Record, error) {
	var err error
	for range maxTries {
		was, version, fault := b.read(ctx, key)
		if fault != nil {
			return nil, fault
		}
		next, fault := f(was)
		if fault != nil || next == nil {
			return was, fault
		}
		if err = b.write(ctx, key, next, version); err == nil {
			return next, nil
		}
		if !toolerr.Is(err, toolerr.Conflict) {
			return nil, err
		}
	}
	return nil, err
}

// findOrCreate returns the record of a call, or creates a pending one. If the record is
// approved, or waits for the next round of this call, it becomes running; the caller must
// then return run. It returns LIMIT_REACHED if too many requests are pending, and CONFLICT
// if the round was already made.
func (b *Store) findOrCreate(ctx context.Context, s subject, req *call.Request, reason, token string) (r *Record, run string, err error) {
	mine, round := randomText(15), roundOf(req)
	var slot string // reserved for the request
	r, err = b.change(ctx, s.key, func(was *Record) (*Record, error) {
		run = ""
		now := b.now()
		if was != nil {
			state := was.StateAt(now)
			if was.Digest != s.digest && state != Lapsed && state != Done {
				return nil, toolerr.New(toolerr.Conflict, "another call is pending under the same key; try again later")
			}
			switch {
			case state == Pending, state == Running, state == Denied && now.Before(was.Expires):
				return nil, nil
			case state == Approved, state == Asking && was.Round == round:
				next := *was
				next.State, next.Run, next.Expires = Running, mine, now.Add(b.lease())
				if next.Began.IsZero() {
					next.Began = now
				}
				run = mine
				return &next, nil
			case state == Asking && round != "":
				return nil, toolerr.New(toolerr.Conflict, "%s: this round of the call was already made; continue from its answer, or repeat the call without requestState", req.Tool.Name)
			}
		}
		next := &Record{
			ID: s.newID(), State: Pending, Tool: req.Tool.Name, Server: req.Tool.Server, Where: s.scopeText, Args: s.args,
			Caller: Caller{req.Caller.EntryPoint, req.Caller.Profile, req.Caller.User, req.Caller.ID, req.Caller.Depth},
			Reason: reason, Created: now, Expires: now.Add(b.expires()), Digest: s.digest, Tokens: []string{digest(token)},
		}
		if was != nil && was.Digest == s.digest {
			next.Reason += was.earlierDecision(now)
		}
		b.releaseSlot(ctx, slot) // of an earlier attempt, before which another process created the record
		slot = next.ID
		if err := b.reserveSlot(ctx, next, req.Caller.AccountName()); err != nil {
			slot = ""
			return nil, err
		}
		return next, nil
	})
	if slot != "" && (err != nil || r.ID != slot) {
		b.releaseSlot(ctx, slot)
	}
	return r, run, err
}

// earlierDecision returns information about an earlier equal request for the person who
// decides.
func (r *Record) earlierDecision(now time.Time) string {
	switch r.StateAt(now) {
	case Interrupted:
		return "; it was approved before, as " + r.ID + ", but the host that ran it has ended: it may have taken effect"
	case Asking:
		return "; it was approved before, as " + r.ID + ", and started, but its server's question was not answered"
	}
	return ""
}

// List returns all stored records, the oldest first, without malformed ones.
func (b *Store) List(ctx context.Context) ([]*Record, error) {
	all := []*Record{}
	after := ""
	for {
		page, err := b.Keys.List(ctx, keyPrefix, after, 1000)
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			break
		}
		for _, entry := range page {
			after = entry.Key
			r := new(Record)
			if json.Unmarshal(entry.Value, r) == nil {
				all = append(all, r)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *Record) int { return a.Created.Compare(b.Created) })
	return all, nil
}

// Find returns the record whose id begins with id. It returns NOT_FOUND if none exists, and an
// error if there are several.
func (b *Store) Find(ctx context.Context, id string) (*Record, error) {
	if key, err := keyOf(id); err == nil {
		r, _, err := b.read(ctx, key)
		if err != nil {
			return nil, err
		}
		if r == nil || r.ID != id {
			return nil, notFoundError(id)
		}
		return r, nil
	}
	all, err := b.List(ctx)
	if err != nil {
		return nil, err
	}
	var found *Record
	for _, r := range all {
		if id == "" || !strings.HasPrefix(r.ID, id) {
			continue
		}
		if found != nil {
			return nil, toolerr.New(toolerr.InvalidInput, "several approvals begin with %q; give more of the id", id)
		}
		found = r
	}
	if found == nil {
		return nil, notFoundError(id)
	}
	return found, nil
}

// notFoundError returns NOT_FOUND for the id of a request.
func notFoundError(id string) error {
	return toolerr.New(toolerr.NotFound, "no approval %.40q; approvals list shows the pending ones", id)
}

// renew renews the lease of a run; it returns the error of recordOfRun.
func (b *Store) renew(ctx context.Context, key, run string) error {
	return b.recordOfRun(ctx, key, run, func(next *Record) { next.Expires = b.now().Add(b.lease()) })
}

// finishRecord makes the record of a run done, with its outcome, and shortens and masks its
// arguments. It returns the error of recordOfRun.
func (b *Store) finishRecord(ctx context.Context, key, run, outcome string) error {
	return b.recordOfRun(ctx, key, run, func(next *Record) {
		next.State, next.Outcome, next.Ended, next.Round = Done, outcome, b.now(), ""
		next.Expires = next.Ended
		next.redactFinished()
	})
}

// restoreApproval ends a run that had no effect, so that the call can be repeated. The
// record is approved again, or, after the first round, ready for the same round again. It
// expires as it would have without the run. It returns the error of recordOfRun.
func (b *Store) restoreApproval(ctx context.Context, key, run string) error {
	return b.recordOfRun(ctx, key, run, func(next *Record) {
		if next.Run = ""; next.Rounds > 0 { // the round can be repeated
			next.State, next.Expires = Asking, next.Began.Add(b.expires())
			return
		}
		next.State, next.Expires, next.Began = Approved, next.At.Add(b.expires()), time.Time{}
	})
}

// continueRecord keeps the approval for the next round of the same call, which must have
// the digest round. All rounds together must end within the lifetime of the approval. It
// returns the error of recordOfRun.
func (b *Store) continueRecord(ctx context.Context, key, run, round string) error {
	return b.recordOfRun(ctx, key, run, func(next *Record) {
		next.State, next.Run, next.Round, next.Expires = Asking, "", round, next.Began.Add(b.expires())
		next.Rounds++
	})
}

// recordOfRun changes the record of a run by f. It returns CONFLICT if the record does
// not belong to that run any more.
func (b *Store) recordOfRun(ctx context.Context, key, run string, f func(*Record)) error {
	_, err := b.change(ctx, key, func(was *Record) (*Record, error) {
		if was == nil || was.Run != run || was.State != Running {
			return nil, toolerr.New(toolerr.Conflict, "the run was cancelled")
		}
		next := *was
		f(&next)
		return &next, nil
	})
	return err
}

// addToken adds a one-time token to a request. ok is false if the request has
// maxTokens. Earlier tokens stay valid, because they may have been sent.
func (b *Store) addToken(ctx context.Context, id, token string) (ok bool, err error) {
	err = b.changeUnannounced(ctx, id, func(r *Record) {
		if ok = len(r.Tokens) < maxTokens; ok {
			r.Tokens = append(slices.Clone(r.Tokens), digest(token))
		}
	})
	return ok, err
}

// recordNotified records that the notification of a request was sent.
func (b *Store) recordNotified(ctx context.Context, id string) error {
	return b.changeUnannounced(ctx, id, func(r *Record) { r.Notified = true })
}

// spendDenial makes a denial that holds for one call expire, after that call was refused.
func (b *Store) spendDenial(ctx context.Context, r *Record) error {
	if !r.Once {
		return nil
	}
	key, err := keyOf(r.ID)
	if err != nil {
		return err
	}
	_, err = b.change(ctx, key, func(was *Record) (*Record, error) {
		if was == nil || was.ID != r.ID || was.State != Denied {
			return nil, nil
		}
		next := *was
		next.Expires = b.now()
		return &next, nil
	})
	return err
}

// changeUnannounced applies f to the request with an id if its notification was not sent
// yet; otherwise, and without such a request, it does nothing and returns nil.
func (b *Store) changeUnannounced(ctx context.Context, id string, f func(*Record)) error {
	key, err := keyOf(id)
	if err != nil {
		return err
	}
	_, err = b.change(ctx, key, func(was *Record) (*Record, error) {
		if was == nil || was.ID != id || was.Notified {
			return nil, nil
		}
		next := *was
		f(&next)
		return &next, nil
	})
	return err
}
