// Package endpoint sends requests to a vendor's model over HTTP, for the packages
// openai, anthropic and gemini.
//
// A request is one POST. It is repeated after a pause if the failure may be temporary
// (the network, 408, 409, 429 with Retry-After, 5xx, an error at the beginning of a
// stream), as long as the caller has received no part of an answer. A stream that
// breaks off returns TRANSPORT_ERROR together with the partial answer.
//
// Everything is bounded: the sizes of events, answers and errors, the time without
// data, the number of attempts and their pauses. When the context ends, the connection
// ends. Redirects are followed only within the origin, so that key and conversation go
// nowhere else. Proxies come from the environment. No error text contains a key.
package endpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/host/internal/eventstream"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/internal/httpguard"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/retry"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Config is the address of an endpoint and its authentication.
type Config struct {
	Name    string      // name of the provider, for messages
	BaseURL string      // prefix of every URL, without a / at the end
	Header  http.Header // sent with every request
	Key     string      // "": no key is sent
	KeyEnv  string      // environment variable that contained the key, for messages; "": none

	// Authorize, unless nil, sets credentials in the header of each attempt. refused
	// means that the server refused the credentials of the attempt before.
	Authorize func(ctx context.Context, h http.Header, refused bool) error

	MaxSilence time.Duration // longest time without data from the server; 0: 5 min
	Retry      retry.Policy  // zero: 3 attempts, pauses from 500 ms to 30 s

	Transport http.RoundTripper // nil: a transport for this client only
}

// SetDefaultHeader sets a header of all requests unless the configuration sets it. An
// empty value sets nothing.
func (c *Config) SetDefaultHeader(name, value string) {
	if value == "" || c.Header.Get(name) != "" {
		return
	}
	c.Header = c.Header.Clone() // other configurations can share the map
	if c.Header == nil {
		c.Header = http.Header{}
	}
	c.Header.Set(name, value)
}

// UserAgent is the User-Agent of requests to models. A toolroom host refuses such
// requests, because it would otherwise request answers from itself.
const UserAgent = "toolroom-model"

// Limits of received data.
const (
	maxEvent  = 16 << 20 // bytes of one event of a stream
	maxAnswer = 64 << 20 // bytes of one answer
	maxError  = 64 << 10 // bytes of the body of an error
	maxParts  = 4096     // parts of one answer
)

// Longest times to wait for data after a complete answer.
const (
	lateUsageTimeout = 5 * time.Second        // for the usage after the finish reason
	lateEndTimeout   = 100 * time.Millisecond // for the end of the stream
)

// A Client sends requests to an endpoint. It is safe for concurrent use.
type Client struct {
	cfg  Config
	http *http.Client
}

// New returns a client. It opens no connection.
func New(cfg Config) *Client {
	if cfg.MaxSilence == 0 {
		cfg.MaxSilence = 5 * time.Minute
	}
	if cfg.Retry.Base == 0 {
		cfg.Retry.Base = 500 * time.Millisecond
	}
	if cfg.Retry.MaxWait == 0 {
		cfg.Retry.MaxWait = 30 * time.Second
	}
	cfg.Retry.Retryable = func(err error) bool { return errors.As(err, new(*temporaryError)) }
	if cfg.Transport == nil {
		cfg.Transport = httpguard.RefuseUpgrades(newTransport())
	}
	return &Client{cfg: cfg, http: &http.Client{Transport: cfg.Transport, CheckRedirect: checkRedirect}}
}

// newTransport returns an HTTP transport with time limits for the connection, and none
// for the answer.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    8,
		MaxIdleConns:           16,
		IdleConnTimeout:        60 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: 256 << 10,
		DisableCompression:     true, // compression would delay pieces, and hide the size of what is read
	}
}

// maxRedirects bounds the redirects of a request.
const maxRedirects = 3

// checkRedirect is the CheckRedirect function of the client. It follows redirects that stay
// within the origin and keep the method; for others it returns http.ErrUseLastResponse, so
// that the redirect is the answer.
func checkRedirect(req *http.Request, via []*http.Request) error {
	from := via[0]
	if req.URL.Scheme != from.URL.Scheme || req.URL.Host != from.URL.Host || req.Method != from.Method || len(via) > maxRedirects {
		return http.ErrUseLastResponse
	}
	return nil
}

// An Answer decodes the response to one attempt, which has the vendor's format.
type Answer interface {
	// DecodeBody decodes an answer that is not a stream.
	DecodeBody(body []byte) error

	// DecodeEvent decodes an event of a stream.
	DecodeEvent(name string, data []byte) error

	// State returns the progress of the stream.
	State() State

	// Response finishes the answer and returns the received part; nil: nothing was
	// received.
	Response() *llm.Response

	// HasBegun reports whether the caller of Ask has received a part of the answer; then
	// the request is not repeated.
	HasBegun() bool

	// PartCount returns the number of received parts.
	PartCount() int
}

// A State is the progress of a stream.
type State int

// The states.
const (
	Open     State = iota
	Complete       // the answer is complete; later events do not matter
	Over           // no events follow
)

// Post sends a request to BaseURL + path, with retries, and returns the answer. begin
// creates the decoder for each attempt. It returns the same errors as
// provider.Model.Ask; together with an error, the response is the partial answer or
// nil.
func (c *Client) Post(ctx context.Context, path string, body []byte, begin func() Answer) (*llm.Response, error) {
	var last Answer
	once := func(ctx context.Context) (struct{}, error) {
		last = begin()
		err := c.attempt(ctx, path, body, last, false)
		if c.cfg.Authorize != nil && toolerr.Is(err, toolerr.AuthFailed) && !last.HasBegun() {
			last = begin()
			err = c.attempt(ctx, path, body, last, true)
		}
		if last.HasBegun() {
			err = retry.Permanent(err)
		}
		return struct{}{}, err
	}
	if _, err := retry.Do(ctx, c.cfg.Retry, once); err != nil {
		if last == nil {
			return nil, finalError(ctx, err)
		}
		return last.Response(), finalError(ctx, err)
	}
	return last.Response(), nil
}

// errTooManyParts is the error for an answer with more than maxParts parts.
var errTooManyParts = fmt.Errorf("it has more than %d parts", maxParts)

// errEmpty is the error for an empty answer.
var errEmpty = errors.New("its answer has neither content nor a finish reason")

// errSilent is the cause for ending an attempt that received no data for too long.
var errSilent = errors.New("silent")

// attempt sends a request once and decodes the response into an answer. refused means
// that the server refused the credentials of the attempt before.
func (c *Client) attempt(ctx context.Context, path string, body []byte, into Answer, refused bool) error {
	heard, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	req, err := c.newRequest(heard, http.MethodPost, path, body, refused)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream, application/json")
	watch := time.AfterFunc(c.cfg.MaxSilence, func() { cancel(errSilent) })
	defer watch.Stop()
	res, err := c.http.Do(req)
	if err != nil {
		return c.connectionError(ctx, heard, req, err)
	}
	defer res.Body.Close() //nolint:errcheck // only read
	from := &watchedBody{src: io.LimitReader(res.Body, maxAnswer+1), watch: watch, silence: c.cfg.MaxSilence}
	if res.StatusCode != http.StatusOK {
		return c.statusError(req, res, from)
	}
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind == "text/event-stream" { //nolint:errcheck // then it is another
		err = c.readStream(from, into)
	} else {
		err = c.readWhole(from, into)
	}
	if err == nil || into.State() != Open && !errors.Is(err, errTooManyParts) {
		if into.Response() != nil {
			return nil
		}
		err = Malformed(errEmpty)
	}
	if errors.As(err, new(*toolerr.Error)) {
		return c.sanitize(req, err)
	}
	return c.connectionError(ctx, heard, req, err)
}

// readWhole reads an answer that is not a stream, and decodes it into the answer. It
// returns the error that the answer reports, and errors for one that is too large or
// malformed.
func (c *Client) readWhole(from *watchedBody, into Answer) error {
	body, err := io.ReadAll(from)
	switch {
	case err != nil:
		return err
	case len(body) > maxAnswer:
		return c.tooLargeError()
	}
	body = toValidUTF8(body)
	if fault := ErrorIn(body); fault != nil {
		return fault
	}
	if err := into.DecodeBody(body); err != nil {
		return Malformed(err)
	}
	return nil
}

// toValidUTF8 replaces invalid UTF-8 by U+FFFD, as clients in other languages do: some
// servers split characters between tokens.
func toValidUTF8(text []byte) []byte {
	if utf8.Valid(text) {
		return text
	}
	return bytes.ToValidUTF8(text, []byte("\ufffd"))
}

// tooLargeError returns the error for an answer of more than maxAnswer bytes.
func (c *Client) tooLargeError() error {
	return toolerr.New(toolerr.ModelError, "its answer is larger than %d MiB", maxAnswer>>20)
}

// readStream reads events until the answer ends. The answer can be complete even if it
// returns an error.
func (c *Client) readStream(from *watchedBody, into Answer) error {
	events := eventstream.NewReader(from, maxEvent)
	for {
		e, err := events.Next()
		var long *jsonrpc.TooLongError
		switch {
		case errors.As(err, &long):
			return toolerr.New(toolerr.ModelError, "an event of its answer is larger than %d MiB", maxEvent>>20)
		case from.read > maxAnswer:
			return c.tooLargeError()
		case errors.Is(err, io.EOF):
			return io.ErrUnexpectedEOF // the caller ignores it if the answer is complete
		case err != nil:
			return err
		}
		if err := into.DecodeEvent(e.Name, toValidUTF8(e.Data)); err != nil {
			return err
		}
		if into.PartCount() > maxParts {
			return Malformed(errTooManyParts)
		}
		switch into.State() {
		case Over:
			from.endWithin(lateEndTimeout)    // read to the end, so that the connection can be reused
			io.CopyN(io.Discard, from, 4<<10) //nolint:errcheck // it cannot, then
			return nil
		case Complete:
			if from.deadline.IsZero() { // keep-alive events do not extend the time
				from.endWithin(lateUsageTimeout)
			}
		}
	}
}

// A watchedBody is a body whose reader cancels the request if no data arrives for too
// long.
type watchedBody struct {
	src      io.Reader
	watch    *time.Timer
	silence  time.Duration
	deadline time.Time // when reading ends in any case; zero: no limit
	read     int       // bytes read so far
}

// endWithin limits the time for reading the rest.
func (l *watchedBody) endWithin(within time.Duration) { l.deadline = time.Now().Add(within) }

// Read reads within the time limit for silence and the deadline of the answer. When that is
// over, the read fails.
func (l *watchedBody) Read(p []byte) (int, error) {
	silence := l.silence
	if !l.deadline.IsZero() {
		silence = min(silence, max(0, time.Until(l.deadline)))
	}
	l.watch.Reset(silence)
	n, err := l.src.Read(p)
	l.watch.Stop()
	l.read += n
	return n, err
}

// newRequest returns an HTTP request with all headers. refused means that the server
// refused the credentials of the attempt before.
func (c *Client) newRequest(ctx context.Context, method, path string, body []byte, refused bool) (*http.Request, error) {
	var from io.Reader
	if body != nil {
		from = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.cfg.BaseURL+path, from)
	if err != nil {
		return nil, toolerr.New(toolerr.InvalidInput, "%s: invalid address", c.cfg.Name)
	}
	for name, values := range c.cfg.Header {
		req.Header[name] = values
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", UserAgent)
	}
	if c.cfg.Authorize != nil {
		if err := c.cfg.Authorize(ctx, req.Header, refused); err != nil {
			return nil, err
		}
	}
	return req, nil
}

// Get requests a small resource at BaseURL + path once. It returns the body and the
// header, the latter also together with an error if there was a response.
func (c *Client) Get(ctx context.Context, path string) ([]byte, http.Header, error) {
	heard, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	req, err := c.newRequest(heard, http.MethodGet, path, nil, false)
	if err != nil {
		return nil, nil, finalError(ctx, err)
	}
	watch := time.AfterFunc(c.cfg.MaxSilence, func() { cancel(errSilent) })
	defer watch.Stop()
	res, err := c.http.Do(req)
	if err != nil {
		return nil, nil, finalError(ctx, c.connectionError(ctx, heard, req, err))
	}
	defer res.Body.Close() //nolint:errcheck // only read
	from := &watchedBody{src: io.LimitReader(res.Body, maxEvent), watch: watch, silence: c.cfg.MaxSilence}
	if res.StatusCode != http.StatusOK {
		return nil, res.Header, finalError(ctx, c.statusError(req, res, from))
	}
	body, err := io.ReadAll(from)
	if err != nil {
		return nil, res.Header, finalError(ctx, c.connectionError(ctx, heard, req, err))
	}
	return body, res.Header, nil
}
