package app

import (
	"encoding/json"

	"github.com/toolroom-mcp/toolroom/host/call"
	"github.com/toolroom-mcp/toolroom/host/catalog"
	"github.com/toolroom-mcp/toolroom/host/config"
	"github.com/toolroom-mcp/toolroom/host/gateway"
	"github.com/toolroom-mcp/toolroom/host/upstream"
)

// entry is a server as the catalogue sees it.
func (a *App) entry(s *upstream.Server, sc config.Server) catalog.Entry {
	if sc.Name == Custom && a.custom.server != nil {
		return a.customEntry(s)
	}
	return catalog.Entry{Source: s, Plain: sc.Bundled, Prefix: sc.Spec.Prefix, Filter: catalog.Filter(sc.Spec.Tools)}
}

// profile finds a part of the catalogue that is configured.
func (a *App) profile(name string) (gateway.Catalog, bool) {
	v, ok := a.present.Load().views[name]
	return v, ok
}

// changed tells the clients whose part of the catalogue a change is one of.
func (a *App) changed(c catalog.Change) {
	views := a.present.Load().views
	a.Gateway.ChangedFor(c.Kind, func(profile string) bool {
		v, ok := views[profile]
		return !ok || c.Concerns(v)
	})
}

// changedProfiles tells the clients of profiles that are others than before.
func (a *App) changedProfiles(before, now *present) {
	for _, kind := range []call.Kind{call.Tools, call.Resources, call.Templates, call.Prompts} {
		for name, v := range now.views {
			if old, ok := before.views[name]; ok && old != v && !old.Same(v, kind) {
				a.Gateway.ChangedFor(kind, func(profile string) bool { return profile == name })
			}
		}
	}
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
	a.level.Store(&level)
	for _, s := range a.Servers() {
		s.SetLogLevel(level)
	}
}
