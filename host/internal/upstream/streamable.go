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

// streamable is the wire to a server over streamable HTTP, in both eras. Each message is
// a separate POST, whose response is one message, or an event stream that contains the
// answer.
//
// The legacy era has a session, which ends with the run, and a stream of unsolicited
// messages (GET). A broken stream is resumed if the server numbers its events. The
// modern era has neither, and closing the stream cancels a request.
//
// Source: the MCP specification, "Transports: Streamable HTTP", versions
// 2025-11-25 and 2026-07-28.
type streamable struct {
	*remote

	// Guarded by remote.mu.
	session   string // id of the legacy session; "": none
	version   string // negotiated in the legacy era
	calls     map[string]*exchange
	listening chan struct{} // closed when calls need not wait for the legacy stream; nil: there is none
	slowest   time.Duration // longest time of a list of tools
}

// exchange is a request that was posted, and its response.
type exchange struct {
	id     json.RawMessage
	method string
	sent   time.Time
	modern bool
	cancel context.CancelFunc
	conn   *conn
}

// isAnswered reports whether nothing waits for an answer to the exchange. A subscription
// waits for no answer and stays open.
func (x *exchange) isAnswered() bool {
	return x.method != methodListen && !x.conn.isPending(x.id)
}

const (
	methodListen = "subscriptions/listen"
	methodTools  = "tools/list"
)

// cancelledStreamTimeout limits how long the stream of a cancelled legacy request stays open.
const cancelledStreamTimeout = 5 * time.Second

// errOtherTransport says that the server accepts no POST at its address, as a server
// with the retired HTTP+SSE transport.
var errOtherTransport = errors.New("the server does not speak streamable HTTP")

// A connectionEndError ends a connection for later requests. Running requests keep their own
// results: one request may show that the server does not know the session, cannot be
// reached or wants other credentials, but only another request's own answer shows
// whether that one succeeded.
type connectionEndError struct{ error }

// Unwrap returns the wrapped error.
func (e *connectionEndError) Unwrap() error { return e.error }

// endConnection ends the connection with a connectionEndError. The request that caused it
// is answered afterwards, so that no request which follows that answer uses the connection.
func (s *remote) endConnection(why error) { s.conn.fail(&connectionEndError{why}) }

// errSessionOver says that the server does not know the session any more.
var errSessionOver = toolerr.New(toolerr.ServerOffline, "the server has ended the session")

// newStreamable returns a connection over streamable HTTP, which is not opened yet. It
// returns an error for a malformed address.
func newStreamable(cfg Config) (*streamable, error) {
	r, err := newRemote(cfg)
	if err != nil {
		return nil, err
	}
	return &streamable{remote: r, calls: map[string]*exchange{}}, nil
}

// run waits until c is dead and nobody uses it, ends the running requests and the session,
// and returns the reason why c is dead.
func (s *streamable) run(c *conn) error {
	s.attach(c)
	<-c.dead
	<-c.unused
	s.cancelAndWait()
	if s.session != "" && !errors.Is(c.failure(), errSessionOver) {
		ctx, cancel := context.WithTimeout(context.Background(), sessionEndTimeout)
		defer cancel()
		if req, err := s.newRequest(ctx, http.MethodDelete, s.base, nil); err == nil {
			s.setHeaders(req, nil)
			if res, err := s.client.Do(req); err == nil {
				drain(res.Body)
			}
		}
	}
	s.client.CloseIdleConnections()
	return c.failure()
}

// send posts a message in the background, except the one that ends the handshake: no later
// message may overtake it, so send waits for it. It returns errNotSent after the end of the
// connection.
func (s *streamable) send(message []byte) error {
	<-s.attached
	m, err := jsonrpc.Split(message)
	if err != nil {
		return toolerr.New(toolerr.Internal, "the outgoing message is invalid: %w", err)
	}
	if m.Method == "notifications/cancelled" && s.handleCancellation(m.Params) {
		return nil
	}
	if err := s.beginWork(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(s.life)
	x := &exchange{id: m.ID, method: m.Method, sent: time.Now(), modern: isModernParams(m.Params), cancel: cancel, conn: s.conn}
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
		s.startListening(time.Since(begin))
		return nil
	}
	s.addExchange(x)
	go func() {
		defer s.work.Done()
		defer cancel()
		defer s.removeExchange(x)
		if x.id == nil { // nobody waits for it and would end it
			late := time.AfterFunc(s.cfg.WriteTimeout, cancel)
			defer late.Stop()
		}
		s.awaitListening(ctx, m.Method)
		s.post(ctx, x, m, message)
		for x.method == methodListen && sleep(ctx, s.life, retryPause) == nil {
			s.post(ctx, x, m, message)
		}
	}()
	return nil
}

// addExchange registers an exchange that waits for an answer; it ignores one without an id.
func (s *streamable) addExchange(x *exchange) {
	if x.id != nil {
		s.mu.Lock()
		s.calls[string(x.id)] = x
		s.mu.Unlock()
	}
}

// removeExchange removes an exchange that has ended. It records the time of a tools/list.
func (s *streamable) removeExchange(x *exchange) {
	if x.id != nil {
		s.mu.Lock()
		if x.method == methodTools {
			s.slowest = max(s.slowest, time.Since(x.sent))
		}
		delete(s.calls, string(x.id))
		s.mu.Unlock()
	}
}

// handleCancellation handles an outgoing cancellation, and returns true if it need not be
// sent. In the modern era closing the stream is the cancellation. In the legacy era the
// server gets the message too, and the stream is closed after cancelledStreamTimeout.
func (s *streamable) handleCancellation(params json.RawMessage) bool {
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
	time.AfterFunc(cancelledStreamTimeout, x.cancel)
	return false
}

// post sends a message and handles the response until it ends or ctx ends. If the request
// fails, the exchange gets the error.
func (s *streamable) post(ctx context.Context, x *exchange, m jsonrpc.Message, message []byte) {
	req, err := s.newRequest(ctx, http.MethodPost, s.base, bytes.NewReader(bytes.TrimSuffix(message, []byte("\n"))))
	if err != nil {
		s.failExchange(x, err)
		return
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	s.setHeaders(req, x)
	if x.modern {
		s.setMirrorHeaders(req.Header, m)
	}
	res, err := s.doRequest(req)
	switch {
	case err == nil:
		s.handleResponse(ctx, x, res)
	case ctx.Err() != nil: // nobody waits for it
	case isUnsent(err):
		err = s.offlineError(err)
		s.endConnection(err)
		s.failExchange(x, notSentError{err})
	case needsSignIn(err):
		err = s.offlineError(err)
		s.endConnection(err)
		s.failExchange(x, err)
	default:
		s.failExchange(x, s.offlineError(err))
	}
}

// setHeaders sets the headers with the version and session of a request.
func (s *streamable) setHeaders(req *http.Request, x *exchange) {
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

// setMirrorHeaders sets the headers that repeat the method, the name and marked arguments
// of a modern request.
func (s *streamable) setMirrorHeaders(h http.Header, m jsonrpc.Message) {
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
	if tool := s.conn.toolWithHeaders(name); tool != nil {
		for name, value := range mcp.GenerateParamHeaders(tool, m.Params) {
			h.Set(name, value)
		}
	}
}

// handleResponse handles the response to a POST: a message, a stream of events, or a
// refusal.
func (s *streamable) handleResponse(ctx context.Context, x *exchange, res *http.Response) {
	defer drain(res.Body)
	if x.method == "initialize" && res.StatusCode == http.StatusOK {
		s.mu.Lock()
		s.session = validSessionID(res.Header.Get(mcp.HeaderSessionID))
		s.mu.Unlock()
	}
	switch media := mediaType(res); {
	case res.StatusCode >= 300:
		s.handleRefusal(x, res)
	case x.id == nil: // nothing is expected
	case media == "text/event-stream":
		s.handleStream(ctx, x, res)
	case media == "application/json":
		body, err := io.ReadAll(io.LimitReader(res.Body, int64(s.cfg.MaxLine)+1))
		switch {
		case len(body) > s.cfg.MaxLine:
			s.failExchange(x, tooLarge(s.cfg.MaxLine))
		case err != nil && ctx.Err() == nil:
			s.failExchange(x, toolerr.New(toolerr.ServerOffline, "the connection broke within the answer: %w", err))
		case err == nil:
			s.conn.handleLine(body)
			s.failUnanswered(x, "the server's answer belongs to another request")
		}
	default:
		s.failExchange(x, toolerr.New(toolerr.ProtocolError, "%s answered with status %s and type %.60q, not with a message", s.redactedURL(), res.Status, media))
	}
}

// tooLarge returns the error for a message of more than most bytes.
func tooLarge(most int) error {
	return toolerr.New(toolerr.TooLarge, "the server sent a message of more than %d bytes, which was dropped; ask for less in one call", most)
}

// handleRefusal handles a status that is not a success. A JSON-RPC error in the body says
// more than the status.
func (s *streamable) handleRefusal(x *exchange, res *http.Response) {
	body, err := readBeginning(res.Body)
	text := body
	if err != nil { // a truncated secret would not be recognized
		text = body[:bytes.LastIndexByte(body, '\n')+1]
	}
	refusal := s.statusError(res, text)
	m, err := jsonrpc.Split(body)
	told := err == nil && m.Kind == jsonrpc.Response && m.Error != nil
	own := told && x.id != nil && string(m.ID) == string(x.id) // then it is the answer to this request
	switch {
	case !x.isHandshake() && (!own && s.isSessionOver(res.StatusCode, told, body) || told && isVersionError(m.Error)):
		s.endConnection(errSessionOver)
		s.failExchange(x, notSentError{fmt.Errorf("%w: %w", errSessionOver, refusal)})
	case res.StatusCode == http.StatusUnauthorized:
		s.endConnection(refusal)
		s.failExchange(x, refusal)
	case x.id == nil: // a notification that is not accepted
	case told && res.StatusCode != http.StatusForbidden:
		s.failExchange(x, s.cfg.rpcError(m.Error))
	case x.method == "initialize" && (res.StatusCode == http.StatusNotFound || res.StatusCode == http.StatusMethodNotAllowed):
		s.failExchange(x, errors.Join(errOtherTransport, refusal))
	default:
		s.failExchange(x, refusal)
	}
}

// isVersionError reports whether an error says that the server does not support the
// version of a request any more.
func isVersionError(object json.RawMessage) bool {
	var e struct{ Code int }
	return json.Unmarshal(object, &e) == nil && e.Code == mcp.UNSUPPORTED_PROTOCOL_VERSION
}

// isHandshake reports whether a request is part of the handshake.
func (x *exchange) isHandshake() bool {
	return x.method == "initialize" || x.method == "server/discover"
}

// isSessionOver reports whether a refusal means that the server does not know the
// session any more: status 404, from some servers status 400 with a text, and the
// refusal of a server that now requires a session.
func (s *streamable) isSessionOver(status int, told bool, body []byte) bool {
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
	case http.StatusUnauthorized: // as an SDK for Rust does
		return has && says
	}
	return false
}

// failExchange answers a request with an error.
func (s *streamable) failExchange(x *exchange, err error) {
	if x.id != nil {
		s.conn.deliver(x.id, answer{err: err})
	}
}

// failUnanswered fails an exchange whose response ended without an answer with
// PROTOCOL_ERROR; why is the text of the error.
func (s *streamable) failUnanswered(x *exchange, why string) {
	s.failExchange(x, toolerr.New(toolerr.ProtocolError, "%s", why)) // dropped if it is answered
}

// setVersion stores the version of the legacy handshake.
func (s *streamable) setVersion(version string) {
	s.mu.Lock()
	s.version = version
	s.mu.Unlock()
}

// validSessionID returns id if it may be sent back (visible ASCII only), else "".
func validSessionID(id string) string {
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

// isModernParams reports whether params belong to a modern request.
func isModernParams(params json.RawMessage) bool {
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
