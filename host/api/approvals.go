// Package api is the HTTP front door beside MCP: what is below /v1. Who may
// come in at all, the gateway has seen to.
//
//	GET  /v1/approvals                  the requests that wait; ?state=all: those of the last day
//	GET  /v1/approvals/{id}             one of them; ?wait=30s: once it is decided on, or then
//	POST /v1/approvals/{id}             {"decision":"approve"|"deny","arguments":{…},"note":"…"}
//	POST /v1/callback/{id}/{token}      the same, for who has the one-time token and no other
//
// Arguments take the place of the caller's, and are held to schema and policy.
// Errors are {"error":{"message","type","param","code"}} with a status that
// fits.
package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"time"

	"github.com/toolroom-mcp/toolroom/host/pipeline/approve"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Approvals are the requests for approval.
type Approvals interface {
	Approvals() *approve.Book
	Decide(ctx context.Context, id string, d approve.Decision) (*approve.Record, error)
	Redeem(ctx context.Context, id, token string, d approve.Decision) (*approve.Record, error)
}

const (
	maxBody = 1 << 20
	maxWait = 5 * time.Minute
)

// Handler serves what is below /v1 to who has the host's token.
func Handler(a Approvals) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/approvals", func(w http.ResponseWriter, r *http.Request) { list(w, r, a) })
	mux.HandleFunc("GET /v1/approvals/{id}", func(w http.ResponseWriter, r *http.Request) { show(w, r, a) })
	mux.HandleFunc("POST /v1/approvals/{id}", func(w http.ResponseWriter, r *http.Request) {
		decide(w, r, "an HTTP client", func(ctx context.Context, d approve.Decision) (*approve.Record, error) {
			return a.Decide(ctx, r.PathValue("id"), d)
		})
	})
	mux.HandleFunc("/v1/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, toolerr.New(toolerr.NotFound, "there is nothing at %s %.100s", r.Method, r.URL.Path))
	})
	return mux
}

// Callback serves who has a one-time token, which is in the address.
func Callback(a Approvals) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/callback/{id}/{token}", func(w http.ResponseWriter, r *http.Request) {
		decide(w, r, "the callback", func(ctx context.Context, d approve.Decision) (*approve.Record, error) {
			return a.Redeem(ctx, r.PathValue("id"), r.PathValue("token"), d)
		})
	})
	return mux
}

// approval is a record as it is served.
type approval struct {
	*approve.Record
	State approve.State `json:"state"` // at present
}

func present(r *approve.Record) approval {
	return approval{r.Open(), r.StateAt(time.Now())}
}

func list(w http.ResponseWriter, r *http.Request, a Approvals) {
	records, err := a.Approvals().List(r.Context())
	if err != nil {
		fail(w, err)
		return
	}
	all := make([]approval, 0, len(records))
	for _, record := range records {
		all = append(all, present(record))
	}
	if r.URL.Query().Get("state") != "all" {
		all = slices.DeleteFunc(all, func(one approval) bool { return one.State != approve.Pending })
	}
	answer(w, http.StatusOK, map[string]any{"object": "list", "data": all})
}

func show(w http.ResponseWriter, r *http.Request, a Approvals) {
	id := r.PathValue("id")
	record, err := a.Approvals().Find(r.Context(), id)
	if text := r.URL.Query().Get("wait"); err == nil && text != "" {
		wait, fault := time.ParseDuration(text)
		if fault != nil || wait < 0 {
			fail(w, toolerr.New(toolerr.InvalidParams, "wait is %.40q, not a duration like 30s", text))
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), min(wait, maxWait))
		defer cancel()
		record, err = a.Approvals().Await(ctx, record.ID)
		if errors.Is(err, context.DeadlineExceeded) && record != nil {
			err = nil
		}
	}
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, http.StatusOK, present(record))
}

// decide reads a decision and has it carried out.
func decide(w http.ResponseWriter, r *http.Request, by string, do func(context.Context, approve.Decision) (*approve.Record, error)) {
	d, err := read(w, r)
	if err != nil {
		fail(w, err)
		return
	}
	d.By = by
	record, err := do(r.Context(), d)
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, http.StatusOK, present(record))
}

func read(w http.ResponseWriter, r *http.Request) (d approve.Decision, err error) {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return d, toolerr.New(toolerr.InvalidParams, "Content-Type must be application/json")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return d, toolerr.New(toolerr.TooLarge, "the body cannot be read, or has more than %d bytes", maxBody)
	}
	members, err := jsonrpc.Members(body)
	if err != nil {
		return d, toolerr.New(toolerr.InvalidParams, "the body is not one JSON object: %w", err)
	}
	var decision string
	for _, m := range members {
		switch m.Name {
		case "decision":
			err = json.Unmarshal(m.Value, &decision)
		case "note":
			err = json.Unmarshal(m.Value, &d.Note)
		case "arguments":
			if string(m.Value) != "null" {
				_, err = jsonrpc.Members(m.Value)
				d.Args = m.Value
			}
		default:
			err = errors.New("it is not known")
		}
		if err != nil {
			return d, toolerr.New(toolerr.InvalidParams, "%.40s: %w", m.Name, err).With("param", m.Name)
		}
	}
	switch decision {
	case "approve":
		d.Approve = true
	case "deny":
	default:
		return d, toolerr.New(toolerr.InvalidParams, `decision must be "approve" or "deny"`).With("param", "decision")
	}
	return d, nil
}

func answer(w http.ResponseWriter, status int, v any) {
	body, err := jsonrpc.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":{"message":"internal error","type":"server_error","param":null,"code":"INTERNAL"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	w.Write(append(body, '\n')) //nolint:errcheck // the client is gone
}

// fail answers with an error in the form of the API.
func fail(w http.ResponseWriter, err error) {
	code := toolerr.CodeOf(err)
	status := http.StatusInternalServerError
	switch code {
	case toolerr.InvalidParams, toolerr.InvalidInput:
		status = http.StatusBadRequest
	case toolerr.AuthFailed:
		status = http.StatusUnauthorized
	case toolerr.NotFound, toolerr.ToolNotFound:
		status = http.StatusNotFound
	case toolerr.Conflict:
		status = http.StatusConflict
	case toolerr.TooLarge:
		status = http.StatusRequestEntityTooLarge
	case toolerr.PolicyDenied:
		status = http.StatusForbidden
	case toolerr.Cancelled, toolerr.Locked, toolerr.TransportError, toolerr.ServerOffline:
		status = http.StatusServiceUnavailable
	}
	kind := "invalid_request_error"
	if status >= 500 {
		kind = "server_error"
	}
	var param any
	var said *toolerr.Error
	if errors.As(err, &said) {
		param = said.Extra()["param"]
	}
	answer(w, status, map[string]any{"error": map[string]any{"message": err.Error(), "type": kind, "param": param, "code": string(code)}})
}
