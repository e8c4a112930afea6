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

// offer makes what clients are offered: the whole catalogue and each profile's
// part. What is as before stays, with what is known of it.
func (a *App) offer(now, before *present) {
	keep := func(name string, view func() *catalog.View, same bool) *toolsearch.Offer {
		var old *toolsearch.Offer
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

// profile finds a part of the catalogue that is configured.
func (a *App) profile(name string) (gateway.Catalog, bool) {
	v, ok := a.present.Load().views[name]
	return v, ok
}

// joined finds what agents are served that a call has started: as profile, and
// nothing stands in for anything.
func (a *App) joined(name string) (gateway.Catalog, bool) {
	v, ok := a.present.Load().views[name]
	if !ok {
		return nil, false
	}
	return v.View(), true
}

// changed tells the clients whose part of the catalogue a change is one of.
func (a *App) changed(c catalog.Change) {
	views := a.present.Load().views
	a.Gateway.ChangedFor(c.Kind, func(profile string) bool {
		v, ok := views[profile]
		return !ok || v.Concerns(c)
	})
}

// changedOffers tells the clients of what is offered otherwise than before.
func (a *App) changedOffers(before, now *present) {
	for _, kind := range []call.Kind{call.Tools, call.Resources, call.Templates, call.Prompts} {
		for name, v := range now.views {
			if old, ok := before.views[name]; ok && old != v && !old.Same(v, kind) {
				a.Gateway.ChangedFor(kind, func(profile string) bool { return profile == name })
			}
		}
	}
}

// whole is what a client without a profile is offered, as the configuration is
// when it asks.
type whole struct{ app *App }

func (w whole) now() *toolsearch.Offer { return w.app.present.Load().views[""] }

func (w whole) Lookup(ctx context.Context, name string) (*call.Tool, bool) {
	return w.now().Lookup(ctx, name)
}

func (w whole) List(ctx context.Context, kind call.Kind, modern bool) json.RawMessage {
	return w.now().List(ctx, kind, modern)
}

func (w whole) Locate(ctx context.Context, kind call.Kind, name string) (server, original string, ok bool) {
	return w.now().Locate(ctx, kind, name)
}

func (w whole) IsMetaTool(name string) bool { return w.now().IsMetaTool(name) }

func (w whole) Resolve(ctx context.Context, name string, arguments json.RawMessage) (result json.RawMessage, tool *call.Tool, args json.RawMessage, err error) {
	return w.now().Resolve(ctx, name, arguments)
}
