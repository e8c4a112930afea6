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
	Name    string      // of the provider, for messages
	BaseURL string      // what every address begins with, without a / at the end
	Header  http.Header // of every request
	Key     string      // "": none is sent
	KeyEnv  string      // the variable that the key is from, for messages; "": there is none

	// Authorize, unless nil, sets what of the header is made for each attempt.
	// again says that what it had set was refused.
	Authorize func(ctx context.Context, h http.Header, again bool) error

	Silence time.Duration // how long the other side may be silent; 0: 5 min
	Retry   retry.Policy  // zero: 3 attempts, from 500 ms, waiting for 30 s at most

	Transport http.RoundTripper // nil: connections of the client's own
}

// Default sets what requests have of a header where the configuration says nothing of
// it; "" is nothing.
func (c *Config) Default(name, value string) {
	if value == "" || c.Header.Get(name) != "" {
		return
	}
	c.Header = c.Header.Clone() // it may be that of others, too
	if c.Header == nil {
		c.Header = http.Header{}
	}
	c.Header.Set(name, value)
}

// UserAgent is the User-Agent of requests to models. A host refuses it, because it
// would be its own model.
const UserAgent = "toolroom-model"

// Bounds of received data.
const (
	maxEvent  = 16 << 20
	maxAnswer = 64 << 20
	maxError  = 64 << 10
	maxParts  = 4096
)

// How long what is behind an answer is waited for.
const (
	lateUsage = 5 * time.Second
	lateEnd   = 100 * time.Millisecond
)

// A Client is an endpoint. It is safe for concurrent use.
type Client struct {
	cfg  Config
	http *http.Client
}

// New makes a client. It connects to nothing.
func New(cfg Config) *Client {
	if cfg.Silence == 0 {
		cfg.Silence = 5 * time.Minute
	}
	if cfg.Retry.Base == 0 {
		cfg.Retry.Base = 500 * time.Millisecond
	}
	if cfg.Retry.MaxWait == 0 {
		cfg.Retry.MaxWait = 30 * time.Second
	}
	cfg.Retry.Retryable = func(err error) bool { return errors.As(err, new(*passing)) }
	if cfg.Transport == nil {
		cfg.Transport = httpguard.Transport(newTransport())
	}
	return &Client{cfg: cfg, http: &http.Client{Transport: cfg.Transport, CheckRedirect: within}}
}

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
		DisableCompression:     true, // pieces come as they are written, and none is more than what was read
	}
}

// maxRedirects bounds the redirects of a request.
const maxRedirects = 3

// within follows redirects that stay at the origin and ask the same there. Any other
// is the answer itself.
func within(req *http.Request, via []*http.Request) error {
	from := via[0]
	if req.URL.Scheme != from.URL.Scheme || req.URL.Host != from.URL.Host || req.Method != from.Method || len(via) > maxRedirects {
		return http.ErrUseLastResponse
	}
	return nil
}

// An Answer decodes the response of one attempt in a vendor's format.
type Answer interface {
	// Whole reads an answer that came as one.
	Whole(body []byte) error

	// Event reads an event of a stream.
	Event(name string, data []byte) error

	// State returns the progress of the stream.
	State() State

	// Response ends the answer and returns what was received; nil: nothing.
	Response() *llm.Response

	// Begun reports whether something of it was given to who asked.
	Begun() bool

	// Len returns the number of received parts.
	Len() int
}

// A State is the progress of a stream.
type State int

// The states.
const (
	Open     State = iota
	Complete       // the answer is whole; what follows, if anything, is of no weight
	Over           // nothing follows
)

// Post sends a request. begin creates the answer for each attempt. Its errors are
// those of provider.Model.
func (c *Client) Post(ctx context.Context, path string, body []byte, begin func() Answer) (*llm.Response, error) {
	var last Answer
	once := func(ctx context.Context) (struct{}, error) {
		last = begin()
		err := c.attempt(ctx, path, body, last, false)
		if c.cfg.Authorize != nil && toolerr.Is(err, toolerr.AuthFailed) && !last.Begun() {
			last = begin()
			err = c.attempt(ctx, path, body, last, true)
		}
		if last.Begun() {
			err = retry.Permanent(err)
		}
		return struct{}{}, err
	}
	if _, err := retry.Do(ctx, c.cfg.Retry, once); err != nil {
		if last == nil {
			return nil, final(ctx, err)
		}
		return last.Response(), final(ctx, err)
	}
	return last.Response(), nil
}

// errParts is why an answer is not taken in which nobody could find their way.
var errParts = fmt.Errorf("it has more than %d parts", maxParts)

// errEmpty is why an answer is not taken that is none.
var errEmpty = errors.New("its answer has neither content nor a finish reason")

// errSilent is why an attempt ends to which nothing came.
var errSilent = errors.New("silent")

// attempt asks once.
func (c *Client) attempt(ctx context.Context, path string, body []byte, into Answer, again bool) error {
	heard, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	req, err := c.request(heard, http.MethodPost, path, body, again)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream, application/json")
	watch := time.AfterFunc(c.cfg.Silence, func() { cancel(errSilent) })
	defer watch.Stop()
	res, err := c.http.Do(req)
	if err != nil {
		return c.broken(ctx, heard, req, err)
	}
	defer res.Body.Close() //nolint:errcheck // only read
	from := &lively{src: io.LimitReader(res.Body, maxAnswer+1), watch: watch, silence: c.cfg.Silence}
	if res.StatusCode != http.StatusOK {
		return c.refusal(req, res, from)
	}
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind == "text/event-stream" { //nolint:errcheck // then it is another
		err = c.stream(from, into)
	} else {
		err = c.whole(from, into)
	}
	if err == nil || into.State() != Open && !errors.Is(err, errParts) {
		if into.Response() != nil {
			return nil
		}
		err = Garbled(errEmpty)
	}
	if errors.As(err, new(*toolerr.Error)) {
		return c.shown(req, err)
	}
	return c.broken(ctx, heard, req, err)
}

// whole reads an answer that comes as one.
func (c *Client) whole(from *lively, into Answer) error {
	body, err := io.ReadAll(from)
	switch {
	case err != nil:
		return err
	case len(body) > maxAnswer:
		return c.tooLarge()
	}
	body = valid(body)
	if fault := Fault(body); fault != nil {
		return fault
	}
	if err := into.Whole(body); err != nil {
		return Garbled(err)
	}
	return nil
}

// valid replaces invalid UTF-8 by U+FFFD, as clients in other languages do: some
// servers split characters where the tokens of a model end.
func valid(text []byte) []byte {
	if utf8.Valid(text) {
		return text
	}
	return bytes.ToValidUTF8(text, []byte("\ufffd"))
}

func (c *Client) tooLarge() error {
	return toolerr.New(toolerr.ModelError, "its answer is larger than %d MiB", maxAnswer>>20)
}

// stream reads events until the answer ends. The answer may be complete even if there
// is an error.
func (c *Client) stream(from *lively, into Answer) error {
	events := eventstream.NewReader(from, maxEvent)
	for {
		e, err := events.Next()
		var long *jsonrpc.TooLongError
		switch {
		case errors.As(err, &long):
			return toolerr.New(toolerr.ModelError, "an event of its answer is larger than %d MiB", maxEvent>>20)
		case from.read > maxAnswer:
			return c.tooLarge()
		case errors.Is(err, io.EOF):
			return io.ErrUnexpectedEOF // unless it was complete
		case err != nil:
			return err
		}
		if err := into.Event(e.Name, valid(e.Data)); err != nil {
			return err
		}
		if into.Len() > maxParts {
			return Garbled(errParts)
		}
		switch into.State() {
		case Over:
			from.end(lateEnd)                 // so that the connection can be used again
			io.CopyN(io.Discard, from, 4<<10) //nolint:errcheck // it cannot, then
			return nil
		case Complete:
			if from.until.IsZero() { // whatever it says to keep the connection alive
				from.end(lateUsage)
			}
		}
	}
}

// lively is a body that is watched for silence while it is read.
type lively struct {
	src     io.Reader
	watch   *time.Timer
	silence time.Duration
	until   time.Time // when it is to end, silent or not; zero: whenever
	read    int
}

// end bounds how long it is read from now on.
func (l *lively) end(within time.Duration) { l.until = time.Now().Add(within) }

func (l *lively) Read(p []byte) (int, error) {
	silence := l.silence
	if !l.until.IsZero() {
		silence = min(silence, max(0, time.Until(l.until)))
	}
	l.watch.Reset(silence)
	n, err := l.src.Read(p)
	l.watch.Stop()
	l.read += n
	return n, err
}

// request makes one.
func (c *Client) request(ctx context.Context, method, path string, body []byte, again bool) (*http.Request, error) {
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
		if err := c.cfg.Authorize(ctx, req.Header, again); err != nil {
			return nil, err
		}
	}
	return req, nil
}

// Get requests a small resource once. It returns the body and the header, also
// together with an error.
func (c *Client) Get(ctx context.Context, path string) ([]byte, http.Header, error) {
	heard, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	req, err := c.request(heard, http.MethodGet, path, nil, false)
	if err != nil {
		return nil, nil, final(ctx, err)
	}
	watch := time.AfterFunc(c.cfg.Silence, func() { cancel(errSilent) })
	defer watch.Stop()
	res, err := c.http.Do(req)
	if err != nil {
		return nil, nil, final(ctx, c.broken(ctx, heard, req, err))
	}
	defer res.Body.Close() //nolint:errcheck // only read
	from := &lively{src: io.LimitReader(res.Body, maxEvent), watch: watch, silence: c.cfg.Silence}
	if res.StatusCode != http.StatusOK {
		return nil, res.Header, final(ctx, c.refusal(req, res, from))
	}
	body, err := io.ReadAll(from)
	if err != nil {
		return nil, res.Header, final(ctx, c.broken(ctx, heard, req, err))
	}
	return body, res.Header, nil
}
