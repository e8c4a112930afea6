package approve

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A State is how far a request for approval has come.
type State string

// The states. Lapsed and Interrupted are never written: a record has them by
// what time it is.
const (
	Pending     State = "pending"     // nobody has decided
	Approved    State = "approved"    // the call may be made, once
	Denied      State = "denied"      // and stays so until the record expires
	Running     State = "running"     // the call is being made
	Done        State = "done"        // the call was made
	Lapsed      State = "expired"     // nobody decided in time, or the call was not made in time
	Interrupted State = "interrupted" // the host that made the call has ended; it may have had its effect
)

// A Record is one request for approval. It is what is kept in the store.
type Record struct {
	ID       string          `json:"id"`
	State    State           `json:"state"`
	Tool     string          `json:"tool"` // as served
	Server   string          `json:"server"`
	Args     json.RawMessage `json:"args"`             // as the caller sent them
	Edited   json.RawMessage `json:"edited,omitempty"` // what they were replaced by
	Caller   Caller          `json:"caller"`
	Reason   string          `json:"reason"`
	Created  time.Time       `json:"created"`
	Expires  time.Time       `json:"expires_at"` // of what the state is now
	By       string          `json:"decided_by,omitempty"`
	At       time.Time       `json:"decided_at,omitzero"`
	Note     string          `json:"note,omitempty"`
	Began    time.Time       `json:"began,omitzero"`
	Ended    time.Time       `json:"ended,omitzero"`
	Outcome  string          `json:"outcome,omitempty"` // complete, failed, or the code of the error
	Notified bool            `json:"notified,omitempty"`

	Digest string `json:"digest,omitempty"` // of all that the approval is for
	Run    string `json:"run,omitempty"`    // who runs it, at random
	Token  string `json:"token,omitempty"`  // digest of the one-time token
}

// Caller is who asked.
type Caller struct {
	Door    string `json:"door"`
	Profile string `json:"profile,omitempty"`
	ID      string `json:"id,omitempty"` // not part of what the approval is for: connections end
	Depth   int    `json:"depth,omitempty"`
}

// StateAt returns the state that a record has at a time.
func (r *Record) StateAt(now time.Time) State {
	if now.Before(r.Expires) {
		return r.State
	}
	switch r.State {
	case Pending, Approved:
		return Lapsed
	case Running:
		return Interrupted
	}
	return r.State
}

// Arguments are what the call is made with.
func (r *Record) Arguments() json.RawMessage {
	if r.Edited != nil {
		return r.Edited
	}
	return r.Args
}

// Bounds of what is kept.
const (
	MaxArgs    = 256 << 10 // bytes of the arguments, and of those in their place
	MaxPending = 100       // requests that wait
	maxNote    = 1 << 10   // bytes
	// keepFor is how long a record that is done with can be looked at.
	keepFor = 24 * time.Hour
)

const prefix = "approval/"

// subject is what an approval is for: one tool with its definition, one
// server, one set of arguments, one door and profile. The key of its record
// follows from it, so that the same call finds it again.
type subject struct {
	key    string
	digest string // SHA-256, in hex
	args   json.RawMessage
}

func subjectOf(req *call.Request) (subject, error) {
	args, err := req.Arguments()
	if err != nil {
		return subject{}, err
	}
	if len(args) > MaxArgs {
		return subject{}, toolerr.New(toolerr.TooLarge, "%s needs approval, and its arguments have %d bytes, of %d that can be kept until it is given; make smaller calls", req.Tool.Name, len(args), MaxArgs)
	}
	canonical, ok := jsonrpc.Canonical(nil, args)
	if !ok {
		return subject{}, toolerr.New(toolerr.InvalidParams, "%s needs approval, and its arguments are not clear: a member is given twice, or they are nested too deep", req.Tool.Name)
	}
	h := sha256.New()
	part := func(b []byte) {
		sum := sha256.Sum256(b)
		h.Write(sum[:]) //nolint:errcheck // never fails
	}
	for _, text := range []string{req.Tool.Server, req.Tool.Original, req.Tool.Name, req.Caller.Door, req.Caller.Profile} {
		part([]byte(text))
	}
	part(req.Tool.Definition)
	part(canonical)
	sum := h.Sum(nil)
	return subject{key: prefix + word(sum[:10]), digest: hex.EncodeToString(sum), args: args}, nil
}

// word writes bytes with lower-case letters and digits.
func word(b []byte) string {
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b))
}

// chance is a word nobody can guess, of 8 letters for every 5 bytes.
func chance(bytes int) string {
	b := make([]byte, bytes)
	rand.Read(b) //nolint:errcheck // never fails
	return word(b)
}

const keyLetters = 16 // of 10 bytes

// newID names one request: the first letters are those of the key, the rest
// tells it from other requests for the same.
func (s subject) newID() string { return strings.TrimPrefix(s.key, prefix) + chance(5) }

// keyOf returns the key of the record with that id.
func keyOf(id string) (string, error) {
	if len(id) != keyLetters+8 || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") != "" {
		return "", toolerr.New(toolerr.InvalidInput, "%.40q is not the id of an approval", id)
	}
	return prefix + id[:keyLetters], nil
}

func digest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
