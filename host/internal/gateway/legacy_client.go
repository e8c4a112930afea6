package gateway

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/server"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// legacyClient holds the data of a legacy client's handshake and its later settings.
type legacyClient struct {
	session string // mcp-go's id of the session
	profile string
	user    string // the signed-in user; "": none
	caps    json.RawMessage
	level   string // minimum level of log messages; "": not set
}

// owner returns the owner of the client's data.
func (c legacyClient) owner() call.Owner { return call.Owner{User: c.user, Profile: c.profile} }

// legacyClients holds the legacy clients by the identity of their requests.
type legacyClients struct {
	mu   sync.RWMutex
	byID map[string]legacyClient

	owners   call.Owners // of all clients so far, also of modern ones
	anyUsers atomic.Bool // users can sign in
}

// get returns what is recorded of a client, zero if nothing is. id is the identity of its
// requests.
func (c *legacyClients) get(id string) legacyClient {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.byID[id]
}

// set records the properties of the client with the identity id, and replaces earlier ones.
func (c *legacyClients) set(id string, to legacyClient) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byID == nil {
		c.byID = map[string]legacyClient{}
	}
	c.byID[id] = to
	c.recordOwner(to.owner())
}

// delete forgets the client with an identity.
func (c *legacyClients) delete(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byID, id)
}

// recordOwner records the owner of a client's data.
func (c *legacyClients) recordOwner(owner call.Owner) {
	if owner.User != "" && !c.anyUsers.Load() {
		c.anyUsers.Store(true)
	}
	c.owners.Add(owner)
}

// areMixed reports whether users can sign in, or clients with different profiles have sent
// requests, including clients that have left since: a server may still work for them.
func (c *legacyClients) areMixed() bool { return c.anyUsers.Load() || c.owners.AreSeveral() }

// recordLegacyClient stores the profile, user and capabilities of a legacy client when its
// session begins. It does nothing for an HTTP client without a session id.
func (g *Gateway) recordLegacyClient(ctx context.Context) {
	x := requestExchange(ctx)
	session := server.ClientSessionFromContext(ctx)
	if session == nil {
		return
	}
	c := legacyClient{session: session.SessionID(), profile: profileOf(x)}
	id := x.identity()
	if x, ok := x.(*httpExchange); ok {
		c.user = x.user
		if c.session == "" {
			return // without a session id, later requests cannot be attributed to the client
		}
		id = sessionIdentity(c.session)
	}
	if x, ok := x.(stdioExchange); ok && x.delegation != nil {
		c.user = x.delegation.as.User
	}
	members, err := jsonrpc.Members(x.params())
	if err != nil { // mcp-go has accepted the parameters; treat them as without capabilities
		members = nil
	}
	for _, m := range members {
		if m.Name == "capabilities" {
			c.caps = slices.Clone(m.Value)
		}
	}
	g.clients.set(id, c)
}

// forgetLegacyClient removes a client that has disconnected, ends its subscriptions and
// cancels its parked jobs.
func (g *Gateway) forgetLegacyClient(id string) {
	g.clients.delete(id)
	g.endSubscriptions(id)
	g.parked.endJobsOf(id)
}

// newCaller returns the caller of a request, with the client's capabilities and log level:
// from the request of a modern client, or as recorded of a legacy one.
func (g *Gateway) newCaller(x exchange, f requestParams, modern bool) call.Caller {
	c := call.Caller{EntryPoint: x.entryPoint(), Modern: modern, ID: x.identity()}
	switch x := x.(type) {
	case *httpExchange:
		c = x.caller()
		c.Modern = modern
	case stdioExchange:
		x.delegation.applyTo(&c)
	}
	if modern {
		g.clients.recordOwner(c.Owner())
		c.Capabilities, c.LogLevel = f.caps, f.level
		return c
	}
	known := g.clients.get(x.identity())
	c.Capabilities, c.LogLevel = known.caps, known.level
	return c
}

// declaresAny reports whether a client declares a capability to answer questions.
func declaresAny(caps json.RawMessage) bool {
	for _, name := range []string{"elicitation", "sampling", "roots"} {
		if capability(caps, name) != nil {
			return true
		}
	}
	return false
}

// capability returns the value of a declared capability, nil if the client does not
// declare it.
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

// checkDeclared returns an error if the client does not declare the capability that a
// server's request needs.
func checkDeclared(caps json.RawMessage, method string, params json.RawMessage) error {
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

// The levels of log messages, least severe first.
var logLevels = [...]string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// severity returns the rank of a log level, -1 for an unknown one.
func severity(level string) int { return slices.Index(logLevels[:], level) }

// filterLogs wraps notify so that it drops log messages below the caller's level. A
// modern client that sets no level gets none.
func filterLogs(caller call.Caller, notify func(string, json.RawMessage)) func(string, json.RawMessage) {
	return func(method string, params json.RawMessage) {
		if method == "notifications/message" && !passesLevel(caller.LogLevel, params, caller.Modern) {
			return
		}
		notify(method, params)
	}
}

// passesLevel reports whether a log message reaches a client that set a level. Without
// a level, a legacy client gets all messages and a modern one none. A message with an
// unknown level reaches no client that set one.
func passesLevel(level string, params json.RawMessage, modern bool) bool {
	if level == "" {
		return !modern
	}
	var p struct {
		Level string `json:"level"`
	}
	return json.Unmarshal(params, &p) == nil && severity(p.Level) >= severity(level)
}

// setLevel handles logging/setLevel: it stores the client's level, and calls
// Config.OnLogLevel with the most detailed level that a client wants.
func (g *Gateway) setLevel(ctx context.Context, level string) {
	id := requestExchange(ctx).identity()
	c := g.clients.get(id)
	c.level = level
	if c.session != "" { // without a session id, later requests cannot be attributed to the client
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
