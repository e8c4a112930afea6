package approve

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/internal/redact"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A State is the state of a request for approval.
type State string

// The states. Lapsed and Interrupted are never stored: they follow from the time.
const (
	Pending     State = "pending"     // no decision yet
	Approved    State = "approved"    // the call may be made once
	Denied      State = "denied"      // the call is refused until the record expires
	Running     State = "running"     // the call is being made
	Asking      State = "asking"      // the server has asked a question, and the call may continue with the answer
	Done        State = "done"        // the call was made
	Lapsed      State = "expired"     // no decision in time, or the call was not made in time
	Interrupted State = "interrupted" // the host ended during the call, which may have had its effect
)

// A Record is a request for approval as stored.
type Record struct {
	ID       string          `json:"id"`
	State    State           `json:"state"`
	Tool     string          `json:"tool"` // served name
	Server   string          `json:"server"`
	Where    string          `json:"where,omitempty"`  // description of the Scope
	Args     json.RawMessage `json:"args"`             // as sent by the caller
	Edited   json.RawMessage `json:"edited,omitempty"` // arguments that replace them
	Caller   Caller          `json:"caller"`
	Reason   string          `json:"reason"`
	Created  time.Time       `json:"created"`
	Expires  time.Time       `json:"expires_at"` // of the current state
	By       string          `json:"decided_by,omitempty"`
	At       time.Time       `json:"decided_at,omitzero"`
	Note     string          `json:"note,omitempty"`
	Once     bool            `json:"once,omitempty"` // the denial holds for one call
	Began    time.Time       `json:"began,omitzero"`
	Ended    time.Time       `json:"ended,omitzero"`
	Outcome  string          `json:"outcome,omitempty"` // complete, failed, or an error code
	Notified bool            `json:"notified,omitempty"`
	Rounds   int             `json:"rounds,omitempty"` // number of rounds that were made

	Digest string   `json:"digest,omitempty"` // of the approved subject
	Run    string   `json:"run,omitempty"`    // random id of the run
	Round  string   `json:"round,omitempty"`  // digest of the state that the next round must contain
	Tokens []string `json:"tokens,omitempty"` // digests of the one-time tokens, each of which permits a decision
}

// Public returns the record without internal fields.
func (r *Record) Public() *Record {
	open := *r
	open.Digest, open.Run, open.Round, open.Tokens = "", "", "", nil
	return &open
}

// Caller identifies the caller of a request.
type Caller struct {
	EntryPoint string `json:"entry_point"`
	Profile    string `json:"profile,omitempty"`
	User       string `json:"user,omitempty"`
	ID         string `json:"id,omitempty"` // not part of the subject, because connections end
	Depth      int    `json:"depth,omitempty"`
}

// StateAt returns the state that a record has at a time.
func (r *Record) StateAt(now time.Time) State {
	if now.Before(r.Expires) {
		return r.State
	}
	switch r.State {
	case Pending, Approved, Asking:
		return Lapsed
	case Running:
		return Interrupted
	}
	return r.State
}

// Arguments returns the arguments of the call.
func (r *Record) Arguments() json.RawMessage {
	if r.Edited != nil {
		return r.Edited
	}
	return r.Args
}

// The limits of stored records.
const (
	MaxArgsBytes = 256 << 10 // bytes of the arguments, and of the arguments that replace them
	MaxPending   = 100       // pending requests
	maxNote      = 1 << 10   // bytes
	maxTokens    = 8         // of one request
	maxRounds    = 10        // of one call
	// finishedRecordLifetime is the lifetime of a finished record, and largeRecordLifetime that of a record
	// with large arguments.
	finishedRecordLifetime = 24 * time.Hour
	largeRecordLifetime    = time.Minute
	maxBrief               = 4 << 10 // bytes of the arguments that are kept of a finished call
)

// keptUntil returns the time when a record is deleted.
func (r *Record) keptUntil() time.Time {
	if (r.State == Pending || r.State == Approved) && len(r.Args)+len(r.Edited) > maxBrief {
		return r.Expires.Add(largeRecordLifetime)
	}
	return r.Expires.Add(finishedRecordLifetime)
}

// redactFinished shortens the arguments of a record that is decided or used, and masks the
// credentials in them. While the call is pending they are kept as they are: the person who
// decides approves exactly these bytes.
func (r *Record) redactFinished() {
	r.Args, r.Edited = shortenArguments(r.Args), shortenArguments(r.Edited)
}

// shortenArguments returns arguments for a list: with credentials masked, and beyond
// maxBrief bytes only their size and beginning.
func shortenArguments(args json.RawMessage) json.RawMessage {
	switch {
	case len(args) == 0:
		return args
	case len(args) <= maxBrief:
		return redact.AppendJSON(nil, args, 2*maxBrief)
	}
	begins := redact.Text(strings.ToValidUTF8(string(args[:maxBrief/4]), ""))
	return fmt.Appendf(nil, `{"toolroom/left_out":{"bytes":%d,"begins":%s}}`, len(args), jsonrpc.AppendString(nil, begins))
}

// keyPrefix begins the store keys of records.
const keyPrefix = "approval/"

// A Scope says where calls of a tool have their effect: the directory, the roots and the
// configuration of its server. In another scope, the same tool of a server with the same
// name can be a different program.
type Scope struct {
	Description string // for the person who decides
	Identity    []byte // equal for equal scopes; only its keyed digest is stored
}

// subject is the subject of an approval: one tool with its definition, one server, one
// directory with its roots, one set of arguments, one entry point, user and profile. The
// key of the record is derived from it, so that the same call finds the record again.
type subject struct {
	key           string
	digest        string // HMAC-SHA256, in hex
	args          json.RawMessage
	scopeText     string
	scopeIdentity []byte // see Scope
}

// subjectOf returns the subject of an approval of a call in a scope. It hashes with the
// secret of the store, so that the ids of requests reveal nothing about a server's
// environment. It returns TOO_LARGE for more than MaxArgsBytes bytes of arguments,
// INVALID_PARAMS for ambiguous ones, and the error of secret.
func subjectOf(req *call.Request, of Scope, secret func() ([]byte, error)) (subject, error) {
	args, err := req.Arguments()
	if err != nil {
		return subject{}, err
	}
	if len(args) > MaxArgsBytes {
		return subject{}, toolerr.New(toolerr.TooLarge, "%s needs approval, but its arguments have %d bytes, more than the %d that can be saved; make smaller calls", req.Tool.Name, len(args), MaxArgsBytes)
	}
	canonical, ok := jsonrpc.Canonical(nil, args)
	if !ok {
		return subject{}, toolerr.New(toolerr.InvalidParams, "%s needs approval, but its arguments are ambiguous: a member appears twice, or they are nested too deep", req.Tool.Name)
	}
	key, err := secret()
	if err != nil {
		return subject{}, err
	}
	h := hmac.New(sha256.New, key)
	part := func(b []byte) {
		sum := sha256.Sum256(b)
		h.Write(sum[:]) //nolint:errcheck // never fails
	}
	for _, text := range []string{req.Tool.Server, req.Tool.Original, req.Tool.Name, req.Caller.EntryPoint, req.Caller.Profile} {
		part([]byte(text))
	}
	if req.Caller.User != "" { // otherwise the key must stay the same as in earlier versions
		part([]byte("user " + req.Caller.User))
	}
	if req.Caller.Subject != "" { // the name may belong to another person now
		part([]byte("subject " + req.Caller.Subject))
	}
	part(of.Identity)
	part(canonicalDefinition(req.Tool))
	part(canonical)
	sum := h.Sum(nil)
	return subject{key: keyPrefix + encodeLetters(sum[:10]), digest: hex.EncodeToString(sum), args: args, scopeText: of.Description, scopeIdentity: of.Identity}, nil
}

// canonicalDefinition returns a tool's definition with sorted members, so that equal
// definitions are equal bytes.
func canonicalDefinition(t *call.Tool) []byte {
	if canonical, ok := jsonrpc.Canonical(nil, t.Definition); ok {
		return canonical
	}
	return t.Definition
}

// encodeLetters encodes bytes as lower-case letters and digits (base32).
func encodeLetters(b []byte) string {
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b))
}

// randomText returns an unpredictable text, with 8 letters for every 5 bytes.
func randomText(bytes int) string {
	b := make([]byte, bytes)
	rand.Read(b) //nolint:errcheck // never fails
	return encodeLetters(b)
}

const keyLetters = 16 // of 10 bytes

// newID returns the id of a request: first letters of the key, then random ones that
// distinguish requests for the same subject.
func (s subject) newID() string { return strings.TrimPrefix(s.key, keyPrefix) + randomText(5) }

// keyOf returns the store key of the record of a request id, or INVALID_INPUT for a
// malformed id.
func keyOf(id string) (string, error) {
	if len(id) != keyLetters+8 || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") != "" {
		return "", toolerr.New(toolerr.InvalidInput, "%.40q is not the id of an approval", id)
	}
	return keyPrefix + id[:keyLetters], nil
}

// digest returns the SHA-256 of a text in hex.
func digest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
