package core

import (
	"encoding/json"
	"slices"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
)

// sourceConfigOf returns the catalog entry of a server. If the tools depend on a model or on
// a sign-in, the source is a modelSource or signInSource.
func (a *App) sourceConfigOf(s *upstream.Server, sc config.Server) catalog.SourceConfig {
	if sc.Name == GoToolServer && a.goTools.server != nil {
		return a.goToolSourceConfig(s)
	}
	source := catalog.Source(s)
	if needsModel(sc) {
		source = modelSource{s, a}
	} else if _, ok := sc.SignIn(a.tokenStorage(), a.version); ok {
		source = &signInSource{Server: s, perUser: a.usesCallerCredentials(sc)}
	}
	return catalog.SourceConfig{Source: source, Plain: sc.Bundled, Prefix: sc.Spec.Prefix, Filter: catalog.Filter(sc.Spec.Tools)}
}

// handleNotifications makes the catalog list a server again when the server says that a
// list has changed, passes its other notifications to the clients, and its failures to the
// user. perUser says that each user has own credentials: without those of a user, the server
// refuses the host, which is no failure.
func (a *App) handleNotifications(s *upstream.Server, perUser bool) {
	s.OnChange(func() { a.Catalog.Refresh(s.Name()) })
	s.OnFailure(func(reason string) {
		waitsForUser := perUser && slices.Contains([]upstream.State{upstream.NeedsSignIn, upstream.CredentialsRejected}, s.Status().State)
		if a.reportsFailures && !waitsForUser {
			a.notify("server " + s.Name() + ": " + reason)
		}
	})
	s.OnNotification(func(method string, params json.RawMessage, first *call.Owner) {
		switch method {
		case "notifications/resources/list_changed":
			a.Catalog.Refresh(s.Name(), call.Resources, call.Templates)
		case "notifications/prompts/list_changed":
			a.Catalog.Refresh(s.Name(), call.Prompts)
		case "notifications/resources/updated":
			a.Gateway.NotifyResourceUpdated(s.Name(), params)
		case "notifications/elicitation/complete":
			a.Gateway.NotifyElicitationComplete(s.Name(), params)
		case "notifications/message":
			a.Gateway.NotifyLog(params, first)
		}
	})
}

// setLogLevel requests log messages of this level and above from all servers, also from
// those that start later.
func (a *App) setLogLevel(level string) {
	a.logLevel.Store(&level)
	for _, s := range a.Servers() {
		s.SetLogLevel(level)
	}
}
