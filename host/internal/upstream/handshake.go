package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// The protocol versions that the host offers.
const (
	legacyVersion = "2025-11-25"
	modernVersion = "2026-07-28"
)

// programIdentity is the name and version of a program, as it gives them.
type programIdentity struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// String returns NAME VERSION, or NAME if there is no version.
func (i programIdentity) String() string {
	if i.Version == "" {
		return i.Name
	}
	return i.Name + " " + i.Version
}

// handshake opens the session and sets c.era. With Auto it tries the modern opening
// first; a server that ignores it costs ProbeTimeout, once. If such a server then
// refuses the legacy opening, the modern one is tried once more.
func (c *conn) handshake(ctx context.Context, era Era) error {
	err := c.openSession(ctx, era)
	if err == nil && c.cfg.afterHandshake != nil {
		c.cfg.afterHandshake(c)
	}
	return err
}

// openSession opens the session in the given era. With Auto it tries the modern one for
// ProbeTimeout, then the legacy one, and the modern one again if the first try timed out
// and the server refuses the legacy one.
func (c *conn) openSession(ctx context.Context, era Era) error {
	if era == Legacy {
		return c.initialize(ctx)
	}
	probe := ctx
	if era == Auto {
		var cancel context.CancelFunc
		probe, cancel = context.WithTimeout(ctx, c.cfg.ProbeTimeout)
		defer cancel()
	}
	modern, err := c.tryModern(probe)
	late := probe.Err() != nil
	switch {
	case modern:
		return nil
	case era == Modern:
		if err == nil {
			err = fmt.Errorf("the server does not speak protocol version %s", modernVersion)
		}
		return err
	case !c.isAlive() || ctx.Err() != nil || isHostLoop(err) || lacksToken(err):
		return err
	}
	err = c.initialize(ctx)
	var refused *call.MCPError
	if late && errors.As(err, &refused) { // a slow start of a server that speaks only the modern version
		again, cancel := context.WithTimeout(ctx, c.cfg.StartTimeout/4) // it runs now, and there may be other transports
		defer cancel()
		if modern, _ := c.tryModern(again); modern { //nolint:errcheck // its first refusal says more
			return nil
		}
	}
	return err
}

// tryModern sends server/discover and reports whether the server speaks the modern version.
// It stores the era, the identity and the declared capabilities. It returns the error of
// the request, or PROTOCOL_ERROR for a malformed answer.
func (c *conn) tryModern(ctx context.Context) (bool, error) {
	c.era = Modern
	raw, err := c.requestFromServer(ctx, "server/discover", nil)
	if supportsModern(err) {
		raw, err = c.requestFromServer(ctx, "server/discover", nil)
	}
	if err != nil {
		return false, err
	}
	var result struct {
		SupportedVersions []string             `json:"supportedVersions"`
		Capabilities      declaredCapabilities `json:"capabilities"`
		Meta              struct {
			ServerInfo programIdentity `json:"io.modelcontextprotocol/serverInfo"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return false, toolerr.New(toolerr.ProtocolError, "the answer to server/discover is malformed: %w", err)
	}
	if !slices.Contains(result.SupportedVersions, modernVersion) {
		return false, nil
	}
	c.identity = result.Meta.ServerInfo.String()
	c.capabilities = result.Capabilities
	return true, nil
}

// supportsModern reports whether a server refused the version but listed it as supported.
// A server with several replicas may do so during an update.
func supportsModern(err error) bool {
	var refused *call.MCPError
	if !errors.As(err, &refused) || refused.Code != mcp.UNSUPPORTED_PROTOCOL_VERSION {
		return false
	}
	var e struct {
		Data struct {
			Supported []string `json:"supported"`
		} `json:"data"`
	}
	return json.Unmarshal(refused.Object, &e) == nil && slices.Contains(e.Data.Supported, modernVersion)
}

// initialize opens a legacy session, and stores the era, the identity and the declared
// capabilities. It returns an error if the server refuses it or answers with an unsupported
// version.
func (c *conn) initialize(ctx context.Context) error {
	c.era = Legacy
	// Declare all of them: whether the client of a call can answer is only known when
	// the server asks.
	capabilities := map[string]any{
		"elicitation": map[string]any{"form": struct{}{}, "url": struct{}{}},
		"sampling":    struct{}{},
	}
	if c.cfg.Roots != nil {
		capabilities["roots"] = map[string]any{"listChanged": true}
	}
	params, err := json.Marshal(map[string]any{
		"protocolVersion": legacyVersion,
		"capabilities":    capabilities,
		"clientInfo":      clientInfo(c.cfg.Version),
	})
	if err != nil {
		return err
	}
	raw, err := c.requestFromServer(ctx, "initialize", params)
	if err != nil {
		return err
	}
	var result struct {
		ProtocolVersion string               `json:"protocolVersion"`
		Capabilities    declaredCapabilities `json:"capabilities"`
		ServerInfo      programIdentity      `json:"serverInfo"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return toolerr.New(toolerr.ProtocolError, "the answer to initialize is malformed: %w", err)
	}
	c.identity = result.ServerInfo.String()
	if out, ok := c.out.(interface{ setVersion(version string) }); ok {
		out.setVersion(result.ProtocolVersion)
	}
	c.capabilities = result.Capabilities
	c.send(append(jsonrpc.AppendNotification(nil, "notifications/initialized", nil), '\n'))
	return nil
}

// clientInfo returns the identity of the host for the handshake, with version 0 for "".
func clientInfo(version string) map[string]string {
	if version == "" {
		version = "0"
	}
	return map[string]string{"name": "toolroom", "version": version}
}

// answerRequest answers a request of the server: ping itself, questions by the client of a
// call, others with an error. It was sent on the stream of the request of, unless that is nil.
func (c *conn) answerRequest(m jsonrpc.Message, of json.RawMessage) {
	switch {
	case m.Method == "ping":
		c.reply(jsonrpc.AppendResult(nil, m.ID, json.RawMessage(`{}`)))
	case isQuestion(m.Method):
		c.forwardQuestion(m, of)
	default:
		c.reply(jsonrpc.AppendError(nil, m.ID, jsonrpc.CodeMethodNotFound, "this host does not answer "+m.Method))
	}
}

// reply sends the answer to a request of the server.
func (c *conn) reply(message []byte) { c.send(append(oneLine(message), '\n')) }

// handleNotification handles a notification of the server: it forwards it, cancels a
// question, or drops lists that have changed. It must not block.
func (c *conn) handleNotification(m jsonrpc.Message) {
	switch m.Method {
	case "notifications/progress":
		c.forwardProgress(m.Params)
	case "notifications/message":
		c.forwardLog(m)
	case "notifications/cancelled":
		c.cancelQuestion(m.Params)
	case "notifications/tools/list_changed":
		select {
		case c.toolsChanged <- struct{}{}:
		default: // a change is already signaled
		}
	case "notifications/resources/list_changed", "notifications/prompts/list_changed":
		c.mu.Lock()
		c.lists = nil
		c.changes++
		c.mu.Unlock()
		c.passNotification(m)
	case "notifications/resources/updated", "notifications/elicitation/complete":
		c.passNotification(m)
	}
}

// refreshLists requests the lists again: the server may have sent a change notification
// before the stream for them was open.
func (c *conn) refreshLists() {
	c.mu.Lock()
	c.lists = nil
	c.changes++
	c.mu.Unlock()
	select {
	case c.toolsChanged <- struct{}{}:
	default:
	}
}

// passNotification passes a notification to Config.onNotification; see OnNotification.
func (c *conn) passNotification(m jsonrpc.Message) {
	if c.cfg.onNotification != nil {
		c.cfg.onNotification(m.Method, m.Params, c.owners.First())
	}
}
