package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

const (
	// helperTimeout limits a run of a headers helper.
	helperTimeout = 10 * time.Second
)

// headersTransport adds the headers printed by a program to the requests to one server.
// The program runs at the first request of a connection, and again after a refusal.
type headersTransport struct {
	next   http.RoundTripper
	base   *url.URL
	cfg    OneShot
	run    func(context.Context, OneShot) ([]byte, string, error)
	values *helperValues

	mu      sync.Mutex
	headers map[string]string // nil: not run yet
	runs    int
}

// helperValues holds the header values that programs printed, so that messages can be
// redacted.
type helperValues struct {
	mu   sync.Mutex
	list []string
}

// all returns the values of the latest runs, nil for a nil receiver.
func (v *helperValues) all() []string {
	if v == nil {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]string(nil), v.list...)
}

// add adds the values of a run; at most 32 are kept.
func (v *helperValues) add(headers map[string]string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, value := range headers {
		v.list = append(v.list, value)
	}
	v.list = v.list[max(0, len(v.list)-32):] // of the latest runs
}

// withHeadersHelper returns next with the headers of Config.HeadersHelper added to
// requests to base; without a helper, next itself.
func (c Config) withHeadersHelper(base *url.URL, next http.RoundTripper) http.RoundTripper {
	if len(c.HeadersHelper.Command) == 0 {
		return next
	}
	return &headersTransport{next: next, base: base, cfg: c.HeadersHelper, run: c.runOnce, values: c.helperValues}
}

// CloseIdleConnections is called by http.Client.
func (h *headersTransport) CloseIdleConnections() {
	if closing, ok := h.next.(interface{ CloseIdleConnections() }); ok {
		closing.CloseIdleConnections()
	}
}

// RoundTrip sends a request with the headers, and once more with new ones after a refusal.
func (h *headersTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != h.base.Scheme || req.URL.Host != h.base.Host { // only this server gets them
		return h.next.RoundTrip(req)
	}
	headers, run, err := h.current(req.Context(), 0)
	for again := false; ; again = true {
		if err != nil {
			return nil, err
		}
		res, err2 := h.next.RoundTrip(withHeaders(req, headers))
		if err2 != nil || again || res.StatusCode != http.StatusUnauthorized && res.StatusCode != http.StatusForbidden || req.Body != nil && req.GetBody == nil {
			return res, err2
		}
		drain(res.Body)
		if headers, run, err = h.current(req.Context(), run); err == nil && req.Body != nil {
			req = req.Clone(req.Context())
			req.Body, err = req.GetBody()
		}
	}
}

// current returns the headers and the number of the run that printed them. It runs the
// program, for at most helperTimeout, unless there was a run after the given one. It returns
// AUTH_FAILED if the program fails.
func (h *headersTransport) current(ctx context.Context, after int) (map[string]string, int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.runs > after {
		return h.headers, h.runs, nil
	}
	ctx, cancel := context.WithTimeout(ctx, helperTimeout)
	defer cancel()
	out, said, err := h.run(ctx, h.cfg)
	if err == nil {
		h.headers, err = readHeaders(out)
	} else if line := lastLine(said); line != "" {
		err = fmt.Errorf("%w: %s", err, line)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("it printed no headers within %v", helperTimeout)
	}
	if err != nil {
		return nil, 0, toolerr.New(toolerr.AuthFailed, "headers_helper %s: %w", h.cfg.Command[0], err)
	}
	h.runs++
	h.values.add(h.headers)
	return h.headers, h.runs, nil
}

// readHeaders decodes the output of a helper: a JSON object of strings. It returns an error
// for other output.
func readHeaders(out []byte) (map[string]string, error) {
	var headers map[string]string
	if err := json.Unmarshal(out, &headers); err != nil || headers == nil {
		return nil, errors.New(`it must print a JSON object of texts, as in {"Authorization": "Bearer TOKEN"}`)
	}
	return headers, nil
}

// withHeaders returns a copy of a request with headers set, except those of the protocol.
func withHeaders(req *http.Request, headers map[string]string) *http.Request {
	req = req.Clone(req.Context())
	for name, value := range headers {
		if !isProtocolHeader(name) {
			req.Header.Set(name, value)
		}
	}
	return req
}
