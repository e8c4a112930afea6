package app

import (
	"context"
	"encoding/json"

	"github.com/toolroom-mcp/toolroom/host/call"
	"github.com/toolroom-mcp/toolroom/host/catalog"
	"github.com/toolroom-mcp/toolroom/host/config"
	"github.com/toolroom-mcp/toolroom/host/gateway"
	"github.com/toolroom-mcp/toolroom/host/upstream"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// entry is a server as the catalogue sees it.
func entry(s *upstream.Server, sc config.Server) catalog.Entry {
	return catalog.Entry{Source: s, Plain: sc.Bundled, Prefix: sc.Spec.Prefix, Filter: catalog.Filter(sc.Spec.Tools)}
}

// profiles finds the parts of the catalogue that are configured.
func (a *App) profiles() func(name string) (gateway.Catalog, bool) {
	views := map[string]*catalog.View{}
	for _, p := range a.Config.Profiles {
		views[p.Name] = a.Catalog.Profile(p)
	}
	return func(name string) (gateway.Catalog, bool) {
		v, ok := views[name]
		return v, ok
	}
}

// forward hands a message to its server.
func (a *App) forward(ctx context.Context, m *call.Message) (json.RawMessage, error) {
	s, ok := a.byName[m.Server]
	if !ok {
		return nil, toolerr.New(toolerr.ServerOffline, "server %s is not configured any more", m.Server)
	}
	return s.Forward(ctx, m)
}

// follow passes a server's notifications on to whom they concern.
func (a *App) follow(s *upstream.Server) {
	s.OnChange(func() { a.Catalog.Refresh(s.Name()) })
	s.OnNotification(func(method string, params json.RawMessage) {
		switch method {
		case "notifications/resources/list_changed":
			a.Catalog.Refresh(s.Name(), call.Resources, call.Templates)
		case "notifications/prompts/list_changed":
			a.Catalog.Refresh(s.Name(), call.Prompts)
		case "notifications/resources/updated":
			a.Gateway.Updated(s.Name(), params)
		case "notifications/message":
			a.Gateway.Logged(params)
		}
	})
}

// setLogLevel asks all servers for log messages of a level and above.
func (a *App) setLogLevel(level string) {
	for _, s := range a.servers {
		s.SetLogLevel(level)
	}
}
