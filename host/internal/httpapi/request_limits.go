package httpapi

import (
	"errors"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// The limits of a request and its answer.
const (
	maxBody         = 16 << 20         // bytes
	maxArtifact     = 50 << 20         // bytes
	bodyTimeout     = 30 * time.Second // for reading a body
	artifactTimeout = 5 * time.Minute  // for reading an artifact
	maxPiece        = 64 << 10
)

// deadlineWriter limits the time in which the client must read each piece. After that
// it closes the connection.
type deadlineWriter struct {
	http.ResponseWriter
	timeout time.Duration // time limit for each piece
}

// Unwrap is for http.ResponseController.
func (p *deadlineWriter) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// Write writes in pieces, each with its own time limit. It returns an error if the client
// does not take a piece in time.
func (p *deadlineWriter) Write(text []byte) (n int, err error) {
	for first := true; first || len(text) > 0; first = false {
		if err := p.setDeadline(time.Now().Add(p.timeout)); err != nil {
			return n, err
		}
		written, err := p.ResponseWriter.Write(text[:min(len(text), maxPiece)])
		n, text = n+written, text[written:]
		if err != nil {
			return n, err
		}
	}
	return n, p.setDeadline(time.Time{})
}

// setDeadline sets the time at which the next write fails; the zero time removes the
// limit. It returns nil if the writer does not support deadlines.
func (p *deadlineWriter) setDeadline(t time.Time) error {
	err := http.NewResponseController(p.ResponseWriter).SetWriteDeadline(t)
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

// readBody reads the body of a request. It returns an error with status 415 if the body is not
// declared as JSON, 413 above maxBody, and otherwise the error of unread.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return nil, &apiError{status: http.StatusUnsupportedMediaType, code: string(toolerr.InvalidInput), message: "Content-Type must be application/json"}
	}
	if r.ContentLength > maxBody {
		return nil, tooLarge(w, maxBody)
	}
	setReadTimeout(w, bodyTimeout)
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return nil, bodyError(w, err, maxBody)
	}
	setReadTimeout(w, 0) // later input can only be the end of the connection
	r.Body = http.NoBody
	return text, nil
}

// setReadTimeout limits the time for reading from the client to d from now; 0: no limit.
func setReadTimeout(w http.ResponseWriter, d time.Duration) {
	var until time.Time
	if d > 0 {
		until = time.Now().Add(d)
	}
	http.NewResponseController(w).SetReadDeadline(until) //nolint:errcheck // the connection is gone, or there is none
}

// bodyError returns the error for a body whose read failed with err: TOO_LARGE above most
// bytes, TIMEOUT, or INVALID_INPUT.
func bodyError(w http.ResponseWriter, err error, most int64) error {
	var large *http.MaxBytesError
	var slow net.Error
	switch {
	case errors.As(err, &large), toolerr.Is(err, toolerr.TooLarge):
		return tooLarge(w, most)
	case errors.As(err, &slow) && slow.Timeout():
		return &apiError{status: http.StatusRequestTimeout, code: string(toolerr.Timeout), message: "the body did not arrive in time"}
	}
	return toolerr.New(toolerr.InvalidInput, "the body cannot be read: %w", err)
}

// tooLarge returns TOO_LARGE for a body of more than most bytes, and closes the
// connection after the answer.
func tooLarge(w http.ResponseWriter, most int64) error {
	w.Header().Set("Connection", "close")
	return toolerr.New(toolerr.TooLarge, "the body has more than %d bytes", most)
}

// readMembers reads a body with an object, and passes each member that is not null to the
// function of its name in take. It returns an error that names an unknown or wrong member. An
// empty body has no members.
func readMembers(w http.ResponseWriter, r *http.Request, take map[string]func(value []byte) error) error {
	if r.ContentLength == 0 {
		return nil
	}
	text, err := readBody(w, r)
	if err != nil {
		return err
	}
	found, err := jsonrpc.Members(text)
	if err != nil {
		return toolerr.New(toolerr.InvalidInput, "the body is not one JSON object: %w", err)
	}
	for _, m := range found {
		if take[m.Name] == nil {
			return invalid(m.Name, "%.40s: unknown member; the body is %s", m.Name, exampleBody(slices.Sorted(maps.Keys(take))))
		}
		if string(m.Value) == "null" {
			continue
		}
		if err := take[m.Name](m.Value); err != nil {
			return invalid(m.Name, "%.40s: %w", m.Name, err)
		}
	}
	return nil
}

// exampleBody returns an example of an object with these members. It changes names.
func exampleBody(names []string) string {
	for i, name := range names {
		names[i] = `"` + name + `": …`
	}
	return "{" + strings.Join(names, ", ") + "}"
}

// rateLimiter limits the rate of each client's requests with a token bucket.
type rateLimiter struct {
	each, burst float64 // requests per second, and in a burst

	mu      sync.Mutex
	clients map[string]*bucket
}

// bucket is the token bucket of a client: the requests left at a time.
type bucket struct {
	left float64
	at   time.Time
}

// maxClients bounds the clients whose requests are counted.
const maxClients = 4096

// take counts a request of a client and returns 0. If the client exceeds its rate, it counts
// nothing, and returns the time until the next request is permitted.
func (r *rateLimiter) take(client string, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.clients[client]
	if b == nil {
		if len(r.clients) >= maxClients {
			r.dropIdle(now)
		}
		b = &bucket{left: r.burst, at: now}
		r.clients[client] = b
	}
	b.left = min(r.burst, b.left+r.each*max(0, now.Sub(b.at).Seconds()))
	b.at = now
	if b.left < 1 {
		return time.Duration((1 - b.left) / r.each * float64(time.Second))
	}
	b.left--
	return 0
}

// dropIdle removes clients with full buckets, or all clients if there are none.
func (r *rateLimiter) dropIdle(now time.Time) {
	for client, b := range r.clients {
		if b.left+r.each*now.Sub(b.at).Seconds() >= r.burst {
			delete(r.clients, client)
		}
	}
	if len(r.clients) >= maxClients {
		clear(r.clients)
	}
}

// clientAddress returns the IP address of a request, by which its client is counted: all
// clients with the token at one address share a rate.
func clientAddress(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// Serves reports whether the API serves a path.
func (a *API) Serves(path string) bool {
	return strings.HasPrefix(path, "/v1/") || path == "/artifact" || strings.HasPrefix(path, "/artifact/") || path == "/openapi.json"
}
