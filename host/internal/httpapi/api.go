// Package httpapi is the HTTP server besides MCP: models with the host's tools, for clients of
// OpenAI's and Anthropic's APIs, and what belongs to them. The gateway has authenticated its
// requests. GET /openapi.json describes the whole API:
//
//	POST /v1/chat/completions           OpenAI's, streamed or not
//	POST /v1/responses                  OpenAI's newer API, streamed or not
//	/v1/responses/{id} …                stored responses
//	POST /v1/messages                   Anthropic's, streamed or not
//	POST /v1/messages/count_tokens      an estimate of a request's tokens
//	GET  /v1/models, /v1/models/{id}    in a format that both vendors' clients read
//	GET  /v1/tools, POST /v1/tools/{name}
//	/v1/sessions …                      stored conversations
//	/artifact …                         files for tools and from tools
//	/v1/approvals …, /v1/callback/{id}/{token}
//
// # Tools of the host and of the client
//
// Every completion offers the host's tools to the model, calls them here, and returns their
// results to the model; the client sees the final answer. "MODEL|TOOL|TOOL" as the model, or
// "x_tools": ["TOOL", …], offers only these, with * for any text; "x_tools": [] offers none.
//
// A tool that the client declares belongs to the client: a call of it is returned, after the
// host's calls of the same answer were made. The parts of such an answer that the client does
// not see (the host's calls and their results, signed thinking) are stored for a day under the
// ids of the returned calls, and restored when a request brings their results, so that the
// model sees its own conversation. If the client has changed the answer, the client's version
// counts.
//
// The answer contains all text of the model up to its last turn, streamed or not, separated by
// empty lines. The usage is the sum over all turns.
//
// # Extensions
//
// "x_events": true, or the header X-Toolroom-Events: true, reports the host's calls: tool.call,
// tool.response and error, each with an id, the first two of a call with the same call_id.
// OpenAI's clients get them as chunks without choices that have x_event, Anthropic's as events
// of another type, which they ignore; without streaming they are in x_events. "x_session":
// "ID" continues a session: its messages precede those of the request, and request and answer
// are added to it. x_ending says why an answer did not reach its goal (turn limit, approval
// pending and so on), x_pending lists the calls that wait for a decision. Unsupported
// parameters are refused, except hints (seed, penalties and so on), which the header
// X-Toolroom-Ignored lists.
//
// Errors are {"error":{"message","type","param","code"}} with a suitable status, and in
// Anthropic's format below /v1/messages. After a stream has begun, errors are sent in it, and it
// ends without the vendor's final event.
package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/agent"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/conversation"
	"github.com/toolroom-mcp/toolroom/host/internal/conversation/responsestore"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/approve"
	"github.com/toolroom-mcp/toolroom/host/internal/store"
)

// Approvals provides the requests for approval.
type Approvals interface {
	Approvals() *approve.Store

	// Decide decides a request; Redeem does so with the one-time token of its callback.
	Decide(ctx context.Context, id string, d approve.Decision) (*approve.Record, error)
	Redeem(ctx context.Context, id, token string, d approve.Decision) (*approve.Record, error)
}

// Models provides the available models.
type Models interface {
	// Get returns the model with a name, or the default for ""; NO_MODEL if it does
	// not exist.
	Get(ctx context.Context, name string) (provider.Model, error)
	List(ctx context.Context) []provider.Info
}

// Tools provides the host's tools.
type Tools interface {
	List(ctx context.Context) []*call.Tool
	Get(ctx context.Context, name string) (*call.Tool, bool)

	// Turn returns the tools that a caller's model may call for one completion,
	// limited to those that a pattern of only matches; nil: all. The caller must call
	// end.
	Turn(c call.Caller, only []string) (tools agent.Tools, end func() error)
}

// Config holds the parts that the API serves. A nil part is not served.
type Config struct {
	Approvals Approvals
	Models    Models
	Tools     Tools
	Call      call.Handler // makes a call that passes all stages
	Sessions  *conversation.Store
	Responses *responsestore.Store // nil: responses are not stored
	Keys      store.Keys           // for stored answers and artifacts
	Blobs     store.Blobs          // for their contents
	Bounds    agent.Bounds
	Version   string

	Rate         float64       // requests of a client per second; 0: 100
	Burst        int           // further requests for a short time; 0: 1000
	Runs         int           // concurrent completions; 0: 1000
	KeepAlive    time.Duration // interval of keep-alive messages in a silent stream; 0: 15 s
	WriteTimeout time.Duration // time limit for a client to read; 0: 30 s
	Now          func() time.Time
	Logf         func(format string, args ...any) // logs errors that no client gets; nil: not logged
}

// EntryPoint is the entry point of calls through the API.
const EntryPoint = "api"

// API serves the routes of the package comment.
type API struct {
	cfg     Config
	routes  []route
	mux     *http.ServeMux
	rate    rateLimiter
	running chan struct{} // holds an item for each running completion
	openapi func() []byte
}

// New returns the API, with defaults for the limits that c does not set. It needs no Close.
func New(c Config) *API {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logf == nil {
		c.Logf = func(string, ...any) {}
	}
	if c.KeepAlive == 0 {
		c.KeepAlive = 15 * time.Second
	}
	if c.WriteTimeout == 0 {
		c.WriteTimeout = 30 * time.Second
	}
	if c.Rate == 0 {
		c.Rate = 100
	}
	if c.Burst == 0 {
		c.Burst = 1000
	}
	if c.Runs == 0 {
		c.Runs = 1000
	}
	a := &API{cfg: c, mux: http.NewServeMux(), running: make(chan struct{}, c.Runs)}
	a.rate = rateLimiter{each: c.Rate, burst: float64(c.Burst), clients: map[string]*bucket{}}
	a.routes = a.allRoutes()
	for _, r := range a.routes {
		a.mux.HandleFunc(r.method+" "+r.path, func(w http.ResponseWriter, req *http.Request) { r.serve(&deadlineWriter{w, c.WriteTimeout}, req) })
	}
	a.openapi = sync.OnceValue(a.openAPIDocument)
	return a
}

// ServeHTTP serves the API. It answers unknown paths and too frequent requests with an
// error in the format of the path's clients.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if a.refuseIfTooOften(w, r) {
		return
	}
	if _, pattern := a.mux.Handler(r); pattern != "" {
		a.mux.ServeHTTP(w, r)
		return
	}
	writeError(w, r, a.routeError(w, r))
}

// refuseIfTooOften counts a request. If the client exceeds its rate, it answers with an error
// and returns true.
func (a *API) refuseIfTooOften(w http.ResponseWriter, r *http.Request) (refused bool) {
	wait := a.rate.take(clientAddress(r), a.cfg.Now())
	if wait > 0 {
		writeError(w, r, tooMany(wait))
	}
	return wait > 0
}

// routeError returns the error for a request without a route: 404, or 405 after setting the
// header Allow.
func (a *API) routeError(w http.ResponseWriter, r *http.Request) error {
	found := false
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete} {
		other := *r
		other.Method = method
		if _, pattern := a.mux.Handler(&other); pattern != "" {
			w.Header().Add("Allow", method)
			found = true
		}
	}
	if found {
		return &apiError{status: http.StatusMethodNotAllowed, code: "method_not_allowed", message: r.Method + " is not supported here; the Allow header lists the methods"}
	}
	return &apiError{status: http.StatusNotFound, code: "NOT_FOUND", message: "not found: " + r.Method + " " + truncate(r.URL.Path, 100) + "; GET /openapi.json describes the API"}
}

// Callback returns the handler for the routes without authentication, whose URLs contain a
// one-time token. Other paths are answered with 404.
func (a *API) Callback() http.Handler {
	mux := http.NewServeMux()
	for _, r := range a.routes {
		if r.open {
			mux.HandleFunc(r.method+" "+r.path, func(w http.ResponseWriter, req *http.Request) { r.serve(&deadlineWriter{w, a.cfg.WriteTimeout}, req) })
		}
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { writeError(w, r, a.routeError(w, r)) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !a.refuseIfTooOften(w, r) { // limits guessing of tokens, too
			mux.ServeHTTP(w, r)
		}
	})
}

// Refuse answers an unauthenticated request, in the format of the path's clients.
func (a *API) Refuse(w http.ResponseWriter, r *http.Request, status int, message string) {
	code := "INVALID_INPUT"
	switch status {
	case http.StatusUnauthorized:
		code = "invalid_api_key"
	case http.StatusForbidden:
		code = "POLICY_DENIED"
	}
	writeError(w, r, &apiError{status: status, code: code, message: message})
}

// writeJSON sends a status and a JSON text, which no cache keeps.
func writeJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)+1))
	w.WriteHeader(status)
	w.Write(append(body, '\n')) //nolint:errcheck // the client is gone
}

// listObject is a list in OpenAI's format.
type listObject struct {
	Object string `json:"object"`
	Data   any    `json:"data"`
}

// listOf returns a list object of OpenAI's API.
func listOf(data any) listObject { return listObject{"list", data} }

// deletedObject is the answer to a DELETE.
type deletedObject struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Deleted bool   `json:"deleted"`
}
