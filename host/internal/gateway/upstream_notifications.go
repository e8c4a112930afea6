package gateway

import (
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// NotifyListChanged sends list_changed of a kind to all clients. The list of templates is
// announced as resources.
func (g *Gateway) NotifyListChanged(kind call.ListKind) {
	g.mcp.SendNotificationToAllClients(listChangedMethod(kind), nil)
}

// NotifyLog sends a server's log message that belongs to no request to the legacy clients
// that want its level. first is the only owner whose requests the server has had: only this
// owner's clients get the message. first is nil if the server has had none; then all clients
// get it, unless they have different profiles. If users can sign in, nobody gets it.
func (g *Gateway) NotifyLog(params json.RawMessage, first *call.Owner) {
	fields, ok := paramsAsMap(params)
	if !ok || g.clients.anyUsers.Load() || first == nil && g.clients.areMixed() {
		return
	}
	for _, session := range g.legacySessions(func(c legacyClient) bool {
		return (first == nil || c.owner() == *first) && passesLevel(c.level, params, false)
	}) {
		g.mcp.SendNotificationToSpecificClient(session, "notifications/message", fields) //nolint:errcheck // a client without a stream misses it
	}
}

// paramsAsMap decodes a notification's parameters into the type that mcp-go takes, with
// the values still encoded. It returns false if they are not an object.
func paramsAsMap(params json.RawMessage) (map[string]any, bool) {
	members, err := jsonrpc.Members(params)
	if err != nil {
		return nil, false
	}
	fields := make(map[string]any, len(members))
	for _, m := range members {
		fields[m.Name] = m.Value
	}
	return fields, true
}

// NotifyElicitationComplete notifies the legacy client that was asked by a URL elicitation
// of a server that it is complete; server "" is the host itself. If it is unknown which client
// was asked, it notifies all that support URL elicitation, and clients ignore ids that they do
// not know; if users can sign in or clients have several profiles, it notifies none.
func (g *Gateway) NotifyElicitationComplete(server string, params json.RawMessage) {
	fields, ok := paramsAsMap(params)
	if !ok {
		return
	}
	asked := g.clients.get(g.elicited.take(server, params)).session
	if asked == "" && g.clients.areMixed() {
		return
	}
	for _, session := range g.legacySessions(func(c legacyClient) bool {
		return (asked == "" || c.session == asked) && checkDeclared(c.caps, "elicitation/create", json.RawMessage(`{"mode":"url"}`)) == nil
	}) {
		g.mcp.SendNotificationToSpecificClient(session, string(mcp.MethodNotificationElicitationComplete), fields) //nolint:errcheck // a client without a stream misses it
	}
}

// legacySessions returns the session ids of the legacy clients for which wants returns
// true.
func (g *Gateway) legacySessions(wants func(legacyClient) bool) (sessions []string) {
	g.clients.mu.RLock()
	defer g.clients.mu.RUnlock()
	for _, c := range g.clients.byID {
		if wants(c) {
			sessions = append(sessions, c.session)
		}
	}
	return sessions
}
