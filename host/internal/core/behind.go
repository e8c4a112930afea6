package core

import (
	"maps"
	"slices"

	"github.com/toolroom-mcp/toolroom/host/internal/declared/manifest"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
)

// reach is what calls of a server's tools lead to.
type reach struct {
	sum   []byte   // fingerprint of how all of it is configured
	where []string // it is, for people
}

// behind is what calls of a server's tools lead to: the server itself and, if it
// is a declared tool, those that it calls in turn.
func (p *present) behind(server string) reach {
	if known, ok := p.reaches.Load(server); ok {
		return known.(reach) //nolint:errcheck // nothing else is in it
	}
	var of []any
	var r reach
	seen := map[string]bool{}
	var visit func(server string)
	visit = func(server string) {
		if seen[server] {
			return
		}
		seen[server] = true
		switch one, own := p.byName[server], p.declared[server]; {
		case one != nil:
			of = append(of, server, one.cfg.Spec.Placeless(), one.cfg.Command, one.cfg.Dir)
			if at := one.cfg.Spec.Where(); at != "" {
				r.where = append(r.where, at)
			}
		case own != nil:
			of = append(of, server, own.Spec.Placeless())
			for _, next := range p.calledBy(own.Spec) {
				visit(next)
			}
		}
	}
	visit(server)
	if r.sum = fingerprint(of); of != nil {
		p.reaches.Store(server, r)
	}
	return r
}

// leads reports whether calls of a server's tools are made of calls of others.
func (a *App) leads(server string) bool {
	own := a.present.Load().declared[server]
	return own != nil && (own.Spec.MCP != nil || own.Spec.Chain != nil)
}

// apart reports whether each caller has a server of that name for itself.
func (a *App) apart(server string) bool {
	p, ok := a.present.Load().byName[server]
	return ok && p.cfg.Spec.Scope != "" && p.cfg.Spec.Scope != string(upstream.Shared)
}

// calledBy are the servers that a declared tool may call, whether or not they
// have been asked what they have; rather too many.
func (p *present) calledBy(t manifest.Tool) (servers []string) {
	switch {
	case t.MCP != nil:
		return []string{t.MCP.Server}
	case t.Chain != nil:
		for _, tool := range t.Chain.Tools() {
			if p.declared[tool] != nil {
				servers = append(servers, tool)
				continue
			}
			for _, name := range slices.Sorted(maps.Keys(p.byName)) {
				if p.byName[name].entry.MayServe(tool) {
					servers = append(servers, name)
				}
			}
		}
	}
	return servers
}

// names are those that a served tool goes by, and those of the tool that it is
// another name of.
func (p *present) names(tool string) (names, also []string) {
	if own := p.declared[tool]; own != nil {
		return []string{tool}, p.declaredEntry(own, 0).Also
	}
	for _, one := range p.byName {
		for own := range one.entry.Filter.Rename {
			if names = one.entry.Names(own); names[0] == tool {
				return names, nil
			}
		}
	}
	return []string{tool}, nil
}
