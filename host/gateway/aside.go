package gateway

import (
	"context"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/toolroom-mcp/toolroom/host/call"
)

// streams are the listen streams that are open, with their profiles.
type streams struct {
	mu   sync.Mutex
	open map[server.ClientSession]opened
}

type opened struct {
	profile string
	n       int // streams; on a pair of streams several belong to one session
}

func (s *streams) add(session server.ClientSession, profile string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[server.ClientSession]opened{}
	}
	s.open[session] = opened{profile, s.open[session].n + 1}
}

func (s *streams) remove(session server.ClientSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.open[session]
	if o.n--; o.n > 0 {
		s.open[session] = o
		return
	}
	delete(s.open, session)
}

// profileOf is the profile whose part of the catalogue a client is offered;
// "": all of it.
func profileOf(x exchange) string {
	switch x := x.(type) {
	case *httpExchange:
		return x.profile
	case stdio:
		if x.on != nil {
			return x.on.as.Profile
		}
	}
	return ""
}

// ChangedFor is Changed for the clients of some profiles.
func (g *Gateway) ChangedFor(kind call.Kind, concerns func(profile string) bool) {
	method := changeOf(kind)
	told := map[string]bool{}
	aside := false
	g.clients.mu.RLock()
	for _, c := range g.clients.byID {
		if told[c.session] = concerns(c.profile); !told[c.session] {
			aside = true
		}
	}
	g.clients.mu.RUnlock()
	listening := map[server.ClientSession]bool{}
	g.streams.mu.Lock()
	for session, o := range g.streams.open {
		if listening[session] = concerns(o.profile); !listening[session] {
			aside = true
		}
	}
	g.streams.mu.Unlock()
	if !aside {
		g.Changed(kind)
		return
	}
	for session, yes := range listening {
		if _, known := told[session.SessionID()]; yes && !known && wants(session, kind) {
			send(session, method, nil)
		}
	}
	for session, yes := range told {
		if yes {
			g.mcp.SendNotificationToSpecificClient(session, method, nil) //nolint:errcheck // one without a stream misses it
		}
	}
}

// wants reports whether a listen stream has asked for such changes.
func wants(session server.ClientSession, kind call.Kind) bool {
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

func changeOf(kind call.Kind) string {
	switch kind {
	case call.Resources, call.Templates:
		return mcp.MethodNotificationResourcesListChanged
	case call.Prompts:
		return mcp.MethodNotificationPromptsListChanged
	}
	return mcp.MethodNotificationToolsListChanged
}

// listen sees to a listen stream until it ends: it is told what concerns its
// profile, and is subscribed to the resources that its filter names. What is
// told before it is acknowledged would come first, which it must not.
func (g *Gateway) listen(ctx context.Context, uris []string) {
	session := server.ClientSessionFromContext(ctx)
	if session == nil {
		return
	}
	x := exchangeOf(ctx)
	acknowledged := x.acknowledged()
	if g.cfg.Forward == nil {
		uris = nil
	}
	uris = append([]string{}, uris...)
	go func() { // ends with the stream
		select {
		case <-acknowledged:
		case <-ctx.Done():
			return
		}
		g.streams.add(session, profileOf(x))
		defer g.streams.remove(session)
		g.watchAll(ctx, x, session, uris)
	}()
}

// watchAll subscribes a listen stream to resources until it ends.
func (g *Gateway) watchAll(ctx context.Context, x exchange, session server.ClientSession, uris []string) {
	id := g.watches.nextStream()
	for _, uri := range uris {
		of, original, ok := g.catalogOf(x).Locate(ctx, call.Resources, uri)
		if !ok || !g.watches.add(resource{of, original}, watch{id, uri, func(method string, params map[string]any) {
			send(session, method, params)
		}}) {
			continue // it will never change
		}
		g.forwardURI(ctx, "resources/subscribe", of, original) //nolint:errcheck // the same
	}
	<-ctx.Done()
	g.unwatch(id)
}
