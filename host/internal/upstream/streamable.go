package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// streamable is the wire to a server over streamable HTTP, in both eras: each
// message is a POST of its own, whose answer is one message or a stream of
// events with the answer among them.
//
// In the legacy era there is a session, ended when the run is, and a stream
// of what the server says unasked (GET); a stream that breaks is resumed where
// the server numbers its events. In the modern era there is neither, and
// closing the stream is how a request is cancelled.
//
// Source: the MCP specification, "Transports: Streamable HTTP", versions
// 2025-11-25 and 2026-07-28.
type streamable struct {
	*remote

	// Guarded by remote.mu.
	session string // the legacy session's id; "": none
	version string // agreed on in the legacy era
	calls   map[string]*exchange
	open    chan struct{} // closed when calls need not wait for the legacy stream; nil: there is none
	slowest time.Duration // that a list of tools took
}

// exchange is one request under way.
type exchange struct {
	id     json.RawMessage
	method string
	sent   time.Time
	modern bool
	cancel context.CancelFunc
	conn   *conn
}

// answered reports whether nothing is waited for any more. A subscription
// waits for nothing in particular and lasts.
func (x *exchange) answered() bool {
	return x.method != methodListen && !x.conn.waits(x.id)
}

const (
	methodListen = "subscriptions/listen"
	methodTools  = "tools/list"
)

// cancelPeriod is how long the stream of a cancelled legacy request is kept.
const cancelPeriod = 5 * time.Second

// errOtherTransport says that the server takes no POST at its address, as one
// of the retired HTTP+SSE transport.
var errOtherTransport = errors.New("the server does not speak streamable HTTP")

// An overError ends a connection for the requests to come. Those under way have
// answers of their own: that a server does not know the session, cannot be
// reached or wants other credentials may be known from one of them, but whether
// it has taken another only from what becomes of that.
type overError struct{ error }

func (e *overError) Unwrap() error { return e.error }

// over ends the connection with an overError. Whichever request it is known from
// has been answered.
func (s *remote) over(why error) { s.conn.fail(&overError{why}) }

// errSessionOver says that the server does not know the session any more.
var errSessionOver = toolerr.New(toolerr.ServerOffline, "the server has ended the session")

func newStreamable(cfg Config) (*streamable, error) {
	r, err := newRemote(cfg)
	if err != nil {
		return nil, err
	}
	return &streamable{remote: r, calls: map[string]*exchange{}}, nil
}

// run ends what is under way and the session once c is dead and left.
func (s *streamable) run(c *conn) error {
	s.attach(c)
	<-c.dead
	<-c.left
	s.finish()
	if s.session != "" && !errors.Is(c.reason(), errSessionOver) {
		ctx, cancel := context.WithTimeout(context.Background(), goodbye)
		defer cancel()
		if req, err := s.request(ctx, http.MethodDelete, s.base, nil); err == nil {
			s.label(req, nil)
			if res, err := s.client.Do(req); err == nil {
				drain(res.Body)
			}
		}
	}
	s.client.CloseIdleConnections()
	return c.reason()
}

// send posts a message in the background, but for the one that ends the
// handshake: what follows it must not overtake it.
func (s *streamable) send(message []byte) error {
	<-s.begun
	m, err := jsonrpc.Split(message)
	if err != nil {
		return toolerr.New(toolerr.Internal, "the outgoing message is invalid: %w", err)
	}
	if m.Method == "notifications/cancelled" && s.cancelled(m.Params) {
		return nil
	}
	if err := s.begin(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(s.life)
	x := &exchange{id: m.ID, method: m.Method, sent: time.Now(), modern: isModern(m.Params), cancel: cancel, conn: s.conn}
	if m.Kind != jsonrpc.Request {
		x.id = nil
	}
	if m.Method == "notifications/initialized" {
		defer s.work.Done()
		defer cancel()
		deadline := time.AfterFunc(s.cfg.StartTimeout, cancel)
		defer deadline.Stop()
		begin := time.Now()
		s.post(ctx, x, m, message)
		s.listenFirst(time.Since(begin))
		return nil
	}
	s.under(x)
	go func() {
		defer s.work.Done()
		defer cancel()
		defer s.done(x)
		if x.id == nil { // nobody waits for it, who would end it
			late := time.AfterFunc(s.cfg.WriteTimeout, cancel)
			defer late.Stop()
		}
		s.untilOpen(ctx, m.Method)
		s.post(ctx, x, m, message)
		for x.method == methodListen && sleep(ctx, s.life, retryPause) == nil {
			s.post(ctx, x, m, message)
		}
	}()
	return nil
}

func (s *streamable) under(x *exchange) {
	if x.id != nil {
		s.mu.Lock()
		s.calls[string(x.id)] = x
		s.mu.Unlock()
	}
}

func (s *streamable) done(x *exchange) {
	if x.id != nil {
		s.mu.Lock()
		if x.method == methodTools {
			s.slowest = max(s.slowest, time.Since(x.sent))
		}
		delete(s.calls, string(x.id))
		s.mu.Unlock()
	}
}

// cancelled takes a cancellation on its way out. In the modern era closing
// the stream says it; in the legacy one the server is told, too, and the
// stream is not waited for much longer.
func (s *streamable) cancelled(params json.RawMessage) bool {
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return false
	}
	s.mu.Lock()
	x := s.calls[string(p.RequestID)]
	s.mu.Unlock()
	if x == nil {
		return true // it has been answered
	}
	if x.modern {
		x.cancel()
		return true
	}
	time.AfterFunc(cancelPeriod, x.cancel)
	return false
}

// post sends a message and takes what comes back for it.
func (s *streamable) post(ctx context.Context, x *exchange, m jsonrpc.Message, message []byte) {
	req, err := s.request(ctx, http.MethodPost, s.base, bytes.NewReader(bytes.TrimSuffix(message, []byte("\n"))))
	if err != nil {
		s.failed(x, err)
		return
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	s.label(req, x)
	if x.modern {
		s.mirror(req.Header, m)
	}
	res, err := s.do(req)
	switch {
	case err == nil:
		s.take(ctx, x, res)
	case ctx.Err() != nil: // nobody waits for it
	case unsent(err):
		err = s.unreachable(err)
		s.failed(x, notSent{err})
		s.over(err)
	case needsSignIn(err):
		err = s.unreachable(err)
		s.failed(x, err)
		s.over(err)
	default:
		s.failed(x, s.unreachable(err))
	}
}

// label sets the headers that say which version and session a request is of.
func (s *streamable) label(req *http.Request, x *exchange) {
	if x != nil && x.modern {
		req.Header.Set(mcp.HeaderProtocolVersion, modernVersion)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session != "" {
		req.Header.Set(mcp.HeaderSessionID, s.session)
	}
	if s.version != "" {
		req.Header.Set(mcp.HeaderProtocolVersion, s.version)
	}
}

// mirror sets the headers in which a modern request repeats what it is about.
func (s *streamable) mirror(h http.Header, m jsonrpc.Message) {
	h.Set(mcp.HeaderMethod, m.Method)
	name, ok := mcp.ExtractHeaderName(mcp.MCPMethod(m.Method), m.Params)
	if !ok {
		return
	}
	if value, ok := mcp.EncodeHeaderValue(name); ok {
		h.Set(mcp.HeaderName, value)
	}
	if m.Method != "tools/call" {
		return
	}
	if tool := s.conn.annotated(name); tool != nil {
		for name, value := range mcp.GenerateParamHeaders(tool, m.Params) {
			h.Set(name, value)
		}
	}
}

// take handles the response to a POST.
func (s *streamable) take(ctx context.Context, x *exchange, res *http.Response) {
	defer drain(res.Body)
	if x.method == "initialize" && res.StatusCode == http.StatusOK {
		s.mu.Lock()
		s.session = sessionID(res.Header.Get(mcp.HeaderSessionID))
		s.mu.Unlock()
	}
	switch media := mediaType(res); {
	case res.StatusCode >= 300:
		s.refused(x, res)
	case x.id == nil: // nothing is expected
	case media == "text/event-stream":
		s.stream(ctx, x, res)
	case media == "application/json":
		body, err := io.ReadAll(io.LimitReader(res.Body, int64(s.cfg.MaxLine)+1))
		switch {
		case len(body) > s.cfg.MaxLine:
			s.failed(x, tooLarge(s.cfg.MaxLine))
		case err != nil && ctx.Err() == nil:
			s.failed(x, toolerr.New(toolerr.ServerOffline, "the connection broke within the answer: %w", err))
		case err == nil:
			s.conn.take(body)
			s.unanswered(x, "the server's answer belongs to another request")
		}
	default:
		s.failed(x, toolerr.New(toolerr.ProtocolError, "%s answered with status %s and type %.60q, not with a message", s.where(), res.Status, media))
	}
}

func tooLarge(most int) error {
	return toolerr.New(toolerr.TooLarge, "the server sent a message of more than %d bytes, which was dropped; ask for less at once", most)
}

// refused handles a status that is none of success. A JSON-RPC error in the
// body says more than the status does.
func (s *streamable) refused(x *exchange, res *http.Response) {
	body, err := beginning(res.Body)
	text := body
	if err != nil { // a secret that was cut off would not be known as one
		text = body[:bytes.LastIndexByte(body, '\n')+1]
	}
	refusal := s.refusal(res, text)
	m, err := jsonrpc.Split(body)
	told := err == nil && m.Kind == jsonrpc.Response && m.Error != nil
	own := told && x.id != nil && string(m.ID) == string(x.id) // and so the answer to this request
	switch {
	case !x.opens() && (!own && s.sessionOver(res.StatusCode, told, body) || told && ofOtherVersion(m.Error)):
		s.failed(x, notSent{fmt.Errorf("%w: %w", errSessionOver, refusal)})
		s.over(errSessionOver)
	case res.StatusCode == http.StatusUnauthorized:
		s.failed(x, refusal)
		s.over(refusal)
	case x.id == nil: // a notification that is not wanted
	case told && res.StatusCode != http.StatusForbidden:
		s.failed(x, s.cfg.rpcError(m.Error))
	case x.method == "initialize" && (res.StatusCode == http.StatusNotFound || res.StatusCode == http.StatusMethodNotAllowed):
		s.failed(x, errors.Join(errOtherTransport, refusal))
	default:
		s.failed(x, refusal)
	}
}

// ofOtherVersion reports whether an error says that the server does not speak
// the version of a request any more.
func ofOtherVersion(object json.RawMessage) bool {
	var e struct{ Code int }
	return json.Unmarshal(object, &e) == nil && e.Code == mcp.UNSUPPORTED_PROTOCOL_VERSION
}

// opens reports whether a request is one of the handshake.
func (x *exchange) opens() bool { return x.method == "initialize" || x.method == "server/discover" }

// sessionOver reports whether a refusal means that the session is not known
// any more: 404 says so, and some servers say it with 400 and words, and so does
// one that wants a session where it wanted none before.
func (s *streamable) sessionOver(status int, told bool, body []byte) bool {
	s.mu.Lock()
	has := s.session != ""
	s.mu.Unlock()
	words := strings.ToLower(string(body))
	says := strings.Contains(words, "session") || strings.Contains(words, "not initialized") || strings.Contains(words, "unsupported protocol version")
	switch status {
	case http.StatusNotFound:
		return says || has && !told
	case http.StatusBadRequest:
		return says
	case http.StatusUnauthorized: // so an SDK for Rust
		return has && says
	}
	return false
}

// failed answers a request with an error.
func (s *streamable) failed(x *exchange, err error) {
	if x.id != nil {
		s.conn.deliver(x.id, answer{err: err})
	}
}

// unanswered fails a request that has not been answered although what was to
// answer it has ended.
func (s *streamable) unanswered(x *exchange, why string) {
	s.failed(x, toolerr.New(toolerr.ProtocolError, "%s", why)) // dropped if it has
}

// negotiated is told the version that the legacy handshake agreed on.
func (s *streamable) negotiated(version string) {
	s.mu.Lock()
	s.version = version
	s.mu.Unlock()
}

// sessionID returns an id that may be sent back, which is visible ASCII.
func sessionID(id string) string {
	if len(id) > 4<<10 {
		return ""
	}
	for _, r := range id {
		if r <= ' ' || r > '~' {
			return ""
		}
	}
	return id
}

// isModern reports whether a request's parameters say that it is of the
// modern version.
func isModern(params json.RawMessage) bool {
	members, err := jsonrpc.Members(params)
	if err != nil {
		return false
	}
	for _, m := range members {
		if m.Name != "_meta" {
			continue
		}
		meta, err := jsonrpc.Members(m.Value)
		if err != nil {
			return false
		}
		for _, m := range meta {
			if m.Name == eraPrefix+"protocolVersion" {
				return string(m.Value) == `"`+modernVersion+`"`
			}
		}
	}
	return false
}
