package core

import (
	"encoding/json"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
)

// entry is a server as the catalogue sees it.
func (a *App) entry(s *upstream.Server, sc config.Server) catalog.Entry {
	if sc.Name == Custom && a.custom.server != nil {
		return a.customEntry(s)
	}
	source := catalog.Source(s)
	if needsModel(sc) {
		source = modelSource{s, a}
	} else if _, ok := sc.SignIn(a.Config.State, a.version); ok {
		source = &signInSource{Server: s}
	}
	return catalog.Entry{Source: source, Plain: sc.Bundled, Prefix: sc.Spec.Prefix, Filter: catalog.Filter(sc.Spec.Tools)}
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
		case "notifications/elicitation/complete":
			a.Gateway.Completed(params)
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
