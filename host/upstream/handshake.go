package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/toolroom-mcp/toolroom/host/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// The versions that the host offers.
const (
	legacyVersion = "2025-11-25"
	modernVersion = "2026-07-28"
)

// Bounds of a listing, so that a server cannot page for ever.
const (
	maxPages = 1000
	maxTools = 100_000
)

type identity struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

func (i identity) String() string {
	if i.Version == "" {
		return i.Name
	}
	return i.Name + " " + i.Version
}

// handshake opens the session and sets c.era. With Auto the modern opening is
// tried first; a server that ignores it costs ProbeTimeout, once.
func (c *conn) handshake(ctx context.Context, era Era) error {
	if era == Legacy {
		return c.initialize(ctx)
	}
	probe := ctx
	if era == Auto {
		var cancel context.CancelFunc
		probe, cancel = context.WithTimeout(ctx, c.cfg.ProbeTimeout)
		defer cancel()
	}
	modern, err := c.discover(probe)
	switch {
	case modern:
		return nil
	case era == Modern:
		if err == nil {
			err = fmt.Errorf("the server does not speak protocol version %s", modernVersion)
		}
		return err
	case !c.alive() || ctx.Err() != nil:
		return err
	}
	return c.initialize(ctx)
}

// discover asks whether the server speaks the modern version.
func (c *conn) discover(ctx context.Context) (bool, error) {
	c.era = Modern
	raw, err := c.ask(ctx, "server/discover", nil)
	if err != nil {
		return false, err
	}
	var result struct {
		SupportedVersions []string                   `json:"supportedVersions"`
		Capabilities      map[string]json.RawMessage `json:"capabilities"`
		Meta              struct {
			ServerInfo identity `json:"io.modelcontextprotocol/serverInfo"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return false, toolerr.New(toolerr.ProtocolError, "the answer to server/discover is malformed: %w", err)
	}
	if !slices.Contains(result.SupportedVersions, modernVersion) {
		return false, nil
	}
	c.identity = result.Meta.ServerInfo.String()
	_, c.hasTools = result.Capabilities["tools"]
	return true, nil
}

// initialize opens a legacy session.
func (c *conn) initialize(ctx context.Context) error {
	c.era = Legacy
	capabilities := map[string]any{}
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
	raw, err := c.ask(ctx, "initialize", params)
	if err != nil {
		return err
	}
	var result struct {
		ProtocolVersion string                     `json:"protocolVersion"`
		Capabilities    map[string]json.RawMessage `json:"capabilities"`
		ServerInfo      identity                   `json:"serverInfo"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return toolerr.New(toolerr.ProtocolError, "the answer to initialize is malformed: %w", err)
	}
	c.identity = result.ServerInfo.String()
	_, c.hasTools = result.Capabilities["tools"]
	c.send(append(jsonrpc.AppendNotification(nil, "notifications/initialized", nil), '\n'))
	return nil
}

func clientInfo(version string) map[string]string {
	if version == "" {
		version = "0"
	}
	return map[string]string{"name": "toolroom", "version": version}
}

// list fetches all pages of the server's tools.
func (c *conn) list(ctx context.Context) error {
	if !c.hasTools {
		return nil
	}
	var tools []json.RawMessage
	cursor := ""
	for range maxPages {
		var params json.RawMessage
		if cursor != "" {
			params = append(jsonrpc.AppendString([]byte(`{"cursor":`), cursor), '}')
		}
		raw, err := c.ask(ctx, "tools/list", params)
		var refused *call.MCPError
		if errors.As(err, &refused) && refused.Code == jsonrpc.CodeMethodNotFound {
			break // it declared tools and has none
		}
		if err != nil {
			return err
		}
		var page struct {
			Tools      []json.RawMessage `json:"tools"`
			NextCursor string            `json:"nextCursor"`
		}
		if err := json.Unmarshal(raw, &page); err != nil {
			return toolerr.New(toolerr.ProtocolError, "the answer to tools/list is malformed: %w", err)
		}
		tools = append(tools, page.Tools...)
		if len(tools) > maxTools {
			return toolerr.New(toolerr.LimitReached, "the server lists more than %d tools", maxTools)
		}
		if page.NextCursor == "" || page.NextCursor == cursor {
			cursor = ""
			break
		}
		cursor = page.NextCursor
	}
	if cursor != "" {
		return toolerr.New(toolerr.LimitReached, "the server's list of tools has more than %d pages", maxPages)
	}
	c.mu.Lock()
	c.tools = tools
	c.mu.Unlock()
	return nil
}

// serve answers a request of the server's.
func (c *conn) serve(m jsonrpc.Message) {
	var line []byte
	switch {
	case m.Method == "ping":
		line = jsonrpc.AppendResult(nil, m.ID, json.RawMessage(`{}`))
	case m.Method == "roots/list" && c.cfg.Roots != nil:
		type root struct {
			URI string `json:"uri"`
		}
		roots := []root{}
		for _, uri := range c.cfg.Roots() {
			roots = append(roots, root{uri})
		}
		raw, err := jsonrpc.Marshal(map[string]any{"roots": roots})
		if err != nil {
			line = jsonrpc.AppendError(nil, m.ID, jsonrpc.CodeInternal, err.Error())
			break
		}
		line = jsonrpc.AppendResult(nil, m.ID, raw)
	default:
		line = jsonrpc.AppendError(nil, m.ID, jsonrpc.CodeMethodNotFound, "this host does not answer "+m.Method)
	}
	c.send(append(oneLine(line), '\n'))
}

// notified handles a notification of the server's.
func (c *conn) notified(m jsonrpc.Message) {
	switch m.Method {
	case "notifications/progress":
		c.progress(m.Params)
	case "notifications/tools/list_changed":
		select {
		case c.changed <- struct{}{}:
		default: // one is already waiting to be seen
		}
	}
}
