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

// maxSubscriptions bounds the resource subscriptions of all clients together.
const maxSubscriptions = 10_000

// subscriptions holds the resources to which clients have subscribed.
type subscriptions struct {
	mu      sync.Mutex
	all     map[resource][]subscription
	n       int
	streams int // number of subscription streams so far
}

// nextStreamID returns a new id for the subscriptions of a stream.
func (w *subscriptions) nextStreamID() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.streams++
	return "listen:" + strconv.Itoa(w.streams)
}

// resource identifies a resource by its server and the server's own URI.
type resource struct{ server, uri string }

// subscription is the subscription of one client to one resource.
type subscription struct {
	id     string // id of the client or of the subscription stream
	uri    string // the URI in the client's request
	notify func(method string, params map[string]any)
}

// add stores a subscription unless the client has it already. It returns false if there
// are maxSubscriptions.
func (w *subscriptions) add(r resource, s subscription) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.ContainsFunc(w.all[r], func(have subscription) bool { return have.id == s.id && have.uri == s.uri }) {
		return true
	}
	if w.n >= maxSubscriptions {
		return false
	}
	if w.all == nil {
		w.all = map[resource][]subscription{}
	}
	w.all[r] = append(w.all[r], s)
	w.n++
	return true
}

// remove removes the subscriptions for which match returns true. It returns the
// resources without any remaining subscription.
func (w *subscriptions) remove(match func(resource, subscription) bool) (free []resource) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for r, list := range w.all {
		before := len(list)
		list = slices.DeleteFunc(list, func(one subscription) bool { return match(r, one) })
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

// subscribersOf returns the subscriptions to a resource.
func (w *subscriptions) subscribersOf(r resource) []subscription {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.all[r])
}

// NotifyResourceUpdated notifies the subscribers of a server's resource that it has
// changed, each with its subscribed URI. params are the params of the server's
// notification; malformed ones are ignored.
func (g *Gateway) NotifyResourceUpdated(server string, params json.RawMessage) {
	members, err := jsonrpc.Members(params)
	if err != nil {
		return
	}
	fields := map[string]any{}
	var uri string
	for _, m := range members {
		switch {
		case m.Name == "_meta": // the host sets the subscription id
		case m.Name == "uri":
			if json.Unmarshal(m.Value, &uri) != nil {
				return
			}
		default:
			fields[m.Name] = m.Value
		}
	}
	for _, w := range g.subscriptions.subscribersOf(resource{server, uri}) {
		own := make(map[string]any, len(fields)+1)
		for name, value := range fields {
			own[name] = value
		}
		own["uri"] = w.uri
		w.notify(mcp.MethodNotificationResourceUpdated, own)
	}
}

// subscribe handles resources/subscribe of a legacy client. It does nothing without a
// session.
func (g *Gateway) subscribe(ctx context.Context, uri string) {
	x := requestExchange(ctx)
	session := server.ClientSessionFromContext(ctx)
	if session == nil {
		return
	}
	id := session.SessionID()
	g.subscribeOne(ctx, x, x.identity(), uri, func(method string, params map[string]any) {
		g.mcp.SendNotificationToSpecificClient(id, method, params) //nolint:errcheck // a client without a stream misses it
	})
}

// subscribeOne subscribes the client id of x to one resource, and the host to it at the
// server. tell sends the updates. It answers x only with an error: for an unknown resource,
// too many subscriptions, or a refusal by the server.
func (g *Gateway) subscribeOne(ctx context.Context, x exchange, id, uri string, tell func(string, map[string]any)) {
	modern := server.IsModernRequest(ctx)
	of, original, ok := g.catalogOf(x).Locate(ctx, call.Resources, uri)
	if !ok {
		refuseNotFound(x, call.Resources, uri, modern)
		return
	}
	if !g.subscriptions.add(resource{of, original}, subscription{id, uri, tell}) {
		refuse(x, jsonrpc.CodeInternal, "too many subscriptions")
		return
	}
	if result, err := g.forwardURI(ctx, "resources/subscribe", of, original); err != nil {
		g.subscriptions.remove(func(r resource, w subscription) bool {
			return r == resource{of, original} && w.id == id && w.uri == uri
		})
		g.answerForwarded(x, "resources/subscribe", result, err, modern)
	}
}

// forwardURI sends a request with a server's own URI to the server and returns its result.
func (g *Gateway) forwardURI(ctx context.Context, method, server, uri string) (json.RawMessage, error) {
	params := append(jsonrpc.AppendString([]byte(`{"uri":`), uri), '}')
	return g.cfg.Forward(ctx, &call.UpstreamRequest{Server: server, Method: method, Params: params})
}

// unsubscribeClient handles resources/unsubscribe. It asks the server to stop notifications only
// if no other client has subscribed.
func (g *Gateway) unsubscribeClient(ctx context.Context, uri string) {
	id := requestExchange(ctx).identity()
	g.unsubscribeUpstream(ctx, g.subscriptions.remove(func(_ resource, w subscription) bool { return w.id == id && w.uri == uri }))
}

// unsubscribeUpstream unsubscribes the host from resources that no client subscribes
// to any more.
func (g *Gateway) unsubscribeUpstream(ctx context.Context, free []resource) {
	for _, r := range free {
		g.forwardURI(ctx, "resources/unsubscribe", r.server, r.uri) //nolint:errcheck // after a failure the server sends notifications that nobody needs
	}
}

// endSubscriptions ends the subscriptions of a client that has disconnected, and asks
// servers to stop notifications that nobody else needs. It waits at most unreadBodyTimeout for
// them.
func (g *Gateway) endSubscriptions(id string) {
	free := g.subscriptions.remove(func(_ resource, w subscription) bool { return w.id == id })
	if len(free) == 0 || g.cfg.Forward == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), unreadBodyTimeout)
	defer cancel()
	g.unsubscribeUpstream(ctx, free)
}
