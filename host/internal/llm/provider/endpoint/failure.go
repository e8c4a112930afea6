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

// passing marks an error that may pass.
type passing struct{ err error }

func (e *passing) Error() string { return e.err.Error() }
func (e *passing) Unwrap() error { return e.err }

// final is the error of an ask: with a code, and without marks.
func final(ctx context.Context, err error) error {
	if ended := provider.Ended(ctx); ended != nil {
		return ended
	}
	var said *toolerr.Error
	if errors.As(err, &said) {
		return said
	}
	return toolerr.New(toolerr.ModelError, "%w", err)
}

// broken is the error of a connection that failed. Its text has no address with a
// key in it, since no address has one.
func (c *Client) broken(ctx, heard context.Context, req *http.Request, err error) error {
	if ended := provider.Ended(ctx); ended != nil {
		return ended
	}
	where := c.cfg.Name + " (" + req.URL.Host + ")"
	if errors.Is(context.Cause(heard), errSilent) {
		return toolerr.New(toolerr.Timeout, "%s was silent for %v; models.providers.%s.timeout sets the limit", where, c.cfg.Silence, c.cfg.Name)
	}
	var of *url.Error
	if errors.As(err, &of) {
		err = of.Err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return &passing{toolerr.New(toolerr.TransportError, "%s ended the connection before the end of its answer", where)}
	}
	text := toolerr.New(toolerr.TransportError, "%s cannot be reached: %s", where, c.hide(req, err.Error()))
	if errors.As(err, new(*tls.CertificateVerificationError)) {
		return text
	}
	return &passing{text}
}

// Garbled is the error of an answer that is not what it should be.
func Garbled(err error) error {
	return toolerr.New(toolerr.ModelError, "its answer cannot be read: %w", err)
}

// A said is a vendor's error.
type said struct {
	status  int      // of HTTP, or what it says in its words; 0: none
	words   []string // its names for it
	message string
	wait    time.Duration // when to come again; 0: it does not say
}

// Fault is the error that a body, or an event, says; nil: it says none.
func Fault(body []byte) error {
	s, ok := read(body)
	if !ok {
		return nil
	}
	return s.err("")
}

// read reads the errors of all vendors, whose forms differ in little:
//
//	{"error":{"message","type","code","param"}}                 OpenAI
//	{"type":"error","error":{"type","message"}}                 Anthropic
//	{"error":{"code":429,"message","status","details":[…]}}     Gemini; a list of one, too
//	{"error":"text"}, {"detail":"text"}, {"message":"text"}     others
func read(body []byte) (said, bool) {
	v, err := tree.Parse(body)
	if err != nil {
		return said{}, false
	}
	if v.Is(tree.Array) && len(v.Items) == 1 {
		v = v.Items[0]
	}
	e := v.Get("error")
	switch {
	case e.Is(tree.String):
		return said{message: e.Text}, true
	case !e.Is(tree.Object):
		return said{}, false
	}
	var s said
	s.message = e.Get("message").Str()
	for _, name := range []string{"type", "code", "status"} {
		switch word := e.Get(name); {
		case word.Is(tree.String) && word.Text != "":
			s.words = append(s.words, word.Text)
		case word.Is(tree.Number) && word.Int() >= 400:
			s.status = word.Int()
		}
	}
	for _, d := range e.Get("details").All() {
		if reason := d.Get("reason").Str(); reason != "" {
			s.words = append(s.words, reason)
		}
		if wait, err := time.ParseDuration(d.Get("retryDelay").Str()); err == nil && wait > 0 {
			s.wait = wait
		}
	}
	return s, true
}

// settle finds the status that vendors' words mean, where none of HTTP says it, as
// in a stream, or where they say it better.
func (s *said) settle() {
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
		if !slices.ContainsFunc(s.words, func(w string) bool { return slices.Contains(m.words, w) }) {
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

// err converts the vendor's error. more follows the text.
func (s said) err(more string) error {
	s.settle()
	text := s.message
	if text == "" {
		text = http.StatusText(s.status)
	}
	if word := strings.Join(s.words, ", "); word != "" {
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
		return &passing{coded(toolerr.RateLimited)}
	case s.status == 408 || s.status == 409 || s.status == 502 || s.status == 504:
		return &passing{coded(toolerr.TransportError)}
	case s.status >= 500:
		return &passing{coded(toolerr.ModelError)}
	case s.status >= 400:
		return coded(toolerr.InvalidInput)
	}
	return coded(toolerr.ModelError)
}

// refusal is the error of an answer that is no success.
func (c *Client) refusal(req *http.Request, res *http.Response, from io.Reader) error {
	status := res.StatusCode
	if status >= 300 && status < 400 {
		to, err := res.Location()
		where := "nowhere"
		if err == nil {
			where = to.Host
		}
		return c.shown(req, toolerr.New(toolerr.TransportError, "it redirects to %s, which is not followed: set base_url to that address if it is right", where))
	}
	body, _ := io.ReadAll(io.LimitReader(from, maxError)) //nolint:errcheck // the status is what counts
	s, ok := read(body)
	if !ok {
		s = said{message: plainText(body, res.Header.Get("Content-Type"))}
	}
	if status < 300 {
		s.message = "it returned an empty answer"
		status = 500
	}
	s.status = status
	if wait, ok := waitOf(res.Header); ok {
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
	err := s.err(more)
	if res.Header.Get("X-Should-Retry") == "false" {
		err = retry.Permanent(err)
	}
	return c.shown(req, err)
}

// waitOf is when to come again, as a header says it.
func waitOf(h http.Header) (time.Duration, bool) {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms >= 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond)), true
	}
	return retry.ParseAfter(h.Get("Retry-After"), time.Now())
}

// plainText returns the text of a body that is not in an error format; "" for HTML.
func plainText(body []byte, kind string) string {
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

// maxSaid bounds the quoted error text in bytes.
const maxSaid = 500

// shown is an error with the provider before it, and without keys and what would
// disturb a terminal.
func (c *Client) shown(req *http.Request, err error) error {
	var e *toolerr.Error
	if !errors.As(err, &e) {
		return err
	}
	told := toolerr.New(e.Code(), "%s: %s", c.cfg.Name, c.hide(req, e.Error()))
	for key, value := range e.Extra() {
		told = told.With(key, value)
	}
	switch {
	case retry.IsPermanent(err):
		return retry.Permanent(told)
	case errors.As(err, new(*passing)):
		return &passing{told}
	}
	return told
}

// hide takes out of a text what of the request's header could be a credential, and
// what looks like one.
func (c *Client) hide(req *http.Request, text string) string {
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
	if runes := []rune(text); len(runes) > maxSaid {
		text = string(runes[:maxSaid]) + "…"
	}
	return text
}
