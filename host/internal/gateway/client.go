package gateway

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/mark3labs/mcp-go/server"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// client is what a legacy client said in its handshake and since.
type client struct {
	session string // mcp-go's id of it
	profile string
	user    string // who signed in; "": nobody
	caps    json.RawMessage
	level   string // of log messages; "": never set
}

// clients are the legacy clients, by the identity their requests have.
type clients struct {
	mu   sync.RWMutex
	byID map[string]client
}

func (c *clients) get(id string) client {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.byID[id]
}

func (c *clients) set(id string, to client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byID == nil {
		c.byID = map[string]client{}
	}
	c.byID[id] = to
}

func (c *clients) delete(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byID, id)
}

// greet remembers who has opened a legacy session.
func (g *Gateway) greet(ctx context.Context) {
	x := exchangeOf(ctx)
	session := server.ClientSessionFromContext(ctx)
	if session == nil {
		return
	}
	c := client{session: session.SessionID(), profile: profileOf(x)}
	id := x.identity()
	if x, ok := x.(*httpExchange); ok {
		c.user = x.user
		if c.session == "" {
			return // without a session nothing can be said about the next request
		}
		id = sessionIdentity(c.session)
	}
	members, err := jsonrpc.Members(x.params())
	if err != nil { // mcp-go has read them otherwise; then nothing is declared
		members = nil
	}
	for _, m := range members {
		if m.Name == "capabilities" {
			c.caps = slices.Clone(m.Value)
		}
	}
	g.clients.set(id, c)
}

// forget ends what goes on for a client that is gone.
func (g *Gateway) forget(id string) {
	g.clients.delete(id)
	g.unwatch(id)
	g.parked.endOf(id)
}

// caller says who makes a request.
func (g *Gateway) caller(x exchange, f front, modern bool) call.Caller {
	c := call.Caller{Door: x.door(), Modern: modern, ID: x.identity()}
	switch x := x.(type) {
	case *httpExchange:
		c.Profile, c.Account, c.User = x.profile, Account(x.remote), x.user
		if x.user != "" {
			c.Account = "user " + x.user
		}
	case stdio:
		x.on.name(&c)
	}
	if modern {
		c.Capabilities, c.LogLevel = f.caps, f.level
		return c
	}
	known := g.clients.get(x.identity())
	c.Capabilities, c.LogLevel = known.caps, known.level
	return c
}

// declaresAny reports whether a client has declared that it answers any
// question.
func declaresAny(caps json.RawMessage) bool {
	for _, name := range []string{"elicitation", "sampling", "roots"} {
		if capability(caps, name) != nil {
			return true
		}
	}
	return false
}

// capability returns what a client declared under a name; nil: nothing.
func capability(caps json.RawMessage, name string) json.RawMessage {
	if len(caps) <= len(`{}`) {
		return nil
	}
	members, err := jsonrpc.Members(caps)
	if err != nil {
		return nil
	}
	for _, m := range members {
		if m.Name == name && string(m.Value) != "null" {
			return m.Value
		}
	}
	return nil
}

// declared says why a client must not be asked that.
func declared(caps json.RawMessage, method string, params json.RawMessage) error {
	var name, option string
	switch method {
	case "elicitation/create":
		name = "elicitation"
		var p struct {
			Mode string `json:"mode"`
		}
		if json.Unmarshal(params, &p) == nil && p.Mode == "url" {
			option = "url"
		}
	case "sampling/createMessage":
		name = "sampling"
	case "roots/list":
		name = "roots"
	}
	of := capability(caps, name)
	if of != nil && (option == "" || capability(of, option) != nil) {
		return nil
	}
	what := name
	if option != "" {
		what += "." + option
	}
	object := jsonrpc.AppendString([]byte(`{"code":-32601,"message":`), "the client has not declared that it supports "+what)
	return clientError(append(object, '}'))
}

// The levels of log messages, the least first.
var levels = [...]string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

func severity(level string) int { return slices.Index(levels[:], level) }

// admitting passes on the notifications that the caller wants: a log message
// only from its level on. A modern client that names none wants none.
func admitting(caller call.Caller, notify func(string, json.RawMessage)) func(string, json.RawMessage) {
	return func(method string, params json.RawMessage) {
		if method == "notifications/message" && !admits(caller.LogLevel, params, caller.Modern) {
			return
		}
		notify(method, params)
	}
}

func admits(level string, params json.RawMessage, modern bool) bool {
	if level == "" {
		return !modern
	}
	var p struct {
		Level string `json:"level"`
	}
	return json.Unmarshal(params, &p) == nil && severity(p.Level) >= severity(level)
}

// setLevel answers logging/setLevel.
func (g *Gateway) setLevel(ctx context.Context, level string) {
	id := exchangeOf(ctx).identity()
	c := g.clients.get(id)
	c.level = level
	if c.session != "" { // else it will not be known again
		g.clients.set(id, c)
	}
	if g.cfg.OnLogLevel == nil {
		return
	}
	least := level
	g.clients.mu.RLock()
	for _, other := range g.clients.byID {
		if other.level != "" && severity(other.level) < severity(least) {
			least = other.level
		}
	}
	g.clients.mu.RUnlock()
	g.cfg.OnLogLevel(least)
}
