package mcpkit

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// sessionID is the default session of a connection.
const sessionID = "stdio"

// A handshake holds the results of initialize. A connection's legacy requests
// share it; modern requests carry their own data and do not use it.
type handshake struct {
	mu      sync.Mutex
	begun   bool // initialize was answered
	ready   bool // notifications/initialized was received
	info    mcp.Implementation
	caps    mcp.ClientCapabilities
	version string
	level   mcp.LoggingLevel
}

// States of a request.
const (
	queued int32 = iota
	running
	answered
	cancelled
)

// A view is one request, and the session that mcp-go sees while it handles the
// request. Separate views keep the two eras apart: client data of a modern
// request stays in its view.
type view struct {
	conn   *conn
	id     json.RawMessage // nil for the connection's own view
	key    string
	method string
	line   []byte
	params json.RawMessage
	listen bool // a subscriptions/listen stream
	queue  *queue
	ctx    context.Context
	cancel context.CancelCauseFunc
	state  atomic.Int32

	mu     sync.Mutex
	ended  bool // no more messages may be sent for the request
	raw    json.RawMessage
	rawErr json.RawMessage
	prog   progressState
	modern bool
	info   mcp.Implementation     // modern only
	caps   mcp.ClientCapabilities // modern only
	filter mcp.SubscriptionFilter // of a listen stream
	pump   *pump                  // nil until mcp-go sends a notification
	acked  chan struct{}          // of a listen stream, see Acknowledged; nil until that is called
	hasAck bool
}

// The mcp-go interfaces that a view implements.
var (
	_ server.SessionWithLogging            = (*view)(nil)
	_ server.SessionWithClientInfo         = (*view)(nil)
	_ server.SessionWithSampling           = (*view)(nil)
	_ server.SessionWithElicitation        = (*view)(nil)
	_ server.SessionWithRoots              = (*view)(nil)
	_ server.SessionWithSubscriptionFilter = (*view)(nil)
	_ server.SessionWithProtocolVersion    = (*view)(nil)
)

// over reports whether no more messages may be sent for the request. Hold mu:
// otherwise another goroutine may answer right after.
func (v *view) over() bool { return v.ended || v.state.Load() == cancelled }

// SessionID returns the connection's session, or a listen stream's own: mcp-go
// sends list changes to the session of each id.
func (v *view) SessionID() string {
	if v.listen {
		return v.conn.opts.Session + "/" + v.key
	}
	return v.conn.opts.Session
}

// Initialize is called for initialize and for every modern request.
func (v *view) Initialize() {
	if v.method == string(mcp.MethodInitialize) {
		hs := &v.conn.hs
		hs.mu.Lock()
		hs.begun, hs.level = true, mcp.LoggingLevelError
		hs.mu.Unlock()
		return
	}
	v.mu.Lock()
	v.modern = true
	v.mu.Unlock()
}

// Initialized reports whether notifications may be sent.
func (v *view) Initialized() bool {
	if v.isModern() {
		return true
	}
	hs := &v.conn.hs
	hs.mu.Lock()
	defer hs.mu.Unlock()
	return hs.begun
}

func (v *view) isModern() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.modern || v.listen
}

// SetClientInfo is called for initialize and for every modern request.
func (v *view) SetClientInfo(info mcp.Implementation) {
	if v.method == string(mcp.MethodInitialize) {
		v.conn.hs.mu.Lock()
		v.conn.hs.info = info
		v.conn.hs.mu.Unlock()
		return
	}
	v.mu.Lock()
	v.modern, v.info = true, info
	v.mu.Unlock()
}

// GetClientInfo returns the name and version of the requesting client.
func (v *view) GetClientInfo() mcp.Implementation {
	if v.isModern() {
		v.mu.Lock()
		defer v.mu.Unlock()
		return v.info
	}
	v.conn.hs.mu.Lock()
	defer v.conn.hs.mu.Unlock()
	return v.conn.hs.info
}

// SetClientCapabilities is called for initialize and for every modern request.
func (v *view) SetClientCapabilities(caps mcp.ClientCapabilities) {
	if v.method == string(mcp.MethodInitialize) {
		v.conn.hs.mu.Lock()
		v.conn.hs.caps = caps
		v.conn.hs.mu.Unlock()
		return
	}
	v.mu.Lock()
	v.modern, v.caps = true, caps
	v.mu.Unlock()
}

// GetClientCapabilities returns the capabilities of the requesting client.
func (v *view) GetClientCapabilities() mcp.ClientCapabilities {
	if v.isModern() {
		v.mu.Lock()
		defer v.mu.Unlock()
		return v.caps
	}
	v.conn.hs.mu.Lock()
	defer v.conn.hs.mu.Unlock()
	return v.conn.hs.caps
}

// SetProtocolVersion is called for initialize.
func (v *view) SetProtocolVersion(version string) {
	v.conn.hs.mu.Lock()
	v.conn.hs.version = version
	v.conn.hs.mu.Unlock()
}

// ProtocolVersion returns the version that initialize agreed on.
func (v *view) ProtocolVersion() string {
	v.conn.hs.mu.Lock()
	defer v.conn.hs.mu.Unlock()
	return v.conn.hs.version
}

// SetLogLevel is called for logging/setLevel, a legacy request.
func (v *view) SetLogLevel(level mcp.LoggingLevel) {
	v.conn.hs.mu.Lock()
	v.conn.hs.level = level
	v.conn.hs.mu.Unlock()
}

// GetLogLevel returns the level set by logging/setLevel; error by default.
func (v *view) GetLogLevel() mcp.LoggingLevel {
	v.conn.hs.mu.Lock()
	defer v.conn.hs.mu.Unlock()
	if v.conn.hs.level == "" {
		return mcp.LoggingLevelError
	}
	return v.conn.hs.level
}

// SetSubscriptionFilter is called when a listen stream begins and ends.
func (v *view) SetSubscriptionFilter(filter mcp.SubscriptionFilter) {
	v.mu.Lock()
	v.filter = filter
	v.mu.Unlock()
}

// SubscriptionFilter returns the filter of a listen stream, empty until it is
// set; false for other views.
func (v *view) SubscriptionFilter() (mcp.SubscriptionFilter, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.filter, v.listen
}

// RequestSampling asks the client for a message of its model.
func (v *view) RequestSampling(ctx context.Context, request mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	var result mcp.CreateMessageResult
	if err := v.conn.ask(ctx, string(mcp.MethodSamplingCreateMessage), request.CreateMessageParams, &result); err != nil {
		return nil, err
	}
	content, err := mcp.ParseSamplingContent(result.Content)
	if err != nil {
		return nil, err
	}
	result.Content = content
	return &result, nil
}

// RequestElicitation asks the client's user for input.
func (v *view) RequestElicitation(ctx context.Context, request mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	var result mcp.ElicitationResult
	if err := v.conn.ask(ctx, string(mcp.MethodElicitationCreate), request.Params, &result); err != nil {
		return nil, err
	}
	return &result, nil
}

// ListRoots asks the client for its roots.
func (v *view) ListRoots(ctx context.Context, _ mcp.ListRootsRequest) (*mcp.ListRootsResult, error) {
	var result mcp.ListRootsResult
	if err := v.conn.ask(ctx, string(mcp.MethodListRoots), nil, &result); err != nil {
		return nil, err
	}
	return &result, nil
}

// errNoAnswer fails requests to the client once its input has ended.
var errNoAnswer = errors.New("the client closed the connection before it answered")
