package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/config/nesting"
	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
	"github.com/toolroom-mcp/toolroom/internal/httpguard"
	"github.com/toolroom-mcp/toolroom/internal/netguard"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/retry"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// remote is the common part of the wires to a server over HTTP: the client for one
// origin, the credentials, and the running requests.
type remote struct {
	cfg    Config
	base   *url.URL
	client *http.Client

	life     context.Context // ends with the run
	cancel   context.CancelFunc
	work     sync.WaitGroup // waits for the running requests
	attached chan struct{}  // closed when conn is set
	conn     *conn

	mu     sync.Mutex
	closed bool
}

// Limits of the client. A server that closes idle connections (Node.js after 5 s) may
// do so while one is reused, and the call is lost. So the client closes them first if
// a new connection is cheap.
const (
	connectTimeout    = 10 * time.Second
	maxIdleConns      = 64
	maxConns          = 256
	idleTLSTimeout    = 60 * time.Second
	idlePlainTimeout  = 4 * time.Second
	maxErrorBody      = 64 << 10
	errorBodyTime     = time.Second
	sessionEndTimeout = time.Second // to end the session at the server
)

// newRemote returns a remote for Config.URL. It connects to nothing.
func newRemote(cfg Config) (*remote, error) {
	base, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, errors.New("the address is malformed")
	}
	r := &remote{cfg: cfg, base: base, attached: make(chan struct{})}
	r.life, r.cancel = context.WithCancel(context.Background())
	idle := idlePlainTimeout
	if base.Scheme == "https" {
		idle = idleTLSTimeout
	}
	guard := addressGuard{host: base.Hostname(), allowPrivate: cfg.AllowPrivate || netguard.IsLocalName(base.Hostname())}
	r.client = &http.Client{
		CheckRedirect: sameOrigin,
		Transport: cfg.withAuthorization(base, cfg.withHeadersHelper(base, httpguard.RefuseUpgrades(&http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         guard.dial,
			TLSHandshakeTimeout: connectTimeout,
			ForceAttemptHTTP2:   true,
			MaxIdleConns:        maxIdleConns, MaxIdleConnsPerHost: maxIdleConns, MaxConnsPerHost: maxConns,
			IdleConnTimeout:        idle,
			MaxResponseHeaderBytes: 64 << 10,
		}))),
	}
	return r, nil
}

// errRedirect is wrapped by the refusal of a redirect.
var errRedirect = errors.New("redirect refused")

// sameOrigin is the CheckRedirect function of the client. It permits up to 3 redirects
// that change neither origin nor method, and returns errRedirect for others: another
// origin would get the credentials and the body.
func sameOrigin(req *http.Request, via []*http.Request) error {
	first := via[0]
	closeAfter(bodyEndTimeout, req.Response.Body) // some of it is read before the next request
	switch {
	case len(via) > 3:
		return fmt.Errorf("%w: more than 3 in a row", errRedirect)
	case req.URL.Scheme != first.URL.Scheme || req.URL.Host != first.URL.Host:
		return fmt.Errorf("%w: it redirects to %s://%s; configure that address if you trust it", errRedirect, req.URL.Scheme, req.URL.Host)
	case req.Method != first.Method:
		return fmt.Errorf("%w: it turns %s into %s; configure the target address, %s", errRedirect, first.Method, req.Method, secret.RedactURL(req.URL.String()))
	}
	return nil
}

// newRequest returns a request to an address of the server, with the configured headers and
// credentials. It returns an error for a malformed address.
func (r *remote) newRequest(ctx context.Context, method string, to *url.URL, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, to.String(), body)
	if err != nil {
		return nil, errors.New("the address is malformed")
	}
	for name, value := range r.cfg.Headers {
		if !isProtocolHeader(name) {
			req.Header.Set(name, value.Reveal())
		}
	}
	if r.cfg.Token != "" {
		req.Header.Set("Authorization", "Bearer "+r.cfg.Token.Reveal())
	}
	if r.cfg.Host != "" {
		req.Header.Set(nesting.Header, r.cfg.Host)
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "toolroom/"+clientInfo(r.cfg.Version)["version"])
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	return req, nil
}

// isProtocolHeader reports whether a header belongs to the protocol. Configured values of
// such headers are ignored.
func isProtocolHeader(name string) bool {
	name = http.CanonicalHeaderKey(name)
	switch name {
	case "Accept", "Content-Type", "Content-Length", "Transfer-Encoding", "Connection", "Last-Event-Id":
		return true
	}
	return strings.HasPrefix(name, "Mcp-")
}

// attach sets the run's connection and closes r.attached, for which senders wait. It must
// be called once.
func (r *remote) attach(c *conn) {
	r.conn = c
	close(r.attached)
}

// close refuses further messages.
func (r *remote) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
}

// beginWork counts work that must end before the run ends; the caller calls work.Done. It
// returns errNotSent after close.
func (r *remote) beginWork() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return fmt.Errorf("%w: the connection has ended", errNotSent)
	}
	r.work.Add(1)
	return nil
}

// cancelAndWait cancels the running requests and waits for all registered work.
func (r *remote) cancelAndWait() {
	r.cancel()
	r.work.Wait()
}

// describe implements wire. It returns an empty description: there is no process.
func (r *remote) describe() wireDescription { return wireDescription{} }

// redactedURL returns the address without credentials.
func (r *remote) redactedURL() string { return secret.RedactURL(r.cfg.URL) }

// offlineError returns SERVER_OFFLINE for an error of the HTTP client, except that a
// *authError is returned unchanged. The text shows the address without credentials.
func (r *remote) offlineError(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	var auth *authError
	if errors.As(err, &auth) {
		return auth
	}
	return toolerr.New(toolerr.ServerOffline, "cannot reach %s: %w", r.redactedURL(), err)
}

// isUnsent reports whether an error of the client means that the server was not reached.
func isUnsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// isStaleConnection reports whether an error of the client means that the server had closed a
// reused connection before anything was sent. net/http exports no error for that, and
// retries only idempotent requests.
func isStaleConnection(err error) bool {
	var wrapped *url.Error
	if !errors.As(err, &wrapped) {
		return false
	}
	text := wrapped.Err.Error()
	return text == "http: server closed idle connection" || strings.HasPrefix(text, "readLoopPeekFailLocked: ")
}

// maxStaleConnections bounds the closed connections in succession for one request.
const maxStaleConnections = 10

// doRequest sends a request. If the server had closed the reused connection, it uses
// another one, provided that the body can be sent again. The caller closes the body.
func (r *remote) doRequest(req *http.Request) (*http.Response, error) {
	for n := 0; ; n++ {
		res, err := r.client.Do(req)
		if err == nil || n == maxStaleConnections || req.GetBody == nil || !isStaleConnection(err) {
			return res, err
		}
		if req.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
}

// statusError returns the error for a status that is not a success: AUTH_FAILED for 401
// and 403, RATE_LIMITED for 429, and otherwise a *statusError.
func (r *remote) statusError(res *http.Response, body []byte) error {
	text := fmt.Sprintf("%s answered with status %s", r.redactedURL(), res.Status)
	if line := firstTextLine([]byte(r.cfg.redact(string(body)))); line != "" {
		text += ": " + line
	}
	switch res.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return toolerr.New(toolerr.AuthFailed, "%s; %s", text, r.credentialAdvice())
	case http.StatusTooManyRequests:
		if after := res.Header.Get("Retry-After"); after != "" {
			text += fmt.Sprintf("; try again after %.40q", after)
		}
		return withRetryAfter(res, toolerr.New(toolerr.RateLimited, "%s", text))
	}
	return &statusError{res.StatusCode, withRetryAfter(res, toolerr.New(toolerr.TransportError, "%s", text))}
}

// statusError is a refusal that may mean that the server uses another transport.
type statusError struct {
	status int
	err    error
}

// Error returns the text of the wrapped error.
func (e *statusError) Error() string { return e.err.Error() }

// Unwrap returns the wrapped error.
func (e *statusError) Unwrap() error { return e.err }

// StatusCode returns the HTTP status, for decisions about retries.
func (e *statusError) StatusCode() int { return e.status }

// withRetryAfter adds the pause of the header Retry-After, in ms, to the error, if the
// response has one.
func withRetryAfter(res *http.Response, err *toolerr.Error) *toolerr.Error {
	if after, ok := retry.ParseAfter(res.Header.Get("Retry-After"), time.Now()); ok && after > 0 {
		return err.With(retry.After, after.Milliseconds())
	}
	return err
}

// firstTextLine returns the first line of an error's body, "" for HTML.
func firstTextLine(body []byte) string {
	text := strings.TrimSpace(strings.ToValidUTF8(string(body[:min(len(body), 1000)]), "\uFFFD"))
	if strings.HasPrefix(text, "<") { // HTML
		return ""
	}
	line, _, _ := strings.Cut(text, "\n")
	return lastLine(line)
}

// mediaType returns the media type of a response in lower case, "" if it has none or a
// malformed one.
func mediaType(res *http.Response) string {
	media, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return media
}

// bodyEndTimeout is the time to wait for the end of a body whose rest is not needed. A
// stream need not end after its answer.
const bodyEndTimeout = 250 * time.Millisecond

// closeAfter closes a body after a duration, unless the returned timer is stopped before.
func closeAfter(d time.Duration, body io.Closer) *time.Timer {
	return time.AfterFunc(d, func() { body.Close() }) //nolint:errcheck // only read from
}

// readBeginning reads a refusal's body for errorBodyTime, and at most maxErrorBody bytes
// of it. With an error it returns what it has read.
func readBeginning(body io.ReadCloser) ([]byte, error) {
	defer closeAfter(errorBodyTime, body).Stop()
	return io.ReadAll(io.LimitReader(body, maxErrorBody))
}

// drain reads the rest of a small body, so that its connection can be reused, and
// closes it.
func drain(body io.ReadCloser) {
	defer closeAfter(bodyEndTimeout, body).Stop()
	io.CopyN(io.Discard, body, maxErrorBody) //nolint:errcheck // on an error the connection is not reused
	body.Close()                             //nolint:errcheck // only read from
}
