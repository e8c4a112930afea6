package gateway

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// Changed tells every client that listens that a list has changed.
func (g *Gateway) Changed(kind call.Kind) { g.mcp.SendNotificationToAllClients(changeOf(kind), nil) }

// maxWatches bounds the subscriptions of all clients together.
const maxWatches = 10_000

// watches are the resources that clients have subscribed to.
type watches struct {
	mu      sync.Mutex
	all     map[resource][]watch
	n       int
	streams int // listen streams so far
}

// nextStream is the id of a listen stream's watches.
func (w *watches) nextStream() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.streams++
	return "listen:" + strconv.Itoa(w.streams)
}

// resource is one of a server's, by its own URI.
type resource struct{ server, uri string }

// watch is one client's subscription.
type watch struct {
	id   string // of the client, or of a listen stream
	uri  string // as it subscribed
	tell func(method string, params map[string]any)
}

// add remembers a subscription, and reports false when there are too many.
func (w *watches) add(r resource, one watch) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.ContainsFunc(w.all[r], func(have watch) bool { return have.id == one.id && have.uri == one.uri }) {
		return true
	}
	if w.n >= maxWatches {
		return false
	}
	if w.all == nil {
		w.all = map[resource][]watch{}
	}
	w.all[r] = append(w.all[r], one)
	w.n++
	return true
}

// remove forgets those subscriptions that match, and returns the resources
// that nobody watches any more.
func (w *watches) remove(match func(resource, watch) bool) (free []resource) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for r, list := range w.all {
		before := len(list)
		list = slices.DeleteFunc(list, func(one watch) bool { return match(r, one) })
		w.n -= before - len(list)
		w.all[r] = list
		if len(list) == 0 {
			delete(w.all, r)
			if before > 0 {
				free = append(free, r)
			}
		}
	}
	return free
}

func (w *watches) of(r resource) []watch {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.all[r])
}

// Updated tells who has subscribed to a server's resource that it has
// changed. params are those of the server's notification.
func (g *Gateway) Updated(server string, params json.RawMessage) {
	members, err := jsonrpc.Members(params)
	if err != nil {
		return
	}
	fields := map[string]any{}
	var uri string
	for _, m := range members {
		switch {
		case m.Name == "_meta": // the subscription id is the host's
		case m.Name == "uri":
			if json.Unmarshal(m.Value, &uri) != nil {
				return
			}
		default:
			fields[m.Name] = m.Value
		}
	}
	for _, w := range g.watches.of(resource{server, uri}) {
		own := make(map[string]any, len(fields)+1)
		for name, value := range fields {
			own[name] = value
		}
		own["uri"] = w.uri
		w.tell(mcp.MethodNotificationResourceUpdated, own)
	}
}

// Logged passes a server's log message that belongs to no request to the
// legacy clients that want it.
func (g *Gateway) Logged(params json.RawMessage) {
	fields, ok := fieldsOf(params)
	if !ok {
		return
	}
	for _, session := range g.sessionsOf(func(c client) bool { return admits(c.level, params, false) }) {
		g.mcp.SendNotificationToSpecificClient(session, "notifications/message", fields) //nolint:errcheck // one without a stream misses it
	}
}

// fieldsOf are a notification's parameters as mcp-go takes them.
func fieldsOf(params json.RawMessage) (map[string]any, bool) {
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

// Completed tells the legacy clients that can be asked at an address that what a
// server asked there is done. Whose it was it does not say: clients do not heed
// what they were not asked.
func (g *Gateway) Completed(params json.RawMessage) {
	fields, ok := fieldsOf(params)
	if !ok {
		return
	}
	for _, session := range g.sessionsOf(func(c client) bool {
		return declared(c.caps, "elicitation/create", json.RawMessage(`{"mode":"url"}`)) == nil
	}) {
		g.mcp.SendNotificationToSpecificClient(session, string(mcp.MethodNotificationElicitationComplete), fields) //nolint:errcheck // one without a stream misses it
	}
}

// sessionsOf are the legacy clients that are meant.
func (g *Gateway) sessionsOf(meant func(client) bool) (sessions []string) {
	g.clients.mu.RLock()
	defer g.clients.mu.RUnlock()
	for _, c := range g.clients.byID {
		if meant(c) {
			sessions = append(sessions, c.session)
		}
	}
	return sessions
}

// subscribe answers resources/subscribe.
func (g *Gateway) subscribe(ctx context.Context, uri string) {
	x := exchangeOf(ctx)
	session := server.ClientSessionFromContext(ctx)
	if session == nil {
		return
	}
	id := session.SessionID()
	g.watchOne(ctx, x, x.identity(), uri, func(method string, params map[string]any) {
		g.mcp.SendNotificationToSpecificClient(id, method, params) //nolint:errcheck // one without a stream misses it
	})
}

// watchOne subscribes a client to one resource.
func (g *Gateway) watchOne(ctx context.Context, x exchange, id, uri string, tell func(string, map[string]any)) {
	modern := server.IsModernRequest(ctx)
	of, original, ok := g.catalogOf(x).Locate(ctx, call.Resources, uri)
	if !ok {
		notFound(x, call.Resources, uri, modern)
		return
	}
	if !g.watches.add(resource{of, original}, watch{id, uri, tell}) {
		refuse(x, jsonrpc.CodeInternal, "too many subscriptions")
		return
	}
	if result, err := g.forwardURI(ctx, "resources/subscribe", of, original); err != nil {
		g.watches.remove(func(r resource, w watch) bool { return r == resource{of, original} && w.id == id && w.uri == uri })
		g.reply(x, "resources/subscribe", result, err, modern)
	}
}

func (g *Gateway) forwardURI(ctx context.Context, method, server, uri string) (json.RawMessage, error) {
	params := append(jsonrpc.AppendString([]byte(`{"uri":`), uri), '}')
	return g.cfg.Forward(ctx, &call.Message{Server: server, Method: method, Params: params})
}

// unsubscribe answers resources/unsubscribe.
func (g *Gateway) unsubscribe(ctx context.Context, uri string) {
	id := exchangeOf(ctx).identity()
	g.release(ctx, g.watches.remove(func(_ resource, w watch) bool { return w.id == id && w.uri == uri }))
}

// release tells the servers that nobody watches their resources any more.
func (g *Gateway) release(ctx context.Context, free []resource) {
	for _, r := range free {
		g.forwardURI(ctx, "resources/unsubscribe", r.server, r.uri) //nolint:errcheck // it only tells more than is wanted
	}
}

// unwatch ends the subscriptions of a client that is gone.
func (g *Gateway) unwatch(id string) {
	free := g.watches.remove(func(_ resource, w watch) bool { return w.id == id })
	if len(free) == 0 || g.cfg.Forward == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lateBody)
	defer cancel()
	g.release(ctx, free)
}

// send gives a notification to a listen stream. One whose client does not
// read misses it.
func send(session server.ClientSession, method string, params map[string]any) {
	n := mcp.JSONRPCNotification{JSONRPC: mcp.JSONRPC_VERSION, Notification: mcp.Notification{
		Method: method, Params: mcp.NotificationParams{AdditionalFields: params},
	}}
	select {
	case session.NotificationChannel() <- n:
	default:
	}
}
