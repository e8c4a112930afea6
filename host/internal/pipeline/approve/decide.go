package approve

import (
	"context"
	"crypto/subtle"
	"encoding/json"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A Decision is a person's decision about a request.
type Decision struct {
	Approve bool
	Args    json.RawMessage // replace the caller's arguments; nil: unchanged
	By      string          // name of the person
	Note    string          // text for the caller
	Once    bool            // a denial holds for one call; otherwise for all equal calls until it expires
}

// Decide decides a pending request. After an earlier decision it returns an error that
// names its author.
func (b *Store) Decide(ctx context.Context, id string, d Decision) (*Record, error) {
	return b.decide(ctx, id, d, func(*Record) error { return nil })
}

// Authorize returns the record of a request if the one-time token belongs to it. It
// changes nothing. Otherwise it returns errToken.
func (b *Store) Authorize(ctx context.Context, id, token string) (*Record, error) {
	key, err := keyOf(id)
	if err != nil {
		return nil, err
	}
	r, _, err := b.read(ctx, key)
	if err != nil {
		return nil, err
	}
	if r == nil || r.ID != id || !r.checkToken(token) {
		return nil, errToken
	}
	return r, nil
}

// errToken gives no details: without a token, nobody learns about requests.
var errToken = toolerr.New(toolerr.AuthFailed, "no approval request has this address")

// checkToken reports whether a token belongs to the request, in constant time.
func (r *Record) checkToken(token string) bool {
	given, held := []byte(digest(token)), 0
	for _, one := range r.Tokens {
		held |= subtle.ConstantTimeCompare(given, []byte(one))
	}
	return held == 1
}

// Redeem decides a request like Decide, for the bearer of its one-time token; it returns
// errToken for a wrong one.
func (b *Store) Redeem(ctx context.Context, id, token string, d Decision) (*Record, error) {
	return b.decide(ctx, id, d, func(r *Record) error {
		if !r.checkToken(token) {
			return errToken
		}
		return nil
	})
}

// decide records a decision on a pending request and returns the changed record. If
// allowed returns an error for the record, nothing changes. It returns NOT_FOUND for an
// unknown id, CONFLICT if the request is decided or has expired, and TOO_LARGE or
// INVALID_INPUT for a wrong decision.
func (b *Store) decide(ctx context.Context, id string, d Decision, allowed func(*Record) error) (*Record, error) {
	key, err := keyOf(id)
	if err != nil {
		return nil, err
	}
	switch {
	case len(d.Args) > MaxArgsBytes:
		return nil, toolerr.New(toolerr.TooLarge, "the arguments have %d bytes, more than %d", len(d.Args), MaxArgsBytes)
	case len(d.Note) > maxNote:
		return nil, toolerr.New(toolerr.TooLarge, "the note has %d bytes, more than %d", len(d.Note), maxNote)
	case d.Args != nil && !d.Approve:
		return nil, toolerr.New(toolerr.InvalidInput, "a denied call takes no arguments")
	}
	r, err := b.change(ctx, key, func(was *Record) (*Record, error) {
		if was == nil || was.ID != id {
			return nil, notFoundError(id)
		}
		if err := allowed(was); err != nil {
			return nil, err
		}
		now := b.now()
		if state := was.StateAt(now); state != Pending {
			return nil, toolerr.New(toolerr.Conflict, "%s is no longer pending but %s", id, was.decisionText(state)).With("state", string(state))
		}
		next := *was
		next.State, next.By, next.At, next.Note = Denied, d.By, now, d.Note
		if next.Expires = now.Add(b.expires()); d.Approve {
			next.State, next.Edited = Approved, d.Args
		} else {
			next.redactFinished()
			next.Once = d.Once
		}
		return &next, nil
	})
	if err == nil {
		b.releaseSlot(ctx, id)
	}
	return r, err
}

// decisionText returns the state and the person who decided, such as "denied, decided by
// NAME".
func (r *Record) decisionText(state State) string {
	text := string(state)
	if r.By != "" {
		text += ", decided by " + r.By
	}
	return text
}
