package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
)

// httpExchange is one POST with a request, and the ResponseWriter for mcp-go's answer.
// It keeps the form of that answer, and replaces its id and result by the bytes
// received from the client and the upstream.
type httpExchange struct {
	http.ResponseWriter
	header     http.Header     // of the request
	id         json.RawMessage // as received
	callParams json.RawMessage
	events     bool // the client accepts an event stream
	modern     bool
	remote     string // address of the client
	user       string // the signed-in user; "": none
	subject    string // see call.Caller
	token      string // access token of the user; "": none
	profile    string
	catalog    Catalog // of the profile; nil: all of it
	handler    *HTTPHandler

	mu          sync.Mutex
	result      json.RawMessage
	errorObject json.RawMessage
	status      int           // set by mcp-go, not sent yet
	sent        bool          // the header is sent
	stream      bool          // the response is an event stream
	ended       bool          // nothing more is sent
	acked       chan struct{} // closed when the subscription stream is acknowledged; nil after that, and for other requests
}

// caller returns the caller of the request without the client's capabilities. A signed-in
// user has one account for all addresses.
func (x *httpExchange) caller() call.Caller {
	c := call.Caller{EntryPoint: x.entryPoint(), ID: x.identity(), Profile: x.profile, Account: Account(x.remote), User: x.user}
	if x.user != "" {
		token := x.token
		c.Account, c.Subject, c.Token = "user "+x.user, x.subject, func() string { return token }
	}
	return c
}

// entryPoint implements exchange: http.
func (x *httpExchange) entryPoint() string { return "http" }

// identity returns an id of the session, or without a session of the connection. A
// client can set any other value itself.
func (x *httpExchange) identity() string {
	if id := x.header.Get(server.HeaderKeySessionID); id != "" && !x.modern {
		return sessionIdentity(id)
	}
	if x.user != "" { // a proxy has one connection for several users
		return "http " + x.remote + " " + x.user
	}
	return "http " + x.remote
}

// sessionIdentity returns the identity of a client with an MCP session, as in
// call.Caller.
func sessionIdentity(session string) string { return "http session " + session }

// Account returns the name under which the calls of all clients at an address are counted
// together: the IP address, and for IPv6 its /64 network, all of whose addresses one
// machine can have. Clients at one address share a token, and can open any number of
// connections and sessions.
func Account(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return "http " + remote
	}
	addr := at.Addr().Unmap().WithZone("")
	if addr.IsLoopback() {
		return "http loopback"
	}
	if addr.Is6() {
		if network, err := addr.Prefix(64); err == nil {
			return "http " + network.String()
		}
	}
	return "http " + addr.String()
}

// principal returns the owner of a request state at this profile: the signed-in user, or
// one name for everyone with the host's token.
func (x *httpExchange) principal() string {
	if x.user != "" {
		return "http/" + x.profile + "/" + x.user
	}
	return "http/" + x.profile
}

// ask sends a request to the client on the stream of the response, and waits until it
// answers in a separate POST or ctx ends. The error is an *call.MCPError if the client
// answers with one. It fails at once if the client accepts no event stream.
func (x *httpExchange) ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if !x.events {
		return nil, errors.New("the client accepts no event stream, so it cannot be asked")
	}
	id, answer, forget := x.handler.questions.open(x.identity())
	defer forget()
	x.mu.Lock()
	if !x.sent {
		x.startEventStream()
	}
	err := errors.New("the response has already started or ended")
	if x.stream {
		err = x.writeEvent(jsonrpc.AppendRequest(nil, jsonrpc.AppendString(nil, id), method, params))
	}
	x.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case m := <-answer:
		if m.Error != nil {
			return nil, clientError(m.Error)
		}
		return m.Result, nil
	case <-ctx.Done():
		x.notify(string(mcp.MethodNotificationCancelled), wire.CancelledParams(jsonrpc.AppendString(nil, id)))
		return nil, ctx.Err()
	}
}

// endWithServer returns a context that ends with the HTTP handler. The context of the
// request must outlive it: once that has ended, mcp-go writes no answer.
func (x *httpExchange) endWithServer(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(x.handler.life, func() { cancel(context.Cause(x.handler.life)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// params implements exchange.
func (x *httpExchange) params() json.RawMessage { return x.callParams }

// answer implements exchange.
func (x *httpExchange) answer(result json.RawMessage) {
	x.mu.Lock()
	x.result = result
	x.mu.Unlock()
}

// fail implements exchange.
func (x *httpExchange) fail(object json.RawMessage) {
	x.mu.Lock()
	x.errorObject = object
	x.mu.Unlock()
}

// notify sends a notification as an event, which turns the response into an event
// stream.
func (x *httpExchange) notify(method string, params json.RawMessage) {
	if !x.events {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.sent {
		x.startEventStream()
	}
	if x.stream {
		// A disconnected client ends the context of the request.
		x.writeEvent(jsonrpc.AppendNotification(nil, method, params)) //nolint:errcheck
	}
}

// acknowledged implements exchange.
func (x *httpExchange) acknowledged() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.acked = make(chan struct{})
	return x.acked
}

// startEventStream turns the response into an event stream. The caller holds x.mu.
func (x *httpExchange) startEventStream() {
	h := x.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	x.ResponseWriter.WriteHeader(http.StatusOK)
	x.sent, x.stream = true, true
}

// writeEvent writes one message to the stream. The caller holds x.mu.
func (x *httpExchange) writeEvent(message []byte) error {
	buf := append(make([]byte, 0, len(message)+24), "event: message\ndata: "...)
	buf = append(append(buf, withoutLineBreaks(message)...), "\n\n"...)
	return writeWithin(x.ResponseWriter, x.handler.unreadTimeout, buf, true)
}

// writeTimeout limits the time until a client reads a message.
const writeTimeout = 30 * time.Second

// write writes a part of the answer within the time limit for a client that does not read.
// It returns an error if that is over.
func (x *httpExchange) write(p []byte) error {
	return writeWithin(x.ResponseWriter, x.handler.unreadTimeout, p, false)
}

// writeWithin writes p, and returns an error if the client does not take it within the
// duration d. With flush it also flushes all that was written before.
func writeWithin(w http.ResponseWriter, d time.Duration, p []byte, flush bool) error {
	c := http.NewResponseController(w)
	if err := c.SetWriteDeadline(time.Now().Add(d)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	_, err := w.Write(p)
	if err == nil && flush {
		err = c.Flush()
	}
	if err != nil {
		return err
	}
	if err := c.SetWriteDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// WriteHeader stores the status, which sendStatus sends when the body is known. With the
// content type of an event stream it begins the stream at once.
func (x *httpExchange) WriteHeader(status int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.status = status
	if !x.sent && strings.HasPrefix(x.Header().Get("Content-Type"), "text/event-stream") {
		x.startEventStream()
	}
}

// Write takes mcp-go's answer (a JSON message, an event with a message, or text), replaces
// id and result by the received bytes, and sends it.
func (x *httpExchange) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return 0, errConnectionGone
	}
	message := bytes.TrimSpace(p)
	if x.stream {
		var ok bool
		if message, ok = eventData(p); !ok && !json.Valid(message) {
			return len(p), x.write(p)
		}
	}
	message, code := x.spliceReceived(message)
	if x.stream {
		err := x.writeEvent(message)
		if x.acked != nil && bytes.Contains(message, []byte(`"notifications/subscriptions/acknowledged"`)) {
			close(x.acked)
			x.acked = nil
		}
		return len(p), err
	}
	if !x.sent {
		x.sendStatus(code)
	}
	return len(p), x.write(message)
}

// sendStatus sends the status. For a modern client it depends on the code of the error
// that was put into the message. The caller holds x.mu.
func (x *httpExchange) sendStatus(code int) {
	status := x.status
	if status == 0 {
		status = http.StatusOK
	}
	if x.modern && status == http.StatusOK {
		switch code {
		case jsonrpc.CodeMethodNotFound:
			status = http.StatusNotFound
		case jsonrpc.CodeInvalidParams, jsonrpc.CodeInvalidRequest, codeHeaderMismatch, mcp.MISSING_REQUIRED_CLIENT_CAPABILITY:
			status = http.StatusBadRequest
		}
	}
	x.ResponseWriter.WriteHeader(status)
	x.sent = true
}

// codeHeaderMismatch is the JSON-RPC code for a header that contradicts the body.
const codeHeaderMismatch = -32020

// spliceReceived returns the message with the id and the result as received, and the
// code of the error in it, or 0. It returns other messages than responses unchanged.
// It does not compare the id: mcp-go decodes numbers as float64, which changes large
// ones.
func (x *httpExchange) spliceReceived(message []byte) ([]byte, int) {
	members, err := jsonrpc.Members(message)
	if err != nil || x.id == nil {
		return message, 0
	}
	var result, fault json.RawMessage
	for _, m := range members {
		switch m.Name {
		case "result":
			result = m.Value
		case "error":
			fault = wire.PlainError(m.Value)
		}
	}
	switch {
	case result == nil && fault == nil:
		return message, 0
	case x.errorObject != nil:
		fault = x.errorObject
	case fault == nil && x.result != nil:
		result = x.result
	}
	if fault != nil {
		var e struct{ Code int }
		if json.Unmarshal(fault, &e) != nil {
			e.Code = jsonrpc.CodeInternal
		}
		return jsonrpc.AppendErrorObject(nil, x.id, fault), e.Code
	}
	return jsonrpc.AppendResult(make([]byte, 0, len(result)+len(x.id)+48), x.id, result), 0
}

// eventData returns the message in an event written by mcp-go; p and false if p is no such
// event.
func eventData(p []byte) ([]byte, bool) {
	rest, ok := bytes.CutPrefix(p, []byte("event: message\ndata: "))
	if !ok {
		return p, false
	}
	return bytes.TrimSpace(rest), true
}

// Flush sends everything that has been written.
func (x *httpExchange) Flush() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.sent && !x.ended {
		writeWithin(x.ResponseWriter, x.handler.unreadTimeout, nil, true) //nolint:errcheck // the next write reports the error
	}
}

// finish sends the header of a response without a body, and makes later writes fail, since
// the server reuses the ResponseWriter's buffers for other responses.
func (x *httpExchange) finish() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.sent && x.status != 0 {
		x.ResponseWriter.WriteHeader(x.status)
	}
	x.sent, x.stream, x.ended = true, false, true
}

// Unwrap returns the underlying writer, for http.ResponseController.
func (x *httpExchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// withoutLineBreaks returns JSON without line breaks, which would end an event.
func withoutLineBreaks(raw []byte) []byte {
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return raw
	}
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil {
		return bytes.ReplaceAll(bytes.ReplaceAll(raw, []byte("\n"), nil), []byte("\r"), nil)
	}
	return out.Bytes()
}
