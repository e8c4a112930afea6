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
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
)

// httpExchange is one POST with a request in it, and the ResponseWriter that
// mcp-go writes to: of what mcp-go writes it lets the form pass and replaces
// the content, the id and the result, by the bytes that were received.
type httpExchange struct {
	http.ResponseWriter
	header     http.Header     // of the request
	id         json.RawMessage // as received
	callParams json.RawMessage
	events     bool // the client takes an event stream
	modern     bool
	remote     string // address of the client
	user       string // who signed in; "": nobody
	profile    string
	catalog    Catalog // of the profile; nil: the whole
	handler    *HTTPHandler

	mu     sync.Mutex
	result json.RawMessage
	fault  json.RawMessage
	status int           // as mcp-go set it, not sent yet
	sent   bool          // the header is out
	stream bool          // as an event stream
	over   bool          // nothing more is sent
	acked  chan struct{} // of a listen stream; nil: it is none, or has been acknowledged
}

func (x *httpExchange) door() string { return "http" }

// identity is the session's, and where there is none the connection's: what
// else a client says about itself anybody can say.
func (x *httpExchange) identity() string {
	if id := x.header.Get(server.HeaderKeySessionID); id != "" && !x.modern {
		return sessionIdentity(id)
	}
	if x.user != "" { // a proxy has one connection for several users
		return "http " + x.remote + " " + x.user
	}
	return "http " + x.remote
}

func sessionIdentity(session string) string { return "http session " + session }

// Account is whom the calls of a client at an address are counted for: all
// who come from there, since who comes has the one token, and can open any
// number of connections and sessions. Of IPv6 it is the network, of which one
// machine has all addresses.
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

// principal is who a state is sealed for: the user, or all who have the token,
// at this profile.
func (x *httpExchange) principal() string {
	if x.user != "" {
		return "http/" + x.profile + "/" + x.user
	}
	return "http/" + x.profile
}

// ask sends a request on the stream of the response. The client's answer
// comes as a message of its own.
func (x *httpExchange) ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if !x.events {
		return nil, errors.New("the client accepts no event stream, so it cannot be asked")
	}
	id, answer, forget := x.handler.questions.open(x.identity())
	defer forget()
	x.mu.Lock()
	if !x.sent {
		x.begin()
	}
	err := errors.New("the response has already started or ended")
	if x.stream {
		err = x.event(jsonrpc.AppendRequest(nil, jsonrpc.AppendString(nil, id), method, params))
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

// bound ends a call with the door. The request's own context must outlive it:
// once that has ended, mcp-go writes no answer.
func (x *httpExchange) bound(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(x.handler.life, func() { cancel(context.Cause(x.handler.life)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

func (x *httpExchange) params() json.RawMessage { return x.callParams }

func (x *httpExchange) answer(result json.RawMessage) {
	x.mu.Lock()
	x.result = result
	x.mu.Unlock()
}

func (x *httpExchange) fail(object json.RawMessage) {
	x.mu.Lock()
	x.fault = object
	x.mu.Unlock()
}

// notify sends a notification as an event, which makes the response a stream.
func (x *httpExchange) notify(method string, params json.RawMessage) {
	if !x.events {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.sent {
		x.begin()
	}
	if x.stream {
		// A client that is gone shows as the end of the request's context.
		x.event(jsonrpc.AppendNotification(nil, method, params)) //nolint:errcheck
	}
}

func (x *httpExchange) acknowledged() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.acked = make(chan struct{})
	return x.acked
}

// begin makes the response an event stream. x.mu is held.
func (x *httpExchange) begin() {
	h := x.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	x.ResponseWriter.WriteHeader(http.StatusOK)
	x.sent, x.stream = true, true
}

// event writes one message to the stream. x.mu is held.
func (x *httpExchange) event(message []byte) error {
	buf := append(make([]byte, 0, len(message)+24), "event: message\ndata: "...)
	buf = append(append(buf, oneLine(message)...), "\n\n"...)
	return writeWithin(x.ResponseWriter, x.handler.unread, buf, true)
}

// writeTimeout is how long a client may leave a message unread.
const writeTimeout = 30 * time.Second

func (x *httpExchange) write(p []byte) error {
	return writeWithin(x.ResponseWriter, x.handler.unread, p, false)
}

// writeWithin writes p, and with flush all that was written, within a time.
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

// WriteHeader keeps a status until the body says what it is the status of.
func (x *httpExchange) WriteHeader(status int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.status = status
	if !x.sent && strings.HasPrefix(x.Header().Get("Content-Type"), "text/event-stream") {
		x.begin()
	}
}

// Write takes what mcp-go writes: a JSON message, an event with one, or text.
func (x *httpExchange) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return 0, errGone
	}
	message := bytes.TrimSpace(p)
	if x.stream {
		var ok bool
		if message, ok = eventData(p); !ok && !json.Valid(message) {
			return len(p), x.write(p)
		}
	}
	message, code := x.replace(message)
	if x.stream {
		err := x.event(message)
		if x.acked != nil && bytes.Contains(message, []byte(`"notifications/subscriptions/acknowledged"`)) {
			close(x.acked)
			x.acked = nil
		}
		return len(p), err
	}
	if !x.sent {
		x.sendHeader(code)
	}
	return len(p), x.write(message)
}

// sendHeader sends the status, which for a modern client follows the error
// that was put in. x.mu is held.
func (x *httpExchange) sendHeader(code int) {
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

const codeHeaderMismatch = -32020

// replace returns the message with the id and the result as received, and the
// code of the error in it, or 0. What is no response passes as it is. The id
// is not looked at: mcp-go makes a float64 of a number, which a large one does
// not survive.
func (x *httpExchange) replace(message []byte) ([]byte, int) {
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
	case x.fault != nil:
		fault = x.fault
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

// eventData returns the message in an event of mcp-go's.
func eventData(p []byte) ([]byte, bool) {
	rest, ok := bytes.CutPrefix(p, []byte("event: message\ndata: "))
	if !ok {
		return p, false
	}
	return bytes.TrimSpace(rest), true
}

// Flush sends what has been written.
func (x *httpExchange) Flush() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.sent && !x.over {
		writeWithin(x.ResponseWriter, x.handler.unread, nil, true) //nolint:errcheck // the next write will tell
	}
}

// end sends the header of a response without a body. Nothing is written from
// then on: the server uses what a response is written with for others.
func (x *httpExchange) end() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.sent && x.status != 0 {
		x.ResponseWriter.WriteHeader(x.status)
	}
	x.sent, x.stream, x.over = true, false, true
}

// Unwrap is for http.ResponseController.
func (x *httpExchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// oneLine returns JSON without the line breaks that would end an event.
func oneLine(raw []byte) []byte {
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return raw
	}
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil {
		return bytes.ReplaceAll(bytes.ReplaceAll(raw, []byte("\n"), nil), []byte("\r"), nil)
	}
	return out.Bytes()
}
