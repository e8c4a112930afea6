package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/toolroom-mcp/toolroom/host/internal/accesstoken"
	"github.com/toolroom-mcp/toolroom/host/internal/config/nesting"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// HTTPConfig is who may talk to the HTTP door.
type HTTPConfig struct {
	Token string   // "": none is asked for, unless Auth is set
	Auth  *Auth    // nil: no user signs in
	Hosts []string // the values of Host that are accepted, with port

	// Metrics, unless nil, writes what is served at /metrics, as MetricsType.
	Metrics     func(io.Writer) error
	MetricsType string

	// ID is this host's own; a request that carries it comes from this host.
	ID string

	// API, unless nil, is the rest of what is served to who has the token, and
	// Callback what is below /v1/callback/, whose addresses are secrets
	// themselves.
	API      API
	Callback http.Handler
}

// API is what is served beside MCP.
type API interface {
	http.Handler
	Serves(path string) bool // whether a path is one of its own

	// Refuse answers a request of its own that is not let in.
	Refuse(w http.ResponseWriter, r *http.Request, status int, message string)
}

// Bounds of one request.
const (
	maxBody     = 16 << 20
	maxHello    = 64 << 10 // of an initialize, of which much is kept as long as its session
	bodyTimeout = 30 * time.Second
	lateBody    = 5 * time.Second  // for the body of a request that is answered without it
	sessionIdle = 30 * time.Minute // after which a legacy session is forgotten
)

// modelAgent is the User-Agent of what asks models (endpoint.UserAgent).
const modelAgent = "toolroom-model"

// HTTPHandler is the HTTP door: /mcp, /metrics, and /healthz for anybody who
// may ask at all. Close it after the server.
type HTTPHandler struct {
	cfg    HTTPConfig
	digest [sha256.Size]byte // of the token, so that comparing tells nothing of its length
	gate   *Gateway
	mcp    *server.StreamableHTTPServer
	known  *sessions
	life   context.Context // ends the calls
	unread time.Duration   // writeTimeout, less in tests
	end    context.CancelCauseFunc

	questions questions
}

// errStopping is why calls end with the host.
var errStopping = errors.New("the host is stopping; try again when it runs")

// HTTP returns the HTTP door.
func (g *Gateway) HTTP(cfg HTTPConfig) *HTTPHandler {
	life, end := context.WithCancelCause(context.Background())
	known := newSessions(func(id string) { g.forget(sessionIdentity(id)) })
	return &HTTPHandler{
		cfg: cfg, digest: sha256.Sum256([]byte(cfg.Token)), gate: g, life: life, end: end, known: known, unread: writeTimeout,
		mcp: server.NewStreamableHTTPServer(g.mcp,
			server.WithSessionIdManager(known),
			server.WithSessionIdleTTL(sessionIdle),
			server.WithHeartbeatInterval(30*time.Second),
			server.WithDisableLocalhostProtection(true), // HostNames are checked before, and a reverse proxy forwards its public name to a loopback address
			server.WithStreamableHTTPLogger(slog.New(slog.DiscardHandler)), // it reports clients that went away
		),
	}
}

// Abort ends the calls under way: each is answered that it was cancelled.
func (h *HTTPHandler) Abort() { h.end(errStopping) }

// Close ends the sessions.
func (h *HTTPHandler) Close(ctx context.Context) error { return h.mcp.Shutdown(ctx) }

// NewHTTPServer returns a server with the bounds that a public door needs.
func NewHTTPServer(h http.Handler) *http.Server {
	open := &conns{max: connLimit(descriptors())}
	return &http.Server{
		ConnState:         open.changed,
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // it reports clients that went away
	}
}

// ServeHTTP lets in who names this server by its own name, does not come from
// another site's page, and has the token.
func (h *HTTPHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Server", "toolroom") // a host that looks for models on this machine does not take this one for them
	// The server reads what is left of a body before it sends an answer, and
	// would wait for it without end, also from who may not ask at all.
	if !readWithin(w, lateBody) {
		return
	}
	switch {
	case !slices.Contains(h.cfg.Hosts, strings.ToLower(r.Host)):
		h.refuse(w, r, http.StatusForbidden, fmt.Sprintf("unknown Host %q; use one of %s, or start serve with --allow-host", r.Host, strings.Join(h.cfg.Hosts, ", ")))
	case !h.ownOrigin(r):
		h.refuse(w, r, http.StatusForbidden, "requests from other sites' pages are refused (Origin)")
	case r.URL.Path == "/healthz" && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		io.WriteString(w, "ok\n") //nolint:errcheck // the client is gone
	case strings.HasPrefix(r.URL.Path, "/v1/callback/") && h.cfg.Callback != nil:
		h.serveAPI(h.cfg.Callback, w, r)
	case h.cfg.Auth != nil && strings.HasPrefix(r.URL.Path, resourceMetadata):
		h.serveResourceMetadata(w, r)
	case h.cfg.ID != "" && r.Header.Get(nesting.Header) == h.cfg.ID:
		h.refuse(w, r, http.StatusLoopDetected, "this host is configured as a server of itself; remove the server with this url from its configuration")
	default:
		if user, ok := h.admit(w, r); ok {
			h.serve(w, r, user)
		}
	}
}

// serve answers a request of a user, or with nil one with the host's token.
func (h *HTTPHandler) serve(w http.ResponseWriter, r *http.Request, user *accesstoken.User) {
	switch {
	case r.URL.Path == "/metrics" && h.cfg.Metrics != nil:
		h.serveMetrics(w, r)
	case r.UserAgent() == modelAgent && h.ofAPI(r): // it would ask itself, for ever
		h.refuse(w, r, http.StatusForbidden, "a toolroom host cannot be the model of a host: give the model's address in models or OPENAI_BASE_URL")
	case h.ofAPI(r):
		h.serveAPI(h.cfg.API, w, r)
	default:
		h.serveMCP(w, r, user)
	}
}

func (h *HTTPHandler) ofAPI(r *http.Request) bool {
	return h.cfg.API != nil && h.cfg.API.Serves(r.URL.Path)
}

// refuse answers who is not let in, in the form that the clients of the path read.
func (h *HTTPHandler) refuse(w http.ResponseWriter, r *http.Request, status int, message string) {
	if h.ofAPI(r) {
		h.cfg.API.Refuse(w, r, status, message)
		return
	}
	refuseHTTP(w, r, status, message)
}

// serveAPI hands a request on, which may bring a body if it is a POST. What it
// does ends with the host.
func (h *HTTPHandler) serveAPI(to http.Handler, w http.ResponseWriter, r *http.Request) {
	var d time.Duration
	switch {
	case r.Method == http.MethodPost:
		d = bodyTimeout
	case r.ContentLength != 0:
		h.refuse(w, r, http.StatusBadRequest, r.Method+" must not have a body")
		return
	}
	if !readWithin(w, d) {
		return
	}
	ctx, end := context.WithCancelCause(r.Context())
	defer end(nil)
	defer context.AfterFunc(h.life, func() { end(errStopping) })()
	to.ServeHTTP(w, r.WithContext(ctx))
}

// serveMetrics serves what was counted, to who has the token: the names of
// servers and tools are nobody else's business.
func (h *HTTPHandler) serveMetrics(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		refuseHTTP(w, r, http.StatusMethodNotAllowed, "use GET")
		return
	}
	var page bytes.Buffer
	if err := h.cfg.Metrics(&page); err != nil {
		refuseHTTP(w, r, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Type", h.cfg.MetricsType)
	w.Header().Set("Content-Length", strconv.Itoa(page.Len()))
	if r.Method == http.MethodGet {
		writeWithin(w, h.unread, page.Bytes(), false) //nolint:errcheck // the client is gone
	}
}

// serveMCP serves /mcp and, with a profile's part of the catalogue,
// /mcp/PROFILE.
func (h *HTTPHandler) serveMCP(w http.ResponseWriter, r *http.Request, user *accesstoken.User) {
	profile, catalog, ok := h.endpoint(r.URL.Path)
	if ok {
		profile, catalog, ok = h.ofUser(user, profile, catalog)
	}
	session := r.Header.Get(server.HeaderKeySessionID)
	switch {
	case !ok:
		text := "not found"
		if name, under := strings.CutPrefix(r.URL.Path, "/mcp/"); under {
			text = fmt.Sprintf("no profile %q", name)
		}
		refuseHTTP(w, r, http.StatusNotFound, text+"; the MCP endpoint is /mcp")
	case h.foreign(r, user):
		refuseHTTP(w, r, http.StatusNotFound, "the session is not open; open a new one")
	case session != "" && !mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)) && h.gate.clients.get(sessionIdentity(session)).profile != profile:
		refuseHTTP(w, r, http.StatusNotFound, "the session belongs to another path; open a new one")
	case r.Method == http.MethodPost:
		h.post(w, r, user, profile, catalog)
	case (r.Method == http.MethodGet || r.Method == http.MethodDelete) && r.ContentLength != 0:
		refuseHTTP(w, r, http.StatusBadRequest, r.Method+" must not have a body")
	case r.Method != http.MethodPost && session != "" && h.known.over(session): // mcp-go asks for messages alone
		refuseHTTP(w, r, http.StatusNotFound, "the session has ended; open a new one")
	case r.Method == http.MethodGet || r.Method == http.MethodDelete:
		if readWithin(w, 0) {
			ctx, end := untilExpiry(r.Context(), user)
			defer end()
			h.mcp.ServeHTTP(w, r.WithContext(ctx))
		}
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		refuseHTTP(w, r, http.StatusMethodNotAllowed, "use POST, GET or DELETE")
	}
}

// endpoint finds what is served at a path.
func (h *HTTPHandler) endpoint(path string) (profile string, catalog Catalog, ok bool) {
	if path == "/mcp" {
		return "", nil, true
	}
	profile, ok = strings.CutPrefix(path, "/mcp/")
	if !ok || profile == "" || h.gate.cfg.Profile == nil {
		return "", nil, false
	}
	catalog, ok = h.gate.cfg.Profile(profile)
	return profile, catalog, ok
}

// ownOrigin reports whether a request comes from no web page, or from one of
// this server's own.
func (h *HTTPHandler) ownOrigin(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return true
	}
	u, err := url.Parse(origins[0])
	if len(origins) == 1 && h.cfg.Auth != nil && strings.EqualFold(origins[0], h.cfg.Auth.base()) {
		return true
	}
	return len(origins) == 1 && err == nil && u.Scheme == "http" && u.User == nil && u.Path == "" &&
		slices.Contains(h.cfg.Hosts, strings.ToLower(u.Host))
}

func (h *HTTPHandler) authorized(r *http.Request) bool {
	if h.cfg.Token == "" {
		return h.cfg.Auth == nil
	}
	values := r.Header.Values("Authorization")
	if keys := r.Header.Values("X-Api-Key"); len(values) == 0 && len(keys) == 1 && h.ofAPI(r) { // as Anthropic's clients send it
		values = []string{"Bearer " + keys[0]}
	}
	if len(values) != 1 {
		return false
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	given := sha256.Sum256([]byte(strings.TrimSpace(token)))
	return subtle.ConstantTimeCompare(given[:], h.digest[:]) == 1 && strings.EqualFold(scheme, "Bearer")
}

// post reads the message and hands it to mcp-go with an exchange to answer to.
func (h *HTTPHandler) post(w http.ResponseWriter, r *http.Request, user *accesstoken.User, profile string, catalog Catalog) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" {
		refuseHTTP(w, r, http.StatusUnsupportedMediaType, "Content-Type must be application/json")
		return
	}
	body, status, err := readBody(w, r)
	if err != nil {
		w.Header().Set("Connection", "close")
		refuseHTTP(w, r, status, err.Error())
		return
	}
	m, err := jsonrpc.Split(body)
	var fault *jsonrpc.Error
	if errors.As(err, &fault) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		w.Write(jsonrpc.AppendError(nil, fault.ID, fault.Code, fault.Message)) //nolint:errcheck // the client is gone
		return
	}
	if m.Method == string(mcp.MethodInitialize) && len(body) > maxHello {
		refuseHTTP(w, r, http.StatusRequestEntityTooLarge, fmt.Sprintf("an initialize has at most %d bytes", maxHello))
		return
	}
	x := &httpExchange{
		ResponseWriter: w, header: r.Header, callParams: m.Params, handler: h,
		remote: r.RemoteAddr, user: nameOf(user), profile: profile, catalog: catalog,
		events: strings.Contains(r.Header.Get("Accept"), "text/event-stream"),
		modern: mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)),
	}
	switch {
	case m.Kind == jsonrpc.Request:
		x.id = m.ID
	case m.Kind == jsonrpc.Response && h.questions.answer(x.identity(), m):
		w.WriteHeader(http.StatusAccepted)
		return
	case m.Method == string(mcp.MethodNotificationCancelled) && r.Header.Get("Mcp-Session-Id") == "":
		// Without a session an id says nothing of whose request is meant.
		w.WriteHeader(http.StatusAccepted)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	defer x.end()
	h.mcp.ServeHTTP(x, r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x)))
}

// readWithin bounds how long what the client still sends is waited for, 0
// meaning not at all. It reports false when the connection is gone.
func readWithin(w http.ResponseWriter, d time.Duration) bool {
	var until time.Time
	if d > 0 {
		until = time.Now().Add(d)
	}
	err := http.NewResponseController(w).SetReadDeadline(until)
	return err == nil || errors.Is(err, http.ErrNotSupported)
}

// errGone is told to nobody.
var errGone = errors.New("the connection is gone")

// readBody reads at most maxBody bytes within bodyTimeout.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, int, error) {
	if r.ContentLength > maxBody {
		return nil, http.StatusRequestEntityTooLarge, fmt.Errorf("the body has more than %d bytes", maxBody)
	}
	if !readWithin(w, bodyTimeout) {
		return nil, http.StatusBadRequest, errGone
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	var slow net.Error
	switch {
	case errors.As(err, &large):
		return nil, http.StatusRequestEntityTooLarge, fmt.Errorf("the body has more than %d bytes", maxBody)
	case errors.As(err, &slow) && slow.Timeout():
		return nil, http.StatusRequestTimeout, fmt.Errorf("the body did not arrive within %v", bodyTimeout)
	case err != nil:
		return nil, http.StatusBadRequest, fmt.Errorf("reading the body: %w", err)
	}
	if !readWithin(w, 0) {
		return nil, http.StatusBadRequest, errGone
	}
	return body, 0, nil
}

// refuseHTTP answers what never reaches MCP.
func refuseHTTP(w http.ResponseWriter, r *http.Request, status int, message string) {
	body, err := json.Marshal(map[string]string{"error": message})
	if err != nil {
		body = []byte(`{}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)+1))
	Linger(w, r, func() {
		w.WriteHeader(status)
		w.Write(append(body, '\n')) //nolint:errcheck // the client is gone
	})
}
