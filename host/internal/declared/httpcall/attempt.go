package httpcall

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/executor"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/retry"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// client sends the requests of one tool.
type client struct {
	*compiledConfig
	shape     executor.Shape
	agent     string
	transport http.RoundTripper
	single    http.RoundTripper // uses each connection once
}

// maxRedirects bounds the redirects of a request.
const maxRedirects = 5

// sendOnce sends the request, follows redirects, and returns the tool's result. It does not repeat a
// request that failed. The time limit is for one attempt.
func (e *client) sendOnce(ctx context.Context, req *call.Request, r *request) (*call.Result, error) {
	timed, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	resp, err := e.followRedirects(timed, r, req.Tool.IsRepeatable())
	var body []byte
	if err == nil {
		defer resp.Body.Close() //nolint:errcheck // only read
		body, err = readBody(resp.Body)
	}
	if err != nil {
		return nil, e.requestError(ctx, timed, req.Tool.Name, err)
	}
	return e.toolResult(req.Tool.Name, resp, body)
}

// followRedirects sends requests until the answer is no redirect, at most maxRedirects.
// After a redirect to another origin it sends no declared headers. It returns POLICY_DENIED
// for a forbidden address. The caller closes the body.
func (e *client) followRedirects(ctx context.Context, r *request, repeatable bool) (*http.Response, error) {
	method, at, body := e.Method, r.url, r.body
	home, own := origin(at), true
	g := guard{private: e.Private, networks: e.Networks}
	for hop := 0; ; hop++ {
		if err := g.checkHost(at.Hostname()); err != nil {
			return nil, err
		}
		own = own && origin(at) == home // after another origin has redirected, even requests to the own origin get no credentials
		resp, err := e.send(ctx, method, at, body, r.header, own, repeatable)
		if err != nil {
			return nil, err
		}
		next, to, err := redirectTarget(resp, at, method)
		if err != nil || to == nil {
			return resp, err
		}
		io.CopyN(io.Discard, resp.Body, 4<<10) //nolint:errcheck // so that the connection can be reused
		resp.Body.Close()                      //nolint:errcheck // only read
		if hop == maxRedirects {
			return nil, toolerr.New(toolerr.ExecutionError, "it redirects more than %d times", maxRedirects)
		}
		if next != method {
			method, body = next, nil
		}
		if body != nil && origin(to) != home {
			return nil, toolerr.New(toolerr.PolicyDenied, "it redirects the request with its body to another host, %s; use that host in the URL if it is right", to.Host)
		}
		at = to
	}
}

// send sends one request. The declared headers are sent only to the declared origin (own).
// Unless repeatable is set, the request is never sent a second time. It returns the error
// of the transport.
func (e *client) send(ctx context.Context, method string, to *url.URL, body []byte, header http.Header, own, repeatable bool) (*http.Response, error) {
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, to.String(), reader)
	if err != nil {
		return nil, err
	}
	if own {
		req.Header = header.Clone()
		if user := to.User; user != nil && req.Header.Get("Authorization") == "" {
			password, _ := user.Password()
			req.SetBasicAuth(user.Username(), password)
		}
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", e.agent)
	}
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "application/json, */*;q=0.8")
	}
	if !repeatable && isReplayable(req) {
		return e.single.RoundTrip(req)
	}
	return e.transport.RoundTrip(req)
}

// isReplayable reports whether net/http itself sends a request again if the server
// closes a reused connection, although the server may have executed the request; see
// http.Request.isReplayable.
func isReplayable(req *http.Request) bool {
	switch req.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return true
	}
	return req.Header.Get("Idempotency-Key") != "" || req.Header.Get("X-Idempotency-Key") != ""
}

// redirectTarget returns the method and URL of the request that a redirect demands; to is
// nil if the answer is no redirect. It returns PROTOCOL_ERROR or POLICY_DENIED for an
// address that must not be followed.
func redirectTarget(resp *http.Response, from *url.URL, method string) (next string, to *url.URL, err error) {
	next = method
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther:
		if method != http.MethodHead && method != http.MethodGet {
			next = http.MethodGet
		}
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return method, nil, nil
	}
	location := resp.Header.Get("Location")
	if location == "" {
		return method, nil, nil
	}
	if to, err = from.Parse(location); err != nil {
		return method, nil, toolerr.New(toolerr.ProtocolError, "it redirects to an invalid address")
	}
	to.Fragment = ""
	switch {
	case to.Scheme != "http" && to.Scheme != "https" || to.Host == "":
		return method, nil, toolerr.New(toolerr.PolicyDenied, "it redirects to an address that is not http or https")
	case from.Scheme == "https" && to.Scheme == "http":
		return method, nil, toolerr.New(toolerr.PolicyDenied, "it redirects from https to http, at %s", to.Host)
	}
	if to.User = nil; origin(to) == origin(from) {
		to.User = from.User
	}
	return next, to, nil
}

// readBody reads a decompressed body up to the limit. It returns TOO_LARGE for a longer
// one.
func readBody(from io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(from, executor.MaxResult+1))
	if err != nil {
		return nil, err
	}
	if len(body) > executor.MaxResult {
		return nil, toolerr.New(toolerr.TooLarge, "the answer is larger than %d MiB; request less", executor.MaxResult>>20)
	}
	return body, nil
}

// statusError is an answer with an error status; see retry.Retryable.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return e.text }

// StatusCode returns the HTTP status.
func (e *statusError) StatusCode() int { return e.status }

// requestError returns the error of a request without an answer. Its text has neither
// secrets of the URL nor headers.
func (e *client) requestError(ctx, timed context.Context, tool string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var refused *toolerr.Error
	var network net.Error
	switch {
	case errors.As(err, &refused):
		err = refused
	case timed.Err() != nil:
		err = toolerr.New(toolerr.Timeout, "no answer within %v", e.Timeout)
	case errors.As(err, &network) && network.Timeout():
		err = toolerr.New(toolerr.Timeout, "the connection timed out")
	default:
		err = toolerr.New(toolerr.TransportError, "%w", withoutURL(err))
	}
	return &call.ExecutionError{Tool: tool, Phase: call.PhaseExecute, Message: e.Method + " " + e.shownURL() + " failed", Cause: err}
}

// withoutURL returns the error without the URL that net/http adds.
func withoutURL(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// errorOfStatus returns the error for status 401, 403, 408, 429 or 5xx; nil for any
// other.
func (e *client) errorOfStatus(tool string, resp *http.Response, bodyText string) error {
	status := resp.StatusCode
	text := fmt.Sprintf("HTTP %d %s%s", status, http.StatusText(status), bodyText)
	cause := &statusError{status, text}
	var err error
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		err = toolerr.New(toolerr.AuthFailed, "%w", cause)
	case status == http.StatusTooManyRequests:
		limited := toolerr.New(toolerr.RateLimited, "%w", cause)
		if wait, ok := retry.ParseAfter(resp.Header.Get("Retry-After"), time.Now()); ok {
			limited = limited.With("retryAfterMs", wait.Milliseconds())
		}
		err = limited
	case status == http.StatusServiceUnavailable:
		busy := toolerr.New(toolerr.TransportError, "%w", cause)
		if wait, ok := retry.ParseAfter(resp.Header.Get("Retry-After"), time.Now()); ok {
			busy = busy.With("retryAfterMs", wait.Milliseconds())
		}
		err = busy
	case status >= 500 || status == http.StatusRequestTimeout:
		err = toolerr.New(toolerr.TransportError, "%w", cause)
	default:
		return nil
	}
	return &call.ExecutionError{Tool: tool, Phase: call.PhaseExecute, Message: e.Method + " " + e.shownURL() + " failed", Cause: err}
}
