package core

import (
	"maps"
	"slices"

	"github.com/toolroom-mcp/toolroom/host/internal/declared/manifest"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
)

// reachableServers describes the servers reachable through a server's tools.
type reachableServers struct {
	fingerprint  []byte   // fingerprint of their configurations
	descriptions []string // descriptions for people
}

// reachableFrom returns the servers reachable through a server's tools: the server itself
// and, for a declared tool, the servers that it calls.
func (s *snapshot) reachableFrom(server string) reachableServers {
	if known, ok := s.reaches.Load(server); ok {
		return known.(reachableServers) //nolint:errcheck // the only type in the map
	}
	var of []any
	var r reachableServers
	seen := map[string]bool{}
	var visit func(server string)
	visit = func(server string) {
		if seen[server] {
			return
		}
		seen[server] = true
		switch one, own := s.byName[server], s.declared[server]; {
		case one != nil:
			of = append(of, server, one.cfg.Spec.WithoutPosition(), one.cfg.Command, one.cfg.Dir)
			if at := one.cfg.Spec.RedactedTarget(); at != "" {
				r.descriptions = append(r.descriptions, at)
			}
		case own != nil:
			of = append(of, server, own.Spec.WithoutLocation())
			for _, next := range s.serversCalledBy(own.Spec) {
				visit(next)
			}
		}
	}
	visit(server)
	if r.fingerprint = fingerprint(of); of != nil {
		s.reaches.Store(server, r)
	}
	return r
}

// callsOthers reports whether server is the name of a declared tool that calls other
// tools.
func (a *App) callsOthers(server string) bool {
	own := a.snapshot.Load().declared[server]
	return own != nil && (own.Spec.MCP != nil || own.Spec.Chain != nil)
}

// isPerCaller reports whether each caller has its own instance of the server.
func (a *App) isPerCaller(server string) bool {
	p, ok := a.snapshot.Load().byName[server]
	return ok && (p.cfg.Spec.Scope != "" && p.cfg.Spec.Scope != string(upstream.Shared) || a.usesCallerCredentials(p.cfg))
}

// serversCalledBy returns the servers that a declared tool may call, even if their
// tools are not known yet. It may return too many.
func (s *snapshot) serversCalledBy(t manifest.Tool) (servers []string) {
	switch {
	case t.MCP != nil:
		return []string{t.MCP.Server}
	case t.Chain != nil:
		for _, tool := range t.Chain.Tools() {
			if s.declared[tool] != nil {
				servers = append(servers, tool)
				continue
			}
			for _, name := range slices.Sorted(maps.Keys(s.byName)) {
				if s.byName[name].entry.MayServe(tool) {
					servers = append(servers, name)
				}
			}
		}
	}
	return servers
}

// servedNames returns the names under which a tool is served. For an alias, targetNames
// are the served names of its target.
func (s *snapshot) servedNames(tool string) (names, also []string) {
	if own := s.declared[tool]; own != nil {
		return []string{tool}, s.declaredSourceConfig(own, 0).TargetNames
	}
	for _, one := range s.byName {
		for own := range one.entry.Filter.Rename {
			if names = one.entry.Names(own); names[0] == tool {
				return names, nil
			}
		}
	}
	return []string{tool}, nil
}
