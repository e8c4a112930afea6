package call

import (
	"encoding/json"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A Status is the state of an answered call.
type Status string

// The statuses.
const (
	StatusComplete Status = "complete" // the call was made, and the tool succeeded
	StatusPending  Status = "pending"  // the call waits for a decision; see Pending
	StatusFailed   Status = "failed"   // the call was refused or could not be made, or the tool failed
)

// StatusOf returns the status of a handler's answer: pending for PENDING_APPROVAL, failed
// for other errors and results with isError, else complete.
func StatusOf(res *Result, err error) Status {
	switch {
	case toolerr.Is(err, toolerr.PendingApproval):
		return StatusPending
	case err != nil || res.IsError():
		return StatusFailed
	}
	return StatusComplete
}

// Pending describes a call that waits for a decision.
type Pending struct {
	ID        string          `json:"id,omitempty"`
	Reason    string          `json:"reason"`  // why a decision is needed
	Message   string          `json:"message"` // what the caller can do meanwhile
	Tool      string          `json:"tool"`
	Args      json.RawMessage `json:"args,omitempty"`
	ExpiresAt time.Time       `json:"expires_at,omitzero"`

	// CallbackURL is the address for the decision of an authorized user.
	CallbackURL string         `json:"callback_url,omitempty"`
	Metadata    map[string]any `json:"metadata,omitempty"`
}

// A PendingError is the answer to a call that waits for a decision.
type PendingError struct {
	Pending Pending

	// Resumes means that the repeated call does not repeat finished work.
	Resumes bool
}

// Error says why the call waits, and how to continue.
func (e *PendingError) Error() string {
	return e.Pending.Tool + ": " + e.Pending.Message
}

// Unwrap returns an error with the code PENDING_APPROVAL.
func (e *PendingError) Unwrap() error {
	return toolerr.New(toolerr.PendingApproval, "%s", e.Pending.Message)
}
