package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Bounds of a list: a server must not return pages forever, and the lists of all
// servers together must be readable for clients, some of which accept 10 MiB in one
// message.
const (
	maxPages  = 1000
	maxItems  = 100_000
	maxListed = 8 << 20 // bytes
)

// declaredCapabilities holds the capabilities that a server declares.
type declaredCapabilities map[string]json.RawMessage

// declares reports whether a capability is declared, and if option is not empty whether
// its option is.
func (o declaredCapabilities) declares(capability, option string) bool {
	raw, ok := o[capability]
	if !ok || option == "" {
		return ok
	}
	var options map[string]any
	if json.Unmarshal(raw, &options) != nil {
		return false
	}
	on, ok := options[option].(bool)
	return ok && on
}

// listMethod returns the method that lists a kind, and the capability that it requires.
func listMethod(kind call.ListKind) (method, capability string) {
	if kind == call.Templates {
		return "resources/templates/list", "resources"
	}
	return string(kind) + "/list", string(kind)
}

// listTools requests the server's tools and stores them. After an error the stored ones
// stay.
func (c *conn) listTools(ctx context.Context) error {
	tools, err := c.listPages(ctx, call.Tools)
	if err != nil {
		return err
	}
	if _, web := c.out.(*streamable); web && c.era == Modern {
		tools = slices.DeleteFunc(tools, hasInvalidHeaders)
	}
	c.mu.Lock()
	c.tools = tools
	c.mu.Unlock()
	return nil
}

// List returns a list of the server with the items as it sent them; it requests a list only
// if it is not known. It starts the server if necessary, and waits at most StartTimeout for
// the list. The items must not be changed.
func (s *Server) List(ctx context.Context, kind call.ListKind) ([]json.RawMessage, error) {
	c, err := s.connection(ctx)
	if err != nil {
		return nil, err
	}
	if kind == call.Tools {
		return c.listedTools(), nil
	}
	c.mu.Lock()
	items, known := c.lists[kind]
	changes := c.changes
	c.mu.Unlock()
	if known {
		return items, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.StartTimeout)
	defer cancel()
	items, err = c.listPages(ctx, kind)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes != changes { // it changed while it was read
		return items, nil
	}
	if c.lists == nil {
		c.lists = map[call.ListKind][]json.RawMessage{}
	}
	c.lists[kind] = items
	return items, nil
}

// listPages requests all pages of a list; nil if the server does not declare such items. It
// returns PROTOCOL_ERROR for a malformed answer, and LIMIT_REACHED for a list that is too
// long.
func (c *conn) listPages(ctx context.Context, kind call.ListKind) ([]json.RawMessage, error) {
	method, capability := listMethod(kind)
	if !c.capabilities.declares(capability, "") {
		return nil, nil
	}
	var items []json.RawMessage
	size := 0
	cursor, seen := "", map[string]bool{"": true}
	for range maxPages {
		var params json.RawMessage
		if cursor != "" {
			params = append(jsonrpc.AppendString([]byte(`{"cursor":`), cursor), '}')
		}
		raw, err := c.requestFromServer(ctx, method, params)
		var refused *call.MCPError
		if errors.As(err, &refused) && refused.Code == jsonrpc.CodeMethodNotFound {
			return items, nil // it declares the capability but has no items
		}
		if err != nil {
			return nil, err
		}
		page, next, err := readPage(raw, kind)
		if err != nil {
			return nil, toolerr.New(toolerr.ProtocolError, "the answer to %s is malformed: %w", method, err)
		}
		items = append(items, page...)
		for _, item := range page {
			size += len(item)
		}
		if len(items) > maxItems {
			return nil, toolerr.New(toolerr.LimitReached, "the server lists more than %d %s", maxItems, kind)
		}
		if size > maxListed {
			return nil, toolerr.New(toolerr.LimitReached, "the %s that the server lists have more than %d bytes", kind, maxListed)
		}
		if seen[next] { // the end, or a repeated cursor
			return items, nil
		}
		cursor, seen[next] = next, true
	}
	return nil, toolerr.New(toolerr.LimitReached, "the server's list of %s has more than %d pages", kind, maxPages)
}

// readPage returns the items of a page of a list, and the cursor of the next page, ""
// after the last. It returns an error for a malformed page.
func readPage(raw json.RawMessage, kind call.ListKind) (items []json.RawMessage, next string, err error) {
	var page map[string]json.RawMessage
	if err := json.Unmarshal(raw, &page); err != nil {
		return nil, "", err
	}
	if list := page[string(kind)]; !isNull(list) {
		if err := json.Unmarshal(list, &items); err != nil {
			return nil, "", fmt.Errorf("%s: %w", kind, err)
		}
	}
	if cursor := page["nextCursor"]; !isNull(cursor) {
		if err := json.Unmarshal(cursor, &next); err != nil {
			return nil, "", fmt.Errorf("nextCursor: %w", err)
		}
	}
	return items, next, nil
}

// Forward sends a request other than tools/call and returns the result. It starts the
// server if necessary, and repeats a request that was not sent because the server had died.
// It returns the errors of Call.
func (s *Server) Forward(ctx context.Context, m *call.UpstreamRequest) (json.RawMessage, error) {
	if m.Caller.ID != "" { // otherwise it is the host's own
		one, leave, err := s.instanceOf(m.Caller)
		if err != nil {
			return nil, s.wrapLostError(ctx, m.Method, call.PhaseConnect, err)
		}
		if one != s {
			defer leave()
			return one.Forward(ctx, m)
		}
	}
	for attempt := 0; ; attempt++ {
		c, err := s.connection(ctx)
		if err != nil {
			return nil, s.wrapLostError(ctx, m.Method, call.PhaseConnect, err)
		}
		if result, done, err := s.recordSubscription(c, m); done || err != nil {
			return result, err
		}
		a, err := c.roundTrip(ctx, request{method: m.Method, params: m.Params, caller: m.Caller, notify: m.OnNotify, ask: m.Ask})
		if errors.Is(err, errNotSent) && attempt < 2 {
			select { // the server had died before: nothing was lost
			case <-c.dead:
				continue
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		if err != nil {
			return nil, s.wrapLostError(ctx, m.Method, call.PhaseExecute, err)
		}
		s.recordSuccess(c)
		return a.result, nil
	}
}

// DeclaresCapability reports whether the server declares a capability. It starts the
// server if necessary; a server that does not start declares none.
func (s *Server) DeclaresCapability(ctx context.Context, capability string) bool {
	c, err := s.connection(ctx)
	return err == nil && c.capabilities.declares(capability, "")
}

// OnNotification sets the function for notifications that belong to no request: list
// changes except those of tools, updates of resources, completed URL elicitations, and
// log messages. first is the owner of the server's first request, nil before it; a log
// message belongs to this owner or to none. The reading goroutine calls f, so it must not
// block. OnNotification must be called before the first use.
func (s *Server) OnNotification(f func(method string, params json.RawMessage, first *call.Owner)) {
	s.cfg.onNotification = f
}

// recordSubscription records a resources/subscribe or unsubscribe for the next start and,
// for a modern server, opens the subscription stream again. done is false for other
// requests, and if the request must still be sent to a legacy server.
func (s *Server) recordSubscription(c *conn, m *call.UpstreamRequest) (result json.RawMessage, done bool, err error) {
	on := m.Method == "resources/subscribe"
	if !on && m.Method != "resources/unsubscribe" {
		return nil, false, nil
	}
	var p struct {
		URI string `json:"uri"`
	}
	if err := json.Unmarshal(m.Params, &p); err != nil || p.URI == "" {
		return nil, true, toolerr.New(toolerr.InvalidParams, "params of %s: uri is missing", m.Method)
	}
	s.mu.Lock()
	if on && s.subscribed == nil {
		s.subscribed = map[string]bool{}
	}
	if on {
		s.subscribed[p.URI] = true
	} else {
		delete(s.subscribed, p.URI)
	}
	s.mu.Unlock()
	if c.era != Modern {
		return nil, !c.capabilities.declares("resources", "subscribe"), nil
	}
	s.openSubscriptionStream(c)
	return nil, true, nil
}

// SetLogLevel requests log messages of that level and above, now and after each start.
func (s *Server) SetLogLevel(level string) {
	s.mu.Lock()
	same := s.level == level
	s.level = level
	c := s.conn
	s.mu.Unlock()
	if !same && c != nil {
		c.sendLogLevel(level)
	}
	for _, one := range s.instances.servers() {
		one.SetLogLevel(level)
	}
}

// sendLogLevel sends logging/setLevel to a legacy server that sends log messages. It does
// not wait for the answer.
func (c *conn) sendLogLevel(level string) {
	if c.era == Legacy && level != "" && c.capabilities.declares("logging", "") {
		params := append(jsonrpc.AppendString([]byte(`{"level":`), level), '}')
		c.send(c.encodeRequest(c.newID(), "logging/setLevel", params)) // the effect shows whether it worked
	}
}

// restoreSubscriptions sends the subscriptions and the log level to a server that has
// started. It waits for no answer.
func (s *Server) restoreSubscriptions(c *conn) {
	s.mu.Lock()
	level, uris := s.level, sortedKeys(s.subscribed)
	s.mu.Unlock()
	if c.era == Modern {
		s.openSubscriptionStream(c)
		return
	}
	c.sendLogLevel(level)
	for _, uri := range uris {
		if c.capabilities.declares("resources", "subscribe") {
			params := append(jsonrpc.AppendString([]byte(`{"uri":`), uri), '}')
			c.send(c.encodeRequest(c.newID(), "resources/subscribe", params))
		}
	}
}

// openSubscriptionStream opens the stream on which a modern server reports changes of its
// lists and of the subscribed resources, and cancels the previous one.
func (s *Server) openSubscriptionStream(c *conn) {
	want := map[string]any{}
	for _, kind := range []call.ListKind{call.Tools, call.Resources, call.Prompts} {
		if c.capabilities.declares(string(kind), "listChanged") {
			want[string(kind)+"ListChanged"] = true
		}
	}
	s.mu.Lock()
	if uris := sortedKeys(s.subscribed); len(uris) > 0 && c.capabilities.declares("resources", "subscribe") {
		want["resourceSubscriptions"] = uris
	}
	s.mu.Unlock()
	raw, err := jsonrpc.Marshal(map[string]any{"notifications": want})
	if err != nil { // strings can always be encoded
		return
	}
	var id uint64
	if len(want) > 0 {
		id = c.newID()
	}
	c.mu.Lock()
	before := c.listenID
	c.listenID = id
	c.mu.Unlock()
	if id != 0 {
		c.send(c.encodeRequest(id, "subscriptions/listen", raw))
	}
	if before != 0 {
		c.sendCancelled(before)
	}
}

// sortedKeys returns the names in a set in order.
func sortedKeys(set map[string]bool) []string {
	keys := make([]string, 0, len(set))
	for key := range set {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
