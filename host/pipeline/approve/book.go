package approve

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Keys is what the book needs of a store; see package store for what is
// promised. was is 0 for a key that must not be there.
type Keys interface {
	Get(ctx context.Context, key string) (Entry, error)
	Put(ctx context.Context, key string, value []byte, was int64, expires time.Time) (int64, error)
	List(ctx context.Context, prefix, after string, limit int) ([]Entry, error)
}

// An Entry is a key and its value.
type Entry struct {
	Key     string
	Value   []byte
	Version int64
}

// A Book holds the requests for approval. Everything it does to a record is
// one compare-and-swap, so that of several who do something to it at once one
// is first, and a host that is killed leaves it before or after.
type Book struct {
	Keys    Keys
	Now     func() time.Time // nil: time.Now
	Expires time.Duration    // until a request is decided on, and a decision used; 0: 5 min
	Lease   time.Duration    // after which a run is given up that nobody renews; 0: 30 s
}

func (b *Book) now() time.Time {
	if b.Now != nil {
		return b.Now()
	}
	return time.Now()
}

func (b *Book) expires() time.Duration {
	if b.Expires > 0 {
		return b.Expires
	}
	return 5 * time.Minute
}

func (b *Book) lease() time.Duration {
	if b.Lease > 0 {
		return b.Lease
	}
	return 30 * time.Second
}

// read returns the record at a key; nil: there is none.
func (b *Book) read(ctx context.Context, key string) (*Record, int64, error) {
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

func (b *Book) write(ctx context.Context, key string, r *Record, was int64) error {
	value, err := jsonrpc.Marshal(r)
	if err != nil {
		return err
	}
	_, err = b.Keys.Put(ctx, key, value, was, r.Expires.Add(keepFor))
	return err
}

// maxTries bounds how often a change is tried that others are always before.
const maxTries = 1000

// change applies f to the record at a key, nil where there is none, until
// nobody has been before it. f returns the record as it is to be, nil for as
// it is.
func (b *Book) change(ctx context.Context, key string, f func(*Record) (*Record, error)) (*Record, error) {
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

// ask finds the record of a call, or makes one that is pending. One that is
// approved it takes: then run is what the caller has to give back.
func (b *Book) ask(ctx context.Context, s subject, req *call.Request, reason, token string) (r *Record, run string, err error) {
	mine := chance(15)
	r, err = b.change(ctx, s.key, func(was *Record) (*Record, error) {
		run = ""
		now := b.now()
		if was != nil {
			if was.Digest != s.digest && was.StateAt(now) != Lapsed && was.StateAt(now) != Done {
				return nil, toolerr.New(toolerr.Conflict, "another call waits under the same key; try again later")
			}
			switch was.StateAt(now) {
			case Pending:
				return nil, nil
			case Approved:
				next := *was
				next.State, next.Run, next.Began, next.Expires = Running, mine, now, now.Add(b.lease())
				run = mine
				return &next, nil
			case Running:
				return nil, nil
			case Denied:
				if now.Before(was.Expires) {
					return nil, nil
				}
			}
		}
		if err := b.room(ctx); err != nil {
			return nil, err
		}
		next := &Record{
			ID: s.newID(), State: Pending, Tool: req.Tool.Name, Server: req.Tool.Server, Args: s.args,
			Caller: Caller{req.Caller.Door, req.Caller.Profile, req.Caller.ID, req.Caller.Depth},
			Reason: reason, Created: now, Expires: now.Add(b.expires()), Digest: s.digest, Token: digest(token),
		}
		if was != nil && was.Digest == s.digest && was.StateAt(now) == Interrupted {
			next.Reason += "; it was approved before, as " + was.ID + ", and the host that made it has ended meanwhile: it may have had its effect"
		}
		return next, nil
	})
	return r, run, err
}

// room refuses more requests than somebody can look at.
func (b *Book) room(ctx context.Context) error {
	all, err := b.List(ctx)
	if err != nil {
		return err
	}
	n := 0
	for _, r := range all {
		if r.StateAt(b.now()) == Pending {
			n++
		}
	}
	if n >= MaxPending {
		return toolerr.New(toolerr.LimitReached, "%d calls wait for approval; go on without this one until some are decided on", n)
	}
	return nil
}

// List returns all records that are kept, the oldest first.
func (b *Book) List(ctx context.Context) ([]*Record, error) {
	all := []*Record{}
	after := ""
	for {
		page, err := b.Keys.List(ctx, prefix, after, 1000)
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

// Find returns the record whose id begins so.
func (b *Book) Find(ctx context.Context, id string) (*Record, error) {
	if key, err := keyOf(id); err == nil {
		r, _, err := b.read(ctx, key)
		if err != nil {
			return nil, err
		}
		if r == nil || r.ID != id {
			return nil, unknown(id)
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
		return nil, unknown(id)
	}
	return found, nil
}

func unknown(id string) error {
	return toolerr.New(toolerr.NotFound, "there is no approval %.40q; approvals list shows those there are", id)
}

// A Decision is what somebody says of a request.
type Decision struct {
	Approve bool
	Args    json.RawMessage // in place of the caller's; nil: as they are
	By      string          // who says so
	Note    string          // told to who called
}

// Decide decides on a pending request. Who is not the first is told who was.
func (b *Book) Decide(ctx context.Context, id string, d Decision) (*Record, error) {
	return b.decide(ctx, id, d, func(*Record) error { return nil })
}

// Authorize returns the request whose one-time token that is.
func (b *Book) Authorize(ctx context.Context, id, token string) (*Record, error) {
	key, err := keyOf(id)
	if err != nil {
		return nil, err
	}
	r, _, err := b.read(ctx, key)
	if err != nil {
		return nil, err
	}
	if r == nil || r.ID != id || !r.holds(token) {
		return nil, errToken
	}
	return r, nil
}

// errToken says no more than that: who has no token learns of no request.
var errToken = toolerr.New(toolerr.AuthFailed, "this is the address of no request for approval")

func (r *Record) holds(token string) bool {
	return subtle.ConstantTimeCompare([]byte(digest(token)), []byte(r.Token)) == 1
}

// Redeem decides with the one-time token of a request.
func (b *Book) Redeem(ctx context.Context, id, token string, d Decision) (*Record, error) {
	return b.decide(ctx, id, d, func(r *Record) error {
		if !r.holds(token) {
			return errToken
		}
		return nil
	})
}

func (b *Book) decide(ctx context.Context, id string, d Decision, may func(*Record) error) (*Record, error) {
	key, err := keyOf(id)
	if err != nil {
		return nil, err
	}
	switch {
	case len(d.Args) > MaxArgs:
		return nil, toolerr.New(toolerr.TooLarge, "the arguments have %d bytes, of %d", len(d.Args), MaxArgs)
	case len(d.Note) > maxNote:
		return nil, toolerr.New(toolerr.TooLarge, "the note has %d bytes, of %d", len(d.Note), maxNote)
	case d.Args != nil && !d.Approve:
		return nil, toolerr.New(toolerr.InvalidInput, "a call that is denied needs no arguments")
	}
	return b.change(ctx, key, func(was *Record) (*Record, error) {
		if was == nil || was.ID != id {
			return nil, unknown(id)
		}
		if err := may(was); err != nil {
			return nil, err
		}
		now := b.now()
		if state := was.StateAt(now); state != Pending {
			return nil, toolerr.New(toolerr.Conflict, "%s is not pending any more, but %s", id, was.said(state)).With("state", string(state))
		}
		next := *was
		next.State, next.By, next.At, next.Note = Denied, d.By, now, d.Note
		if next.Expires = now.Add(b.expires()); d.Approve {
			next.State, next.Edited = Approved, d.Args
		}
		return &next, nil
	})
}

// said tells a state and whose doing it is.
func (r *Record) said(state State) string {
	text := string(state)
	if r.By != "" {
		text += ", decided by " + r.By
	}
	return text
}

// renew keeps a run from being given up.
func (b *Book) renew(ctx context.Context, key, run string) error {
	return b.ofRun(ctx, key, run, func(next *Record) { next.Expires = b.now().Add(b.lease()) })
}

// finish ends a run.
func (b *Book) finish(ctx context.Context, key, run, outcome string) error {
	return b.ofRun(ctx, key, run, func(next *Record) {
		next.State, next.Outcome, next.Ended = Done, outcome, b.now()
		next.Expires = next.Ended
	})
}

// undo gives back the approval of a run that has done nothing. It holds for as
// long again.
func (b *Book) undo(ctx context.Context, key, run string) error {
	return b.ofRun(ctx, key, run, func(next *Record) {
		next.State, next.Run, next.Expires = Approved, "", b.now().Add(b.expires())
	})
}

func (b *Book) ofRun(ctx context.Context, key, run string, f func(*Record)) error {
	_, err := b.change(ctx, key, func(was *Record) (*Record, error) {
		if was == nil || was.Run != run || was.State != Running {
			return nil, toolerr.New(toolerr.Conflict, "the run was given up meanwhile")
		}
		next := *was
		f(&next)
		return &next, nil
	})
	return err
}

// retoken gives a request another one-time token.
func (b *Book) retoken(ctx context.Context, id, token string) error {
	return b.touch(ctx, id, func(r *Record) { r.Token = digest(token) })
}

// notified notes that somebody was told of a request.
func (b *Book) notified(ctx context.Context, id string) error {
	return b.touch(ctx, id, func(r *Record) { r.Notified = true })
}

// touch changes a request that nobody has been told of, if it is there.
func (b *Book) touch(ctx context.Context, id string, f func(*Record)) error {
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
