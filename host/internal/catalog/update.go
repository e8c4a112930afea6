package catalog

import (
	"encoding/json"
	"reflect"
	"slices"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// Update replaces the entries. An unchanged source keeps its lists. A source that is
// replaced by another one of the same name, or that is named or filtered differently,
// serves its previous items, as far as they are still permitted, until it is listed
// again. New sources are listed if such lists were requested before. Clients whose
// list changes are notified.
func (c *Catalog) Update(entries []SourceConfig) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	c.rebuildIfOutdated()
	before := map[string]*server{}
	tried, seen := map[call.ListKind]bool{}, map[call.ListKind]bool{}
	for _, s := range c.allServers() {
		before[s.Source.Name()] = s
		for kind, l := range s.lists {
			tried[kind] = tried[kind] || l.tried && !s.isKnown
			seen[kind] = seen[kind] || l.tried
		}
	}
	next := make([]*server, 0, len(entries))
	var ask []*server
	for _, e := range entries {
		old := before[e.Source.Name()]
		if old != nil && old.isUnchanged(e) {
			next = append(next, old)
			continue
		}
		s := newServer(e)
		if s.isKnown {
			next = append(next, s)
			continue
		}
		if old != nil {
			s.copyLists(old)
		}
		next, ask = append(next, s), append(ask, s)
	}
	c.servers.Store(&next)
	for _, s := range ask {
		for kind, l := range s.lists {
			if old := before[s.Source.Name()]; l.tried || old == nil && tried[kind] {
				c.requestList(s, kind)
			}
		}
	}
	was := c.current.Load()
	now := c.assemble()
	c.current.Store(now)
	c.mu.Unlock()
	for _, kind := range kinds() {
		if seen[kind] && c.onChange != nil && !was.hasSameList(now, kind) {
			c.onChange(Change{kind, was, now})
		}
	}
}

// isUnchanged reports whether an entry describes the server, served in the same way.
func (s *server) isUnchanged(e SourceConfig) bool {
	return s.Source == e.Source && s.Plain == e.Plain && reflect.DeepEqual(s.Prefix, e.Prefix) && reflect.DeepEqual(s.Filter, e.Filter) && s.AliasOf == e.AliasOf && slices.Equal(s.TargetNames, e.TargetNames)
}

// copyLists copies the lists of the previous server that were requested, filtered and named
// as this server's configuration says.
func (s *server) copyLists(old *server) {
	for kind, l := range old.lists {
		if !l.tried {
			continue
		}
		var raw []json.RawMessage
		for _, item := range l.items {
			raw = append(raw, item.received)
		}
		items, faults := s.items(kind, raw)
		s.lists[kind] = &listing{items: items, faults: faults, drift: l.drift, err: l.err, tried: true, listed: l.listed}
	}
}
