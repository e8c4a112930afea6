package core

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog/toolsearch"
	"github.com/toolroom-mcp/toolroom/host/internal/gateway"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/tokens"
)

// updateViews builds the views of a snapshot: the whole catalog and each profile. It
// reuses unchanged views with their cached data.
func (a *App) updateViews(now, before *snapshot) {
	keep := func(name string, view func() *catalog.View, same bool) *toolsearch.List {
		var old *toolsearch.List
		if before != nil && same {
			old = before.views[name]
		}
		switch {
		case old == nil:
			return toolsearch.New(now.cfg.Offer, view(), tokens.EstimateJSON)
		case !reflect.DeepEqual(before.cfg.Offer, now.cfg.Offer):
			return toolsearch.New(now.cfg.Offer, old.View(), tokens.EstimateJSON)
		}
		return old
	}
	now.views[""] = keep("", a.Catalog.View, true)
	for _, p := range now.cfg.Profiles {
		same := before != nil && slices.ContainsFunc(before.cfg.Profiles, func(old catalog.Profile) bool { return reflect.DeepEqual(old, p) })
		now.views[p.Name] = keep(p.Name, func() *catalog.View { return a.Catalog.Profile(p) }, same)
	}
}

// profile returns the catalog view of a configured profile; false if none exists. See
// gateway.Config.Profile.
func (a *App) profile(name string) (gateway.Catalog, bool) {
	v, ok := a.snapshot.Load().views[name]
	return v, ok
}

// delegatedCatalog returns the catalog view of a profile for agents, without meta-tools,
// and false for an unknown profile; see gateway.Config.DelegatedCatalog.
func (a *App) delegatedCatalog(name string) (gateway.Catalog, bool) {
	v, ok := a.snapshot.Load().views[name]
	if !ok {
		return nil, false
	}
	return v.View(), true
}

// onCatalogChange sends list_changed to the clients whose view a catalog change affects.
func (a *App) onCatalogChange(c catalog.Change) {
	views := a.snapshot.Load().views
	a.Gateway.NotifyListChangedFor(c.Kind, func(profile string) bool {
		v, ok := views[profile]
		return !ok || v.IsAffectedBy(c)
	})
}

// notifyChangedViews sends list_changed to the clients whose view differs between the two
// snapshots.
func (a *App) notifyChangedViews(before, now *snapshot) {
	for _, kind := range []call.ListKind{call.Tools, call.Resources, call.Templates, call.Prompts} {
		for name, v := range now.views {
			if old, ok := before.views[name]; ok && old != v && !old.HasSameList(v, kind) {
				a.Gateway.NotifyListChangedFor(kind, func(profile string) bool { return profile == name })
			}
		}
	}
}

// The gateway takes a catalog without these methods for a catalog without meta-tools.
var _, _ gateway.MetaTools = (*toolsearch.List)(nil), currentCatalog{}

var _ gateway.Explainer = currentCatalog{}

// currentCatalog is the view of clients without a profile, in the current configuration.
type currentCatalog struct{ app *App }

// view returns the list of the whole catalog in the current snapshot.
func (w currentCatalog) view() *toolsearch.List { return w.app.snapshot.Load().views[""] }

// Lookup implements gateway.Catalog.
func (w currentCatalog) Lookup(ctx context.Context, name string) (*call.Tool, bool) {
	return w.view().Lookup(ctx, name)
}

// List implements gateway.Catalog.
func (w currentCatalog) List(ctx context.Context, kind call.ListKind, modern bool) json.RawMessage {
	return w.view().List(ctx, kind, modern)
}

// Locate implements gateway.Catalog.
func (w currentCatalog) Locate(ctx context.Context, kind call.ListKind, name string) (server, original string, ok bool) {
	return w.view().Locate(ctx, kind, name)
}

// WhyUnavailable implements gateway.Explainer.
func (w currentCatalog) WhyUnavailable(ctx context.Context, name string) error {
	return w.app.WhyUnavailable(ctx, name)
}

// IsMetaTool implements gateway.MetaTools.
func (w currentCatalog) IsMetaTool(name string) bool { return w.view().IsMetaTool(name) }

// CallMetaTool implements gateway.MetaTools.
func (w currentCatalog) CallMetaTool(ctx context.Context, name string, arguments json.RawMessage) (result json.RawMessage, tool *call.Tool, args json.RawMessage, err error) {
	return w.view().CallMetaTool(ctx, name, arguments)
}
