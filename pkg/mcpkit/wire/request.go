package wire

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// A handshake holds the results of initialize. A connection's legacy requests
// share it; modern requests carry their own data and do not use it.
type handshake struct {
	mu           sync.Mutex
	initialized  bool               // initialize was answered
	ready        bool               // notifications/initialized was received
	info         mcp.Implementation // the client's name and version
	capabilities mcp.ClientCapabilities
	version      string           // the agreed protocol version
	level        mcp.LoggingLevel // of log messages to the client
}

// States of a request.
const (
	queued int32 = iota
	running
	answered
	cancelled
)

// A request is one request of the client, and the session that mcp-go sees
// while it handles the request. A separate session for each request keeps the
// two eras apart: the client data of a modern request stays in that request.
type request struct {
	conn   *conn
	id     json.RawMessage // as received; nil for the connection's own session
	key    string          // jsonrpc.Key of id
	method string
	line   []byte // the whole message
	params json.RawMessage
	listen bool          // it is a subscription stream (subscriptions/listen)
	queue  *requestQueue // the queue that runs it; nil for a subscription stream
	ctx    context.Context
	cancel context.CancelCauseFunc
	state  atomic.Int32 // queued, running, answered or cancelled

	mu            sync.Mutex      // protects the fields below
	sendingClosed bool            // no more messages may be sent for the request
	rawResult     json.RawMessage // of SetRawResult; nil: none
	rawErr        json.RawMessage // of SetRawError; nil: none
	progress      progressState
	modern        bool                   // it is of the modern era
	info          mcp.Implementation     // of a modern request
	capabilities  mcp.ClientCapabilities // of a modern request
	filter        mcp.SubscriptionFilter // of a subscription stream
	notifier      *notifier              // nil until mcp-go sends a notification
	ackReached    chan struct{}          // of a subscription stream, see Acknowledged; nil until that is called
	ackSent       bool                   // the acknowledgement has been sent
}

// The mcp-go interfaces that a request implements.
var (
	_ server.SessionWithLogging            = (*request)(nil)
	_ server.SessionWithClientInfo         = (*request)(nil)
	_ server.SessionWithSampling           = (*request)(nil)
	_ server.SessionWithElicitation        = (*request)(nil)
	_ server.SessionWithRoots              = (*request)(nil)
	_ server.SessionWithSubscriptionFilter = (*request)(nil)
	_ server.SessionWithProtocolVersion    = (*request)(nil)
)

// sendingEnded reports whether no more messages may be sent for the request.
// Hold mu while calling it and sending: otherwise another goroutine may answer
// in between.
func (req *request) sendingEnded() bool { return req.sendingClosed || req.state.Load() == cancelled }

// isModern reports whether the request is of the modern era.
func (req *request) isModern() bool {
	req.mu.Lock()
	defer req.mu.Unlock()
	return req.modern || req.listen
}

// requestOf returns the request over ServeStdio that ctx belongs to, or nil.
func requestOf(ctx context.Context) *request {
	req, _ := server.ClientSessionFromContext(ctx).(*request)
	return req
}
