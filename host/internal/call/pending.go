package call

import (
	"encoding/json"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A Status is the state of a call when it is answered.
type Status string

// The statuses.
const (
	Complete Status = "complete" // it was carried out, and the tool says that it worked
	Waiting  Status = "pending"  // somebody has to decide first; see Pending
	Failed   Status = "failed"   // it was refused, could not be carried out, or the tool says that it failed
)

// StatusOf returns the status of a handler's answer.
func StatusOf(res *Result, err error) Status {
	switch {
	case toolerr.Is(err, toolerr.PendingApproval):
		return Waiting
	case err != nil || res.IsError():
		return Failed
	}
	return Complete
}

// Pending describes a call that waits for a decision.
type Pending struct {
	ID        string          `json:"id,omitempty"`
	Reason    string          `json:"reason"`  // why it has to be decided on
	Message   string          `json:"message"` // what to do meanwhile
	Tool      string          `json:"tool"`
	Args      json.RawMessage `json:"args,omitempty"`
	ExpiresAt time.Time       `json:"expires_at,omitzero"`

	// CallbackURL is the address at which authorized persons can decide.
	CallbackURL string         `json:"callback_url,omitempty"`
	Metadata    map[string]any `json:"metadata,omitempty"`
}

// A PendingError answers a call that waits.
type PendingError struct {
	Pending Pending

	// Resumes is whether the same call, made again, does nothing that was done
	// already.
	Resumes bool
}

// Error says why, and how to go on.
func (e *PendingError) Error() string {
	return e.Pending.Tool + ": " + e.Pending.Message
}

// Unwrap makes toolerr.CodeOf say PENDING_APPROVAL.
func (e *PendingError) Unwrap() error {
	return toolerr.New(toolerr.PendingApproval, "%s", e.Pending.Message)
}
