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
	"strconv"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/toolroom-mcp/toolroom/host/internal/accesstoken"
	"github.com/toolroom-mcp/toolroom/host/internal/config/nesting"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// HTTPConfig configures the HTTP handler.
type HTTPConfig struct {
	Token string   // "": not required, unless Auth is set
	Auth  *Auth    // nil: users do not sign in
	Hosts []string // accepted values of the header Host, with port

	// Metrics writes the page /metrics with the content type MetricsType. nil: there
	// is no such page.
	Metrics     func(io.Writer) error
	MetricsType string

	// ID identifies this host. A request that carries it comes from this host itself.
	ID string

	// API serves all other paths for requests with the token. Callback serves
	// /v1/callback/ without a token, since these addresses are secret themselves. Both
	// may be nil.
	API      API
	Callback http.Handler

	// SignIn serves /sign-in/ without a token, for browsers; nil: there are no such
	// pages.
	SignIn http.Handler
}

// API serves the paths besides MCP.
type API interface {
	http.Handler
	Serves(path string) bool // reports whether the path belongs to the API

	// Refuse answers a request to the API that is not permitted.
	Refuse(w http.ResponseWriter, r *http.Request, status int, message string)
}

// Bounds of one request.
const (
	maxBody           = 16 << 20
	maxInitialize     = 64 << 10 // for initialize, much of which is kept during the session
	bodyTimeout       = 30 * time.Second
	unreadBodyTimeout = 5 * time.Second // for the body of a request that is answered without reading it
)

// modelUserAgent is the User-Agent of the host's requests to models
// (endpoint.UserAgent).
const modelUserAgent = "toolroom-model"

// HTTPHandler serves /mcp, /metrics, /healthz, the API and, if cfg has them, the
// callbacks of approvals, the sign-in of users at servers, and the metadata of OAuth.
// Close it after the http.Server.
type HTTPHandler struct {
	cfg           HTTPConfig
	digest        [sha256.Size]byte // of the token, so that the comparison does not reveal its length
	gateway       *Gateway
	mcp           *server.StreamableHTTPServer
	sessions      *sessions
	life          context.Context // ends the calls
	unreadTimeout time.Duration   // writeTimeout; shorter in tests
	endCalls      context.CancelCauseFunc

	questions clientRequests
}

// errStopping is the cause with which calls end when the host stops.
var errStopping = errors.New("the host is stopping; try again when it runs")

// HTTP returns the HTTP handler of the gateway.
func (g *Gateway) HTTP(cfg HTTPConfig) *HTTPHandler {
	if cfg.Auth != nil {
		g.clients.anyUsers.Store(true)
	}
	life, end := context.WithCancelCause(context.Background())
	known := newSessions(func(id string) { g.forgetLegacyClient(sessionIdentity(id)) })
	return &HTTPHandler{
		cfg: cfg, digest: sha256.Sum256([]byte(cfg.Token)), gateway: g, life: life, endCalls: end, sessions: known, unreadTimeout: writeTimeout,
		mcp: server.NewStreamableHTTPServer(g.mcp,
			server.WithSessionIdManager(known),
			server.WithSessionIdleTTL(sessionIdleTimeout),
			server.WithHeartbeatInterval(keepAliveInterval),
			server.WithDisableLocalhostProtection(true),                    // HostNames are checked before, and a reverse proxy forwards its public name to a loopback address
			server.WithStreamableHTTPLogger(slog.New(slog.DiscardHandler)), // it would log clients that disconnect
		),
	}
}

// Abort cancels the running calls. Each is answered as cancelled.
func (h *HTTPHandler) Abort() { h.endCalls(errStopping) }

// Close ends the sessions and their event streams. It does not wait for running calls; see
// Abort. It always returns nil.
func (h *HTTPHandler) Close(ctx context.Context) error { return h.mcp.Shutdown(ctx) }

// NewHTTPServer returns a server with limits for connections, headers and idle time.
func NewHTTPServer(h http.Handler) *http.Server {
	open := &connLimiter{max: maxConnsFor(descriptorLimit())}
	return &http.Server{
		ConnState:         open.onStateChange,
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // it would log clients that disconnect
	}
}

// ServeHTTP serves requests that name this server in Host, do not come from a page of
// another site, and have the host's token or a user's. /healthz, the callbacks of
// approvals, sign-ins and the metadata of OAuth need no token.
func (h *HTTPHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Server", "toolroom") // a host that looks for models on this machine recognizes this host by it
	// The server reads the rest of a body before it sends an answer. Without a
	// deadline it would wait forever, even for a client without access.
	if !setReadDeadline(w, unreadBodyTimeout) {
		return
	}
	switch {
	case !h.hasOwnHost(r):
		h.refuse(w, r, http.StatusForbidden, fmt.Sprintf("unknown Host %q; use one of %s, or start serve with --allow-host", r.Host, strings.Join(h.cfg.Hosts, ", ")))
	case !h.hasOwnOrigin(r):
		h.refuse(w, r, http.StatusForbidden, "requests from other sites' pages are refused (Origin)")
	case r.URL.Path == "/healthz" && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		io.WriteString(w, "ok\n") //nolint:errcheck // the client is gone
	case strings.HasPrefix(r.URL.Path, "/v1/callback/") && h.cfg.Callback != nil:
		h.serveAPI(h.cfg.Callback, w, r)
	case h.cfg.SignIn != nil && strings.HasPrefix(r.URL.Path, "/sign-in/"):
		h.serveAPI(h.cfg.SignIn, w, r)
	case h.cfg.Auth != nil && strings.HasPrefix(r.URL.Path, resourceMetadata):
		h.serveResourceMetadata(w, r)
	case h.cfg.ID != "" && r.Header.Get(nesting.Header) == h.cfg.ID:
		h.refuse(w, r, http.StatusLoopDetected, "this host is configured as a server of itself; remove the server with this url from its configuration")
	default:
		if user, ok := h.authenticate(w, r); ok {
			h.serveAuthorized(w, r, user)
		}
	}
}

// serveAuthorized answers a request of a user, or of the owner of the host's token if user
// is nil.
func (h *HTTPHandler) serveAuthorized(w http.ResponseWriter, r *http.Request, user *accesstoken.User) {
	switch {
	case r.URL.Path == "/metrics" && h.cfg.Metrics != nil:
		h.serveMetrics(w, r)
	case r.UserAgent() == modelUserAgent && h.isAPIRequest(r): // the host would call itself without end
		h.refuse(w, r, http.StatusForbidden, "a toolroom host cannot be the model of a host: give the model's address in models or OPENAI_BASE_URL")
	case h.isAPIRequest(r):
		h.serveAPI(h.cfg.API, w, r)
	default:
		h.serveMCP(w, r, user)
	}
}

// isAPIRequest reports whether a request is for the OpenAI- or Anthropic-compatible
// API.
func (h *HTTPHandler) isAPIRequest(r *http.Request) bool {
	return h.cfg.API != nil && h.cfg.API.Serves(r.URL.Path)
}

// refuse answers a request without access in the format of the path's clients.
func (h *HTTPHandler) refuse(w http.ResponseWriter, r *http.Request, status int, message string) {
	if h.isAPIRequest(r) {
		h.cfg.API.Refuse(w, r, status, message)
		return
	}
	refuseHTTP(w, r, status, message)
}

// serveAPI passes a request to the handler to, without a body unless the method is POST.
// The context of the request ends with the host.
func (h *HTTPHandler) serveAPI(to http.Handler, w http.ResponseWriter, r *http.Request) {
	var d time.Duration
	switch {
	case r.Method == http.MethodPost:
		d = bodyTimeout
	case r.ContentLength != 0:
		h.refuse(w, r, http.StatusBadRequest, r.Method+" must not have a body")
		return
	}
	if !setReadDeadline(w, d) {
		return
	}
	ctx, end := context.WithCancelCause(r.Context())
	defer end(nil)
	defer context.AfterFunc(h.life, func() { end(errStopping) })()
	to.ServeHTTP(w, r.WithContext(ctx))
}

// serveMetrics serves the metrics. It requires the token, because they contain the
// names of servers and tools.
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
		writeWithin(w, h.unreadTimeout, page.Bytes(), false) //nolint:errcheck // the client is gone
	}
}

// serveMCP serves /mcp and, with the catalog of a profile, /mcp/PROFILE. It refuses
// sessions of other users, of other paths, and those that have ended.
func (h *HTTPHandler) serveMCP(w http.ResponseWriter, r *http.Request, user *accesstoken.User) {
	profile, catalog, ok := h.endpoint(r.URL.Path)
	if ok {
		profile, catalog, ok = h.userProfile(user, profile, catalog)
	}
	session := r.Header.Get(server.HeaderKeySessionID)
	switch {
	case !ok:
		text := "not found"
		if name, under := strings.CutPrefix(r.URL.Path, "/mcp/"); under {
			text = fmt.Sprintf("no profile %q", name)
		}
		refuseHTTP(w, r, http.StatusNotFound, text+"; the MCP endpoint is /mcp")
	case h.isOtherUsersSession(r, user):
		refuseHTTP(w, r, http.StatusNotFound, "the session is not open; open a new one")
	case session != "" && !mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)) && h.gateway.clients.get(sessionIdentity(session)).profile != profile:
		refuseHTTP(w, r, http.StatusNotFound, "the session belongs to another path; open a new one")
	case r.Method == http.MethodPost:
		h.servePost(w, r, user, profile, catalog)
	case (r.Method == http.MethodGet || r.Method == http.MethodDelete) && r.ContentLength != 0:
		refuseHTTP(w, r, http.StatusBadRequest, r.Method+" must not have a body")
	case r.Method != http.MethodPost && session != "" && h.sessions.isClosed(session): // mcp-go checks this only for POST
		refuseHTTP(w, r, http.StatusNotFound, "the session has ended; open a new one")
	case r.Method == http.MethodGet || r.Method == http.MethodDelete:
		if setReadDeadline(w, 0) {
			ctx, end := withTokenExpiry(r.Context(), user)
			defer end()
			h.mcp.ServeHTTP(w, r.WithContext(ctx))
		}
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		refuseHTTP(w, r, http.StatusMethodNotAllowed, "use POST, GET or DELETE")
	}
}

// endpoint returns the profile and catalog of a path. ok is false if the path is no
// endpoint.
func (h *HTTPHandler) endpoint(path string) (profile string, catalog Catalog, ok bool) {
	if path == "/mcp" {
		return "", nil, true
	}
	profile, ok = strings.CutPrefix(path, "/mcp/")
	if !ok || profile == "" || h.gateway.cfg.Profile == nil {
		return "", nil, false
	}
	catalog, ok = h.gateway.cfg.Profile(profile)
	return profile, catalog, ok
}

// hasHostToken reports whether a request has the host's token. Without a token and
// without sign-in, all requests have it.
func (h *HTTPHandler) hasHostToken(r *http.Request) bool {
	if h.cfg.Token == "" {
		return h.cfg.Auth == nil
	}
	values := r.Header.Values("Authorization")
	if keys := r.Header.Values("X-Api-Key"); len(values) == 0 && len(keys) == 1 && h.isAPIRequest(r) { // as Anthropic's clients send the token
		values = []string{"Bearer " + keys[0]}
	}
	if len(values) != 1 {
		return false
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	given := sha256.Sum256([]byte(strings.TrimSpace(token)))
	return subtle.ConstantTimeCompare(given[:], h.digest[:]) == 1 && strings.EqualFold(scheme, "Bearer")
}

// servePost reads a message from a POST and passes it to mcp-go with an httpExchange,
// which takes the answer.
func (h *HTTPHandler) servePost(w http.ResponseWriter, r *http.Request, user *accesstoken.User, profile string, catalog Catalog) {
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
	if m.Method == string(mcp.MethodInitialize) && len(body) > maxInitialize {
		refuseHTTP(w, r, http.StatusRequestEntityTooLarge, fmt.Sprintf("an initialize has at most %d bytes", maxInitialize))
		return
	}
	x := &httpExchange{
		ResponseWriter: w, header: r.Header, callParams: m.Params, handler: h,
		remote: r.RemoteAddr, user: userName(user), profile: profile, catalog: catalog,
		events: strings.Contains(r.Header.Get("Accept"), "text/event-stream"),
		modern: mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)),
	}
	if user != nil {
		x.subject, x.token = user.Subject, bearerToken(r)
	}
	switch {
	case m.Kind == jsonrpc.Request:
		x.id = m.ID
	case m.Kind == jsonrpc.Response && h.questions.answer(x.identity(), m):
		w.WriteHeader(http.StatusAccepted)
		return
	case m.Method == string(mcp.MethodNotificationCancelled) && r.Header.Get("Mcp-Session-Id") == "":
		// Without a session, the id of a cancelled request does not identify a
		// client's request.
		w.WriteHeader(http.StatusAccepted)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	defer x.finish()
	h.mcp.ServeHTTP(x, r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x)))
}

// setReadDeadline limits the time to wait for the rest of a request; 0 means no
// waiting. It returns false if the connection is gone.
func setReadDeadline(w http.ResponseWriter, d time.Duration) bool {
	var until time.Time
	if d > 0 {
		until = time.Now().Add(d)
	}
	err := http.NewResponseController(w).SetReadDeadline(until)
	return err == nil || errors.Is(err, http.ErrNotSupported)
}

// errConnectionGone is the error of writes to a connection that is gone. No client
// sees it.
var errConnectionGone = errors.New("the connection is gone")

// readBody returns the body of a request, at most maxBody bytes within bodyTimeout. If it
// fails, it returns the HTTP status to answer with (413, 408 or 400), else 0.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, int, error) {
	if r.ContentLength > maxBody {
		return nil, http.StatusRequestEntityTooLarge, fmt.Errorf("the body has more than %d bytes", maxBody)
	}
	if !setReadDeadline(w, bodyTimeout) {
		return nil, http.StatusBadRequest, errConnectionGone
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
	if !setReadDeadline(w, 0) {
		return nil, http.StatusBadRequest, errConnectionGone
	}
	return body, 0, nil
}

// refuseHTTP answers a request that is not passed to MCP with the status and a JSON object
// with the message. It reads the rest of the request's body, within limits.
func refuseHTTP(w http.ResponseWriter, r *http.Request, status int, message string) {
	body, err := json.Marshal(map[string]string{"error": message})
	if err != nil {
		body = []byte(`{}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)+1))
	AnswerAndDrain(w, r, func() {
		w.WriteHeader(status)
		w.Write(append(body, '\n')) //nolint:errcheck // the client is gone
	})
}
