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

// remote is what the wires to a server at an address have in common: a client
// that stays at that address, the credentials, and what goes on.
type remote struct {
	cfg    Config
	base   *url.URL
	client *http.Client

	life  context.Context // ends with the run
	end   context.CancelFunc
	work  sync.WaitGroup // of the requests under way
	begun chan struct{}  // closed when conn is set
	conn  *conn

	mu     sync.Mutex
	closed bool
}

// The client's bounds. A server that closes idle connections (Node.js does
// after 5 s) may do so just as one is used again, and the call is lost; so
// the client closes them first where opening a new one costs next to nothing.
const (
	connectTimeout = 10 * time.Second
	idleConns      = 64
	maxConns       = 256
	idleTLS        = 60 * time.Second
	idlePlain      = 4 * time.Second
	maxErrorBody   = 64 << 10
	errorBodyTime  = time.Second
	goodbye        = time.Second // for telling the server that the session is over
)

func newRemote(cfg Config) (*remote, error) {
	base, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, errors.New("the address is malformed")
	}
	r := &remote{cfg: cfg, base: base, begun: make(chan struct{})}
	r.life, r.end = context.WithCancel(context.Background())
	idle := idlePlain
	if base.Scheme == "https" {
		idle = idleTLS
	}
	guard := addressGuard{host: base.Hostname(), private: cfg.AllowPrivate || netguard.IsLocalName(base.Hostname())}
	r.client = &http.Client{
		CheckRedirect: sameOrigin,
		Transport: cfg.authorized(base, cfg.helped(base, httpguard.Transport(&http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         guard.dial,
			TLSHandshakeTimeout: connectTimeout,
			ForceAttemptHTTP2:   true,
			MaxIdleConns:        idleConns, MaxIdleConnsPerHost: idleConns, MaxConnsPerHost: maxConns,
			IdleConnTimeout:        idle,
			MaxResponseHeaderBytes: 64 << 10,
		}))),
	}
	return r, nil
}

// errRedirect is wrapped by the refusal of a redirect.
var errRedirect = errors.New("redirect refused")

// sameOrigin lets a redirect pass that changes neither the origin nor the
// method: another origin would be given the credentials, and the body.
func sameOrigin(req *http.Request, via []*http.Request) error {
	first := via[0]
	closeAfter(lingering, req.Response.Body) // some of it is read before the next request
	switch {
	case len(via) > 3:
		return fmt.Errorf("%w: more than 3 in a row", errRedirect)
	case req.URL.Scheme != first.URL.Scheme || req.URL.Host != first.URL.Host:
		return fmt.Errorf("%w: it redirects to %s://%s; configure that address if you trust it", errRedirect, req.URL.Scheme, req.URL.Host)
	case req.Method != first.Method:
		return fmt.Errorf("%w: it turns %s into %s; configure the target address, %s", errRedirect, first.Method, req.Method, secret.URL(req.URL.String()))
	}
	return nil
}

// request makes a request to an address of the server's, with the configured
// headers and the credentials.
func (r *remote) request(ctx context.Context, method string, to *url.URL, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, to.String(), body)
	if err != nil {
		return nil, errors.New("the address is malformed")
	}
	for name, value := range r.cfg.Headers {
		if !ofProtocol(name) {
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

// ofProtocol reports whether a header is the protocol's, so that a configured
// one would only contradict it.
func ofProtocol(name string) bool {
	name = http.CanonicalHeaderKey(name)
	switch name {
	case "Accept", "Content-Type", "Content-Length", "Transfer-Encoding", "Connection", "Last-Event-Id":
		return true
	}
	return strings.HasPrefix(name, "Mcp-")
}

// attach begins a run for c.
func (r *remote) attach(c *conn) {
	r.conn = c
	close(r.begun)
}

// close refuses further messages.
func (r *remote) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
}

// begin makes room for something to go on until the run ends, unless it has.
func (r *remote) begin() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return fmt.Errorf("%w: the connection has ended", errNotSent)
	}
	r.work.Add(1)
	return nil
}

// finish waits until nothing goes on any more.
func (r *remote) finish() {
	r.end()
	r.work.Wait()
}

func (r *remote) describe() description { return description{} }

// where is the address as it can be shown.
func (r *remote) where() string { return secret.URL(r.cfg.URL) }

// unreachable explains an error of the client's. It repeats no address, which
// may hold credentials.
func (r *remote) unreachable(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	var signIn *signInError
	if errors.As(err, &signIn) {
		return signIn
	}
	return toolerr.New(toolerr.ServerOffline, "cannot reach %s: %w", r.where(), err)
}

// unsent reports whether an error of the client's means that the server was
// not reached at all.
func unsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// unused reports whether an error of the client's means that a connection which
// was to be used again had been ended by the server before anything was sent on
// it. The client has no name for that, and makes again only what may be repeated.
func unused(err error) bool {
	var wrapped *url.Error
	if !errors.As(err, &wrapped) {
		return false
	}
	text := wrapped.Err.Error()
	return text == "http: server closed idle connection" || strings.HasPrefix(text, "readLoopPeekFailLocked: ")
}

// mostUnused is how many connections in a row may turn out to have ended.
const mostUnused = 10

// do makes a request, on another connection where one had ended before.
func (r *remote) do(req *http.Request) (*http.Response, error) {
	for n := 0; ; n++ {
		res, err := r.client.Do(req)
		if err == nil || n == mostUnused || req.GetBody == nil || !unused(err) {
			return res, err
		}
		if req.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
}

// refusal makes an error of a status that is none of success.
func (r *remote) refusal(res *http.Response, body []byte) error {
	text := fmt.Sprintf("%s answered with status %s", r.where(), res.Status)
	if line := plainLine([]byte(r.cfg.conceal(string(body)))); line != "" {
		text += ": " + line
	}
	switch res.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return toolerr.New(toolerr.AuthFailed, "%s; %s", text, r.advice())
	case http.StatusTooManyRequests:
		if after := res.Header.Get("Retry-After"); after != "" {
			text += fmt.Sprintf("; try again after %.40q", after)
		}
		return retryAfter(res, toolerr.New(toolerr.RateLimited, "%s", text))
	}
	return &statusError{res.StatusCode, retryAfter(res, toolerr.New(toolerr.TransportError, "%s", text))}
}

// statusError is a refusal that may mean that the server speaks otherwise.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

// StatusCode is for those who decide whether to try again.
func (e *statusError) StatusCode() int { return e.status }

// retryAfter adds to an error when the server wants to be asked again, if it
// says so.
func retryAfter(res *http.Response, err *toolerr.Error) *toolerr.Error {
	if after, ok := retry.ParseAfter(res.Header.Get("Retry-After"), time.Now()); ok && after > 0 {
		return err.With(retry.After, after.Milliseconds())
	}
	return err
}

// plainLine is the first line of an error's body that is text.
func plainLine(body []byte) string {
	text := strings.TrimSpace(strings.ToValidUTF8(string(body[:min(len(body), 1000)]), "\uFFFD"))
	if strings.HasPrefix(text, "<") { // a page
		return ""
	}
	line, _, _ := strings.Cut(text, "\n")
	return lastLine(line)
}

// mediaType is the type of a response's body, in lower case.
func mediaType(res *http.Response) string {
	media, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return media
}

// lingering is how long the end of a body is waited for of which nothing more
// is wanted. A stream need not end with the answer in it.
const lingering = 250 * time.Millisecond

// closeAfter ends the reading of a body after a time.
func closeAfter(d time.Duration, body io.Closer) *time.Timer {
	return time.AfterFunc(d, func() { body.Close() }) //nolint:errcheck // only read from
}

// beginning reads as much of a refusal's body as is worth waiting for. With an
// error it returns what had come.
func beginning(body io.ReadCloser) ([]byte, error) {
	defer closeAfter(errorBodyTime, body).Stop()
	return io.ReadAll(io.LimitReader(body, maxErrorBody))
}

// drain reads what is left of a small body, so that its connection can be used
// again, and closes it.
func drain(body io.ReadCloser) {
	defer closeAfter(lingering, body).Stop()
	io.CopyN(io.Discard, body, maxErrorBody) //nolint:errcheck // the connection is given up instead
	body.Close()                             //nolint:errcheck // only read from
}
