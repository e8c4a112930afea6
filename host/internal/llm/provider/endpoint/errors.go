package endpoint

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
	"github.com/toolroom-mcp/toolroom/internal/redact"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/retry"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// temporaryError marks an error after which the request is sent again.
type temporaryError struct{ err error }

func (e *temporaryError) Error() string { return e.err.Error() }
func (e *temporaryError) Unwrap() error { return e.err }

// finalError returns the error of Post for an error of the last attempt: with a code
// and without marks.
func finalError(ctx context.Context, err error) error {
	if ended := provider.ContextError(ctx); ended != nil {
		return ended
	}
	var said *toolerr.Error
	if errors.As(err, &said) {
		return said
	}
	return toolerr.New(toolerr.ModelError, "%w", err)
}

// connectionError returns the error for a failed connection. Its text can contain the
// URL, which never contains a key.
func (c *Client) connectionError(ctx, heard context.Context, req *http.Request, err error) error {
	if ended := provider.ContextError(ctx); ended != nil {
		return ended
	}
	where := c.cfg.Name + " (" + req.URL.Host + ")"
	if errors.Is(context.Cause(heard), errSilent) {
		return toolerr.New(toolerr.Timeout, "%s was silent for %v; models.providers.%s.timeout sets the limit", where, c.cfg.MaxSilence, c.cfg.Name)
	}
	var of *url.Error
	if errors.As(err, &of) {
		err = of.Err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return &temporaryError{toolerr.New(toolerr.TransportError, "%s ended the connection before the end of its answer", where)}
	}
	text := toolerr.New(toolerr.TransportError, "%s cannot be reached: %s", where, c.redact(req, err.Error()))
	if errors.As(err, new(*tls.CertificateVerificationError)) {
		return text
	}
	return &temporaryError{text}
}

// Malformed returns the error for an answer that cannot be decoded.
func Malformed(err error) error {
	return toolerr.New(toolerr.ModelError, "its answer cannot be read: %w", err)
}

// A vendorError is an error in a vendor's format.
type vendorError struct {
	status  int      // HTTP status, or the equivalent of names; 0: unknown
	names   []string // the vendor's types and codes of the error
	message string
	wait    time.Duration // time until the next attempt; 0: not given
}

// ErrorIn returns the error that a body or an event contains; nil: none.
func ErrorIn(body []byte) error {
	s, ok := parseError(body)
	if !ok {
		return nil
	}
	return s.toError("")
}

// parseError reads the errors of all vendors, whose forms differ in little:
//
//	{"error":{"message","type","code","param"}}                 OpenAI
//	{"type":"error","error":{"type","message"}}                 Anthropic
//	{"error":{"code":429,"message","status","details":[…]}}     Gemini; a list of one, too
//	{"error":"text"}, {"detail":"text"}, {"message":"text"}     others
func parseError(body []byte) (vendorError, bool) {
	v, err := tree.Parse(body)
	if err != nil {
		return vendorError{}, false
	}
	if v.Is(tree.Array) && len(v.Items) == 1 {
		v = v.Items[0]
	}
	e := v.Get("error")
	switch {
	case e.Is(tree.String):
		return vendorError{message: e.Text}, true
	case !e.Is(tree.Object):
		return vendorError{}, false
	}
	var s vendorError
	s.message = e.Get("message").Str()
	for _, name := range []string{"type", "code", "status"} {
		switch word := e.Get(name); {
		case word.Is(tree.String) && word.Text != "":
			s.names = append(s.names, word.Text)
		case word.Is(tree.Number) && word.Int() >= 400:
			s.status = word.Int()
		}
	}
	for _, d := range e.Get("details").PeekItems() {
		if reason := d.Get("reason").Str(); reason != "" {
			s.names = append(s.names, reason)
		}
		if wait, err := time.ParseDuration(d.Get("retryDelay").Str()); err == nil && wait > 0 {
			s.wait = wait
		}
	}
	return s, true
}

// inferStatus sets the status from the vendor's names of the error, if there is no
// HTTP status (in a stream) or the names are more precise.
func (s *vendorError) inferStatus() {
	for _, m := range []struct {
		status int
		words  []string
	}{
		{401, []string{"authentication_error", "invalid_api_key", "UNAUTHENTICATED", "API_KEY_INVALID"}},
		{403, []string{"permission_error", "PERMISSION_DENIED"}},
		{402, []string{"billing_error", "insufficient_quota"}},
		{404, []string{"not_found_error", "model_not_found", "NOT_FOUND"}},
		{413, []string{"request_too_large", "context_length_exceeded", "string_above_max_length", "exceed_context_size_error"}},
		{429, []string{"rate_limit_error", "rate_limit_exceeded", "requests", "tokens", "RESOURCE_EXHAUSTED"}},
		{529, []string{"overloaded_error", "UNAVAILABLE"}},
		{408, []string{"timeout_error", "DEADLINE_EXCEEDED"}},
		{400, []string{"invalid_request_error", "INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE"}},
		{500, []string{"api_error", "server_error", "internal_error", "INTERNAL", "UNKNOWN"}},
	} {
		if !slices.ContainsFunc(s.names, func(w string) bool { return slices.Contains(m.words, w) }) {
			continue
		}
		if s.status == 0 || m.status == 402 || m.status == 413 || m.status == 401 && s.status == 400 {
			s.status = m.status
		}
		break
	}
	text := strings.ToLower(s.message)
	if s.status == 400 || s.status == 500 || s.status == 422 {
		for _, says := range []string{
			"maximum context length", "context length", "context window", "prompt is too long", "exceeds the maximum number of tokens",
			"context size", "too many tokens", "input is too long", "exceed context limit",
		} {
			if strings.Contains(text, says) {
				s.status = 413
			}
		}
	}
}

// toError returns the error with a code, and marked as temporary if the request may be
// repeated. more follows the text.
func (s vendorError) toError(more string) error {
	s.inferStatus()
	text := s.message
	if text == "" {
		text = http.StatusText(s.status)
	}
	if word := strings.Join(s.names, ", "); word != "" {
		text = word + ": " + text
	}
	if s.status != 0 {
		text = fmt.Sprintf("%d %s", s.status, text)
	}
	text += more
	coded := func(code toolerr.Code) *toolerr.Error {
		e := toolerr.New(code, "%s", text)
		if s.wait > 0 {
			e = e.With(retry.After, s.wait.Milliseconds())
		}
		return e
	}
	switch {
	case s.status == 401 || s.status == 403 || s.status == 402 || s.status == 407:
		return coded(toolerr.AuthFailed)
	case s.status == 413:
		return coded(toolerr.LimitReached)
	case s.status == 429 || s.status == 503 || s.status == 529:
		return &temporaryError{coded(toolerr.RateLimited)}
	case s.status == 408 || s.status == 409 || s.status == 502 || s.status == 504:
		return &temporaryError{coded(toolerr.TransportError)}
	case s.status >= 500:
		return &temporaryError{coded(toolerr.ModelError)}
	case s.status >= 400:
		return coded(toolerr.InvalidInput)
	}
	return coded(toolerr.ModelError)
}

// statusError returns the error for a response whose status is no success.
func (c *Client) statusError(req *http.Request, res *http.Response, from io.Reader) error {
	status := res.StatusCode
	if status >= 300 && status < 400 {
		to, err := res.Location()
		where := "nowhere"
		if err == nil {
			where = to.Host
		}
		return c.sanitize(req, toolerr.New(toolerr.TransportError, "it redirects to %s, which is not followed: set base_url to that address if it is right", where))
	}
	body, _ := io.ReadAll(io.LimitReader(from, maxError)) //nolint:errcheck // without the body, the status says enough
	s, ok := parseError(body)
	if !ok {
		s = vendorError{message: errorText(body, res.Header.Get("Content-Type"))}
	}
	if status < 300 {
		s.message = "it returned an empty answer"
		status = 500
	}
	s.status = status
	if wait, ok := retryAfter(res.Header); ok {
		s.wait = wait
	}
	more := ""
	switch {
	case (status == 401 || status == 403) && c.cfg.KeyEnv != "" && c.cfg.Key == "":
		more = "; the variable " + c.cfg.KeyEnv + " is not set"
	case (status == 401 || status == 403) && c.cfg.KeyEnv != "":
		more = "; the key is from the variable " + c.cfg.KeyEnv
	case status == 404:
		more = "; are the model's name and base_url right?"
	}
	err := s.toError(more)
	if res.Header.Get("X-Should-Retry") == "false" {
		err = retry.Permanent(err)
	}
	return c.sanitize(req, err)
}

// retryAfter returns the time that the header Retry-After or one of its variants gives. It
// returns false if none exists.
func retryAfter(h http.Header) (time.Duration, bool) {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms >= 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond)), true
	}
	return retry.ParseAfter(h.Get("Retry-After"), time.Now())
}

// errorText returns the text of a body that is not in a vendor's error format; "" for
// HTML.
func errorText(body []byte, kind string) string {
	if v, err := tree.Parse(body); err == nil {
		for _, name := range []string{"detail", "message", "error_description"} {
			if text := v.Get(name).Str(); text != "" {
				return text
			}
		}
	}
	if strings.Contains(kind, "html") {
		return ""
	}
	return string(body)
}

// maxQuoted bounds the vendor's text in an error, in characters.
const maxQuoted = 500

// sanitize returns an error with the same code and marks whose text begins with the
// provider's name and has no keys and no characters that disturb a terminal.
func (c *Client) sanitize(req *http.Request, err error) error {
	var e *toolerr.Error
	if !errors.As(err, &e) {
		return err
	}
	told := toolerr.New(e.Code(), "%s: %s", c.cfg.Name, c.redact(req, e.Error()))
	for key, value := range e.Extra() {
		told = told.With(key, value)
	}
	switch {
	case retry.IsPermanent(err):
		return retry.Permanent(told)
	case errors.As(err, new(*temporaryError)):
		return &temporaryError{told}
	}
	return told
}

// redact returns a text in which *** replaces all credentials of the request's header
// and text that looks like a credential, at most maxQuoted characters.
func (c *Client) redact(req *http.Request, text string) string {
	for name, values := range req.Header {
		if slices.Contains([]string{"Content-Type", "Accept", "User-Agent", "Anthropic-Version"}, name) {
			continue
		}
		for _, value := range values {
			for _, word := range append(strings.Fields(value), value) {
				if len(word) >= 6 && word != "Bearer" {
					text = strings.ReplaceAll(text, word, "***")
				}
			}
		}
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, " "))
	text = redact.Text(strings.TrimSpace(text))
	if runes := []rune(text); len(runes) > maxQuoted {
		text = string(runes[:maxQuoted]) + "…"
	}
	return text
}
