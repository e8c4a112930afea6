package wire

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"
)

// defaultSession is the default of ServeOptions.Session.
const defaultSession = "stdio"

// SessionID returns the connection's session, or a subscription stream's own:
// mcp-go sends list changes to the session of each id.
func (req *request) SessionID() string {
	if req.listen {
		return req.conn.opts.Session + "/" + req.key
	}
	return req.conn.opts.Session
}

// Initialize marks the connection as initialized, or the request as modern.
// mcp-go calls it for initialize and for every modern request.
func (req *request) Initialize() {
	if req.method == string(mcp.MethodInitialize) {
		hs := &req.conn.handshake
		hs.mu.Lock()
		hs.initialized, hs.level = true, mcp.LoggingLevelError
		hs.mu.Unlock()
		return
	}
	req.mu.Lock()
	req.modern = true
	req.mu.Unlock()
}

// Initialized reports whether the client may get notifications: the handshake
// is complete, or the request is modern.
func (req *request) Initialized() bool {
	if req.isModern() {
		return true
	}
	hs := &req.conn.handshake
	hs.mu.Lock()
	defer hs.mu.Unlock()
	return hs.initialized
}

// SetClientInfo keeps the client's name and version, for the connection or for
// a modern request. mcp-go calls it for initialize and for every modern
// request.
func (req *request) SetClientInfo(info mcp.Implementation) {
	if req.method == string(mcp.MethodInitialize) {
		req.conn.handshake.mu.Lock()
		req.conn.handshake.info = info
		req.conn.handshake.mu.Unlock()
		return
	}
	req.mu.Lock()
	req.modern, req.info = true, info
	req.mu.Unlock()
}

// GetClientInfo returns the name and version of the requesting client.
func (req *request) GetClientInfo() mcp.Implementation {
	if req.isModern() {
		req.mu.Lock()
		defer req.mu.Unlock()
		return req.info
	}
	req.conn.handshake.mu.Lock()
	defer req.conn.handshake.mu.Unlock()
	return req.conn.handshake.info
}

// SetClientCapabilities keeps the client's capabilities, for the connection or
// for a modern request. mcp-go calls it for initialize and for every modern
// request.
func (req *request) SetClientCapabilities(caps mcp.ClientCapabilities) {
	if req.method == string(mcp.MethodInitialize) {
		req.conn.handshake.mu.Lock()
		req.conn.handshake.capabilities = caps
		req.conn.handshake.mu.Unlock()
		return
	}
	req.mu.Lock()
	req.modern, req.capabilities = true, caps
	req.mu.Unlock()
}

// GetClientCapabilities returns the capabilities of the requesting client.
func (req *request) GetClientCapabilities() mcp.ClientCapabilities {
	if req.isModern() {
		req.mu.Lock()
		defer req.mu.Unlock()
		return req.capabilities
	}
	req.conn.handshake.mu.Lock()
	defer req.conn.handshake.mu.Unlock()
	return req.conn.handshake.capabilities
}

// SetProtocolVersion keeps the version that initialize agreed on, for all
// requests of the connection. mcp-go calls it.
func (req *request) SetProtocolVersion(version string) {
	req.conn.handshake.mu.Lock()
	req.conn.handshake.version = version
	req.conn.handshake.mu.Unlock()
}

// ProtocolVersion returns the version that initialize agreed on; "" before it.
func (req *request) ProtocolVersion() string {
	req.conn.handshake.mu.Lock()
	defer req.conn.handshake.mu.Unlock()
	return req.conn.handshake.version
}

// SetLogLevel keeps the level of logging/setLevel, a legacy request, for the
// connection.
func (req *request) SetLogLevel(level mcp.LoggingLevel) {
	req.conn.handshake.mu.Lock()
	req.conn.handshake.level = level
	req.conn.handshake.mu.Unlock()
}

// GetLogLevel returns the level of logging/setLevel; error by default.
func (req *request) GetLogLevel() mcp.LoggingLevel {
	req.conn.handshake.mu.Lock()
	defer req.conn.handshake.mu.Unlock()
	if req.conn.handshake.level == "" {
		return mcp.LoggingLevelError
	}
	return req.conn.handshake.level
}

// SetSubscriptionFilter keeps the filter of a subscription stream. mcp-go calls
// it when the stream begins and ends.
func (req *request) SetSubscriptionFilter(filter mcp.SubscriptionFilter) {
	req.mu.Lock()
	req.filter = filter
	req.mu.Unlock()
}

// SubscriptionFilter returns the filter of a subscription stream, empty until
// it is set, and whether the request is a subscription stream.
func (req *request) SubscriptionFilter() (mcp.SubscriptionFilter, bool) {
	req.mu.Lock()
	defer req.mu.Unlock()
	return req.filter, req.listen
}

// RequestSampling asks the client for a message of its model, and waits for it. The error
// is the client's, or the cause of ctx if that ends first.
func (req *request) RequestSampling(ctx context.Context, request mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	var result mcp.CreateMessageResult
	if err := req.conn.ask(ctx, string(mcp.MethodSamplingCreateMessage), request.CreateMessageParams, &result); err != nil {
		return nil, err
	}
	content, err := mcp.ParseSamplingContent(result.Content)
	if err != nil {
		return nil, err
	}
	result.Content = content
	return &result, nil
}

// RequestElicitation asks the client's user for input, and waits for it. The error is the
// client's, or the cause of ctx if that ends first.
func (req *request) RequestElicitation(ctx context.Context, request mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	var result mcp.ElicitationResult
	if err := req.conn.ask(ctx, string(mcp.MethodElicitationCreate), request.Params, &result); err != nil {
		return nil, err
	}
	return &result, nil
}

// ListRoots asks the client for its roots, without the cache, and waits for them. The
// error is the client's, or the cause of ctx if that ends first.
func (req *request) ListRoots(ctx context.Context, _ mcp.ListRootsRequest) (*mcp.ListRootsResult, error) {
	var result mcp.ListRootsResult
	if err := req.conn.ask(ctx, string(mcp.MethodListRoots), nil, &result); err != nil {
		return nil, err
	}
	return &result, nil
}
