package gateway

import (
	"context"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// keepAliveInterval is the interval of pings on the open event streams of clients.
const keepAliveInterval = 30 * time.Second

// subscriptionStreams holds the open streams of subscriptions/listen.
type subscriptionStreams struct {
	mu   sync.Mutex
	open map[*subscriptionStream]bool
}

// subscriptionStream is an open stream. A change before the stream is acknowledged is
// recorded in missed and sent afterwards.
type subscriptionStream struct {
	session server.ClientSession
	profile string
	acked   bool
	missed  map[call.ListKind]bool
}

// add registers an open stream, until remove.
func (s *subscriptionStreams) add(stream *subscriptionStream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[*subscriptionStream]bool{}
	}
	s.open[stream] = true
}

// acknowledge marks the stream as acknowledged and returns the changes that it missed.
func (s *subscriptionStreams) acknowledge(stream *subscriptionStream) map[call.ListKind]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	stream.acked = true
	return stream.missed
}

// remove forgets a stream that has ended.
func (s *subscriptionStreams) remove(stream *subscriptionStream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, stream)
}

// recipients returns the sessions to notify of a changed list, among the streams of the
// profiles for which affects returns true. Streams that are not acknowledged get the
// change later. all is true if every client is to be notified: with onlySome false and
// every open stream affected; then mcp-go sends the notification, also to a stream that is
// not acknowledged yet.
func (s *subscriptionStreams) recipients(kind call.ListKind, onlySome bool, affects func(profile string) bool) (sessions map[server.ClientSession]bool, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for one := range s.open {
		onlySome = onlySome || !affects(one.profile)
	}
	if !onlySome {
		return nil, true
	}
	sessions = map[server.ClientSession]bool{}
	for one := range s.open {
		switch {
		case !affects(one.profile):
		case one.acked:
			sessions[one.session] = true
		case one.missed == nil:
			one.missed = map[call.ListKind]bool{kind: true}
		default:
			one.missed[kind] = true
		}
	}
	return sessions, false
}

// profileOf returns the profile that a client uses, "" for the whole catalog.
func profileOf(x exchange) string {
	switch x := x.(type) {
	case *httpExchange:
		return x.profile
	case stdioExchange:
		if x.delegation != nil {
			return x.delegation.as.Profile
		}
	}
	return ""
}

// NotifyListChangedFor sends list_changed to the clients of the profiles for which affects
// returns true; "" is the whole catalog.
func (g *Gateway) NotifyListChangedFor(kind call.ListKind, affects func(profile string) bool) {
	method := listChangedMethod(kind)
	told := map[string]bool{}
	aside := false
	g.clients.mu.RLock()
	for _, c := range g.clients.byID {
		if told[c.session] = affects(c.profile); !told[c.session] {
			aside = true
		}
	}
	g.clients.mu.RUnlock()
	listening, all := g.subscriptionStreams.recipients(kind, aside, affects)
	if all {
		g.NotifyListChanged(kind)
		return
	}
	for session := range listening {
		if _, known := told[session.SessionID()]; !known && listensTo(session, kind) {
			sendToStream(session, method, nil)
		}
	}
	for session, yes := range told {
		if yes {
			g.mcp.SendNotificationToSpecificClient(session, method, nil) //nolint:errcheck // a client without a stream misses it
		}
	}
}

// listensTo reports whether a subscription stream asks for changes of this kind.
func listensTo(session server.ClientSession, kind call.ListKind) bool {
	s, ok := session.(server.SessionWithSubscriptionFilter)
	if !ok {
		return true
	}
	filter, active := s.SubscriptionFilter()
	if !active {
		return true
	}
	switch kind {
	case call.Resources, call.Templates:
		return filter.ResourcesListChanged
	case call.Prompts:
		return filter.PromptsListChanged
	}
	return filter.ToolsListChanged
}

// listChangedMethod returns the method of the notification for a changed list.
func listChangedMethod(kind call.ListKind) string {
	switch kind {
	case call.Resources, call.Templates:
		return mcp.MethodNotificationResourcesListChanged
	case call.Prompts:
		return mcp.MethodNotificationPromptsListChanged
	}
	return mcp.MethodNotificationToolsListChanged
}

// serveSubscriptionStream starts to serve a subscription stream and returns. Until the
// stream ends, it notifies the client of changes in its profile and of the resources in
// uris. Notifications before the acknowledgement are held back, since the acknowledgement
// must come first.
func (g *Gateway) serveSubscriptionStream(ctx context.Context, uris []string) {
	session := server.ClientSessionFromContext(ctx)
	if session == nil {
		return
	}
	x := requestExchange(ctx)
	acknowledged := x.acknowledged()
	if g.cfg.Forward == nil {
		uris = nil
	}
	uris = append([]string{}, uris...)
	one := &subscriptionStream{session: session, profile: profileOf(x)}
	g.subscriptionStreams.add(one)
	ctx, cancel := context.WithCancelCause(ctx)
	g.background.runTracked(cancel, func() { // ends with the stream
		defer cancel(nil)
		defer g.subscriptionStreams.remove(one)
		select {
		case <-acknowledged:
		case <-ctx.Done():
			return
		}
		for kind := range g.subscriptionStreams.acknowledge(one) {
			if listensTo(session, kind) {
				sendToStream(session, listChangedMethod(kind), nil)
			}
		}
		g.subscribeStream(ctx, x, session, uris)
	})
}

// subscribeStream subscribes a stream to resources, waits until the stream ends, and ends
// the subscriptions. Resources that no server has are ignored.
func (g *Gateway) subscribeStream(ctx context.Context, x exchange, session server.ClientSession, uris []string) {
	id := g.subscriptions.nextStreamID()
	for _, uri := range uris {
		of, original, ok := g.catalogOf(x).Locate(ctx, call.Resources, uri)
		if !ok || !g.subscriptions.add(resource{of, original}, subscription{id, uri, func(method string, params map[string]any) {
			sendToStream(session, method, params)
		}}) {
			continue // such a resource never changes
		}
		g.forwardURI(ctx, "resources/subscribe", of, original) //nolint:errcheck // a failed subscription sends no updates
	}
	<-ctx.Done()
	g.endSubscriptions(id)
}

// sendToStream queues a notification for a subscription stream. If the queue is full,
// because the client does not read, the notification is lost.
func sendToStream(session server.ClientSession, method string, params map[string]any) {
	n := mcp.JSONRPCNotification{JSONRPC: mcp.JSONRPC_VERSION, Notification: mcp.Notification{
		Method: method, Params: mcp.NotificationParams{AdditionalFields: params},
	}}
	select {
	case session.NotificationChannel() <- n:
	default:
	}
}
