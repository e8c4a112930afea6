package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/approve"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// maxWait limits the wait for a decision.
const maxWait = 5 * time.Minute

// approval is a record as it is served.
type approval struct {
	*approve.Record
	State approve.State `json:"state"` // current state
}

// approvalView returns a request as the API shows it, with its state now.
func approvalView(r *approve.Record) approval {
	return approval{r.Public(), r.StateAt(time.Now())}
}

// listApprovals answers GET /v1/approvals: with the pending requests, or with state=all
// in the query with all.
func (a *API) listApprovals(w http.ResponseWriter, r *http.Request) {
	records, err := a.cfg.Approvals.Approvals().List(r.Context())
	if err != nil {
		writeError(w, r, err)
		return
	}
	all := make([]approval, 0, len(records))
	for _, record := range records {
		all = append(all, approvalView(record))
	}
	if r.URL.Query().Get("state") != "all" {
		all = slices.DeleteFunc(all, func(one approval) bool { return one.State != approve.Pending })
	}
	writeAnswer(w, http.StatusOK, listOf(all))
}

// showApproval answers GET /v1/approvals/{id}. With the query wait it waits that long,
// at most maxWait, for the decision.
func (a *API) showApproval(w http.ResponseWriter, r *http.Request) {
	book, id := a.cfg.Approvals.Approvals(), r.PathValue("id")
	record, err := book.Find(r.Context(), id)
	if text := r.URL.Query().Get("wait"); err == nil && text != "" {
		wait, fault := time.ParseDuration(text)
		if fault != nil || wait < 0 {
			writeError(w, r, invalid("wait", "wait must be a duration like 30s, not %.40q", text))
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), min(wait, maxWait))
		defer cancel()
		record, err = book.Await(ctx, record.ID)
		if errors.Is(err, context.DeadlineExceeded) && record != nil {
			err = nil
		}
	}
	if err != nil {
		writeError(w, r, err)
		return
	}
	writeAnswer(w, http.StatusOK, approvalView(record))
}

// decideApproval answers POST /v1/approvals/{id}.
func (a *API) decideApproval(w http.ResponseWriter, r *http.Request) {
	decide(w, r, "an HTTP client", func(ctx context.Context, d approve.Decision) (*approve.Record, error) {
		return a.cfg.Approvals.Decide(ctx, r.PathValue("id"), d)
	})
}

// redeemApproval answers POST /v1/callback/{id}/{token}, the one-time link of an approval
// callback.
func (a *API) redeemApproval(w http.ResponseWriter, r *http.Request) {
	decide(w, r, "the callback", func(ctx context.Context, d approve.Decision) (*approve.Record, error) {
		return a.cfg.Approvals.Redeem(ctx, r.PathValue("id"), r.PathValue("token"), d)
	})
}

// decide reads a decision, passes it to do, and answers with the decided request. by names the
// origin of the decision in the record.
func decide(w http.ResponseWriter, r *http.Request, by string, do func(context.Context, approve.Decision) (*approve.Record, error)) {
	d, err := readDecision(w, r)
	if err != nil {
		writeError(w, r, err)
		return
	}
	d.By = by
	record, err := do(r.Context(), d)
	if err != nil {
		writeError(w, r, err)
		return
	}
	writeAnswer(w, http.StatusOK, approvalView(record))
}

// readDecision reads a decision from the body. The error names a wrong member.
func readDecision(w http.ResponseWriter, r *http.Request) (d approve.Decision, err error) {
	var decision string
	err = readMembers(w, r, map[string]func([]byte) error{
		"decision": func(v []byte) error { return json.Unmarshal(v, &decision) },
		"note":     func(v []byte) error { return json.Unmarshal(v, &d.Note) },
		"arguments": func(v []byte) error {
			_, err := jsonrpc.Members(v)
			d.Args = v
			return err
		},
	})
	if err != nil {
		return d, err
	}
	switch decision {
	case "approve":
		d.Approve = true
	case "deny":
	default:
		return d, invalid("decision", `decision must be "approve" or "deny"`)
	}
	return d, nil
}
