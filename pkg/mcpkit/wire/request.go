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
	initialized  bool // initialize was answered
	ready        bool // notifications/initialized was received
	info         mcp.Implementation
	capabilities mcp.ClientCapabilities
	version      string
	level        mcp.LoggingLevel
}

// States of a request.
const (
	queued int32 = iota
	running
	answered
	cancelled
)

// A request is one request of the client, and the session that mcp-go sees
// while it handles it. A separate session for each request keeps the two eras
// apart: the client data of a modern request stays in that request.
type request struct {
	conn   *conn
	id     json.RawMessage // nil for the connection's own session
	key    string
	method string
	line   []byte
	params json.RawMessage
	listen bool // a subscriptions/listen stream
	queue  *queue
	ctx    context.Context
	cancel context.CancelCauseFunc
	state  atomic.Int32

	mu            sync.Mutex
	sendingClosed bool // no more messages may be sent for the request
	rawResult     json.RawMessage
	rawErr        json.RawMessage
	progress      progressState
	modern        bool
	info          mcp.Implementation     // modern only
	capabilities  mcp.ClientCapabilities // modern only
	filter        mcp.SubscriptionFilter // of a listen stream
	notifier      *notifier              // nil until mcp-go sends a notification
	ackReached    chan struct{}          // of a listen stream, see Acknowledged; nil until that is called
	ackSent       bool
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
// Hold mu: otherwise another goroutine may answer right after.
func (req *request) sendingEnded() bool { return req.sendingClosed || req.state.Load() == cancelled }

func (req *request) isModern() bool {
	req.mu.Lock()
	defer req.mu.Unlock()
	return req.modern || req.listen
}

// requestOf returns the stdio request that ctx belongs to, or nil.
func requestOf(ctx context.Context) *request {
	req, _ := server.ClientSessionFromContext(ctx).(*request)
	return req
}
