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

// Bounds of a listing, so that a server cannot page for ever, nor make a list
// of all servers' that clients cannot read: some take 10 MiB in one message.
const (
	maxPages  = 1000
	maxItems  = 100_000
	maxListed = 8 << 20 // bytes
)

// offer is what a server declared that it can do.
type offer map[string]json.RawMessage

// has reports whether a capability was declared, or with option one of its
// options.
func (o offer) has(capability, option string) bool {
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

// listing says how a kind is asked for, and under which capability.
func listing(kind call.Kind) (method, capability string) {
	if kind == call.Templates {
		return "resources/templates/list", "resources"
	}
	return string(kind) + "/list", string(kind)
}

// list fetches the server's tools.
func (c *conn) list(ctx context.Context) error {
	tools, err := c.pages(ctx, call.Tools)
	if err != nil {
		return err
	}
	if _, web := c.out.(*streamable); web && c.era == Modern {
		tools = slices.DeleteFunc(tools, badlyAnnotated)
	}
	c.mu.Lock()
	c.tools = tools
	c.mu.Unlock()
	return nil
}

// List returns a list of the server's as it sent the items, starting the
// server if need be.
func (s *Server) List(ctx context.Context, kind call.Kind) ([]json.RawMessage, error) {
	c, err := s.ready(ctx)
	if err != nil {
		return nil, err
	}
	if kind == call.Tools {
		return c.listed(), nil
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
	items, err = c.pages(ctx, kind)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes != changes { // while it was read
		return items, nil
	}
	if c.lists == nil {
		c.lists = map[call.Kind][]json.RawMessage{}
	}
	c.lists[kind] = items
	return items, nil
}

// pages fetches all pages of a list.
func (c *conn) pages(ctx context.Context, kind call.Kind) ([]json.RawMessage, error) {
	method, capability := listing(kind)
	if !c.offers.has(capability, "") {
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
		raw, err := c.ask(ctx, method, params)
		var refused *call.MCPError
		if errors.As(err, &refused) && refused.Code == jsonrpc.CodeMethodNotFound {
			return items, nil // it declared them and has none
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
		if seen[next] { // the end, or a server that goes round in circles
			return items, nil
		}
		cursor, seen[next] = next, true
	}
	return nil, toolerr.New(toolerr.LimitReached, "the server's list of %s has more than %d pages", kind, maxPages)
}

func readPage(raw json.RawMessage, kind call.Kind) (items []json.RawMessage, next string, err error) {
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

// Forward carries out a message, starting the server if need be; see Handle.
func (s *Server) Forward(ctx context.Context, m *call.Message) (json.RawMessage, error) {
	if s.cfg.Scope != Shared && m.Caller.ID != "" { // else it is the host's own
		one, leave, err := s.of(m.Caller.ID)
		if err != nil {
			return nil, s.lost(ctx, m.Method, call.PhaseConnect, err)
		}
		defer leave()
		return one.Forward(ctx, m)
	}
	for attempt := 0; ; attempt++ {
		c, err := s.ready(ctx)
		if err != nil {
			return nil, s.lost(ctx, m.Method, call.PhaseConnect, err)
		}
		if result, done, err := s.subscription(c, m); done || err != nil {
			return result, err
		}
		a, err := c.carry(ctx, request{method: m.Method, params: m.Params, caller: m.Caller, notify: m.OnNotify, ask: m.Ask})
		if errors.Is(err, errNotSent) && attempt < 2 {
			select { // it had died before: nothing was lost
			case <-c.dead:
				continue
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		if err != nil {
			return nil, s.lost(ctx, m.Method, call.PhaseExecute, err)
		}
		s.worked(c)
		return a.result, nil
	}
}

// Offers reports whether a server that has been started declared a
// capability. It starts the server if need be.
func (s *Server) Offers(ctx context.Context, capability string) bool {
	c, err := s.ready(ctx)
	return err == nil && c.offers.has(capability, "")
}

// OnNotification sets what is told of notifications that belong to no
// request: list changes but those of tools, updates of resources, the ends of
// what was asked at an address, and log messages. It is called by the goroutine that reads and must not block. Call
// it before first use.
func (s *Server) OnNotification(f func(method string, params json.RawMessage)) { s.cfg.tell = f }

// subscription handles resources/subscribe and resources/unsubscribe: it
// remembers them for the next start, and makes of them what a modern server
// knows instead. A legacy server is still to be sent the message.
func (s *Server) subscription(c *conn, m *call.Message) (result json.RawMessage, done bool, err error) {
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
	if on && s.watched == nil {
		s.watched = map[string]bool{}
	}
	if on {
		s.watched[p.URI] = true
	} else {
		delete(s.watched, p.URI)
	}
	s.mu.Unlock()
	if c.era != Modern {
		return nil, !c.offers.has("resources", "subscribe"), nil
	}
	s.listen(c)
	return nil, true, nil
}

// SetLogLevel asks for log messages of that level and above, now and after
// each start.
func (s *Server) SetLogLevel(level string) {
	s.mu.Lock()
	same := s.level == level
	s.level = level
	c := s.conn
	s.mu.Unlock()
	if !same && c != nil {
		c.setLevel(level)
	}
	for _, one := range s.visits.servers() {
		one.SetLogLevel(level)
	}
}

func (c *conn) setLevel(level string) {
	if c.era == Legacy && level != "" && c.offers.has("logging", "") {
		params := append(jsonrpc.AppendString([]byte(`{"level":`), level), '}')
		c.send(c.ownRequest(c.nextID.Add(1), "logging/setLevel", params)) // whether it does shows
	}
}

// resume gives a server that was started what others asked of it before.
func (s *Server) resume(c *conn) {
	s.mu.Lock()
	level, uris := s.level, sortedKeys(s.watched)
	s.mu.Unlock()
	if c.era == Modern {
		s.listen(c)
		return
	}
	c.setLevel(level)
	for _, uri := range uris {
		if c.offers.has("resources", "subscribe") {
			params := append(jsonrpc.AppendString([]byte(`{"uri":`), uri), '}')
			c.send(c.ownRequest(c.nextID.Add(1), "resources/subscribe", params))
		}
	}
}

// listen opens the stream on which a modern server tells what changes, in
// place of the one before.
func (s *Server) listen(c *conn) {
	want := map[string]any{}
	for _, kind := range []call.Kind{call.Tools, call.Resources, call.Prompts} {
		if c.offers.has(string(kind), "listChanged") {
			want[string(kind)+"ListChanged"] = true
		}
	}
	s.mu.Lock()
	if uris := sortedKeys(s.watched); len(uris) > 0 && c.offers.has("resources", "subscribe") {
		want["resourceSubscriptions"] = uris
	}
	s.mu.Unlock()
	raw, err := jsonrpc.Marshal(map[string]any{"notifications": want})
	if err != nil { // strings always encode
		return
	}
	c.mu.Lock()
	before := c.listen
	c.listen = 0
	if len(want) > 0 {
		c.listen = c.nextID.Add(1)
	}
	id := c.listen
	c.mu.Unlock()
	if id != 0 {
		c.send(c.ownRequest(id, "subscriptions/listen", raw))
	}
	if before != 0 {
		c.cancelled(before)
	}
}

func sortedKeys(set map[string]bool) []string {
	keys := make([]string, 0, len(set))
	for key := range set {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
