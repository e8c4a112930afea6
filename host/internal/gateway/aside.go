package gateway

import (
	"context"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// streams are the listen streams that are open.
type streams struct {
	mu   sync.Mutex
	open map[*stream]bool
}

// stream is one of them. What is to be told before it is acknowledged is told
// afterwards.
type stream struct {
	session server.ClientSession
	profile string
	acked   bool
	missed  map[call.Kind]bool
}

func (s *streams) add(one *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[*stream]bool{}
	}
	s.open[one] = true
}

// acknowledge returns what was missed.
func (s *streams) acknowledge(one *stream) map[call.Kind]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	one.acked = true
	return one.missed
}

func (s *streams) remove(one *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, one)
}

// concerned returns the sessions that are to be told now, unless all are:
// then a stream that was not acknowledged yet is told by mcp-go.
func (s *streams) concerned(kind call.Kind, aside bool, concerns func(profile string) bool) (sessions map[server.ClientSession]bool, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for one := range s.open {
		aside = aside || !concerns(one.profile)
	}
	if !aside {
		return nil, true
	}
	sessions = map[server.ClientSession]bool{}
	for one := range s.open {
		switch {
		case !concerns(one.profile):
		case one.acked:
			sessions[one.session] = true
		case one.missed == nil:
			one.missed = map[call.Kind]bool{kind: true}
		default:
			one.missed[kind] = true
		}
	}
	return sessions, false
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
	listening, all := g.streams.concerned(kind, aside, concerns)
	if all {
		g.Changed(kind)
		return
	}
	for session := range listening {
		if _, known := told[session.SessionID()]; !known && wants(session, kind) {
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
	one := &stream{session: session, profile: profileOf(x)}
	g.streams.add(one)
	ctx, cancel := context.WithCancelCause(ctx)
	g.owned.run(cancel, func() { // ends with the stream
		defer cancel(nil)
		defer g.streams.remove(one)
		select {
		case <-acknowledged:
		case <-ctx.Done():
			return
		}
		for kind := range g.streams.acknowledge(one) {
			if wants(session, kind) {
				send(session, changeOf(kind), nil)
			}
		}
		g.watchAll(ctx, x, session, uris)
	})
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
