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

// sessionID is the id of the one connection that stdio usually has.
const sessionID = "stdio"

// A handshake is what initialize established. All legacy requests of a
// connection share it; modern ones bring their own and never touch it.
type handshake struct {
	mu      sync.Mutex
	begun   bool // initialize was answered
	ready   bool // notifications/initialized came
	info    mcp.Implementation
	caps    mcp.ClientCapabilities
	version string
	level   mcp.LoggingLevel
}

// State of a request.
const (
	queued int32 = iota
	running
	answered
	cancelled
)

// A view is one request, and the session that mcp-go sees while it handles
// it. One view a request keeps the two eras apart: what a modern request says
// about its client stays in its view.
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
	ended  bool // answered, or never to be: nothing more may be sent
	raw    json.RawMessage
	rawErr json.RawMessage
	prog   progressState
	modern bool
	info   mcp.Implementation     // modern only
	caps   mcp.ClientCapabilities // modern only
	filter mcp.SubscriptionFilter // of a listen stream
	pump   *pump                  // nil until mcp-go sends something
	acked  chan struct{}          // of a listen stream, see Acknowledged; nil until somebody asks
	hasAck bool
}

// The interfaces of mcp-go's that a view serves.
var (
	_ server.SessionWithLogging            = (*view)(nil)
	_ server.SessionWithClientInfo         = (*view)(nil)
	_ server.SessionWithSampling           = (*view)(nil)
	_ server.SessionWithElicitation        = (*view)(nil)
	_ server.SessionWithRoots              = (*view)(nil)
	_ server.SessionWithSubscriptionFilter = (*view)(nil)
	_ server.SessionWithProtocolVersion    = (*view)(nil)
)

// over reports whether nothing more may be sent for the request. Call it with
// mu held, or another goroutine may answer right after.
func (v *view) over() bool { return v.ended || v.state.Load() == cancelled }

// SessionID is the connection's, but a listen stream's own: mcp-go sends each
// id's session the changes of lists.
func (v *view) SessionID() string {
	if v.listen {
		return v.conn.opts.Session + "/" + v.key
	}
	return v.conn.opts.Session
}

// Initialize is called by initialize, and for every modern request.
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

// SetClientInfo is called by initialize, and for every modern request.
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

// GetClientInfo returns who asks.
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

// SetClientCapabilities is called by initialize, and for every modern request.
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

// GetClientCapabilities returns what the one who asks can do.
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

// SetProtocolVersion is called by initialize.
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

// SetLogLevel is called by logging/setLevel, which is legacy.
func (v *view) SetLogLevel(level mcp.LoggingLevel) {
	v.conn.hs.mu.Lock()
	v.conn.hs.level = level
	v.conn.hs.mu.Unlock()
}

// GetLogLevel returns what logging/setLevel set.
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

// SubscriptionFilter returns what a listen stream may carry: nothing before
// it has been set. Other views have no filter.
func (v *view) SubscriptionFilter() (mcp.SubscriptionFilter, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.filter, v.listen
}

// RequestSampling asks the client for a model's answer.
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

// RequestElicitation asks the client's user.
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

// errNoAnswer is what a question to the client ends with when its input has
// ended.
var errNoAnswer = errors.New("the client closed the connection before it answered")
