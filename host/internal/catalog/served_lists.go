package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// A Snapshot is the catalog at one time. It is immutable.
type Snapshot struct {
	tools    []*call.Tool
	lists    map[call.ListKind]*servedList
	identity json.RawMessage
	owners   owners
	offline  map[string]bool // servers whose items are found by name but not listed

	mu       sync.Mutex
	profiles map[*Profile]*Snapshot // snapshots of profiles, computed on demand
}

// servedList is the list of one kind in a snapshot.
type servedList struct {
	items  []*Item
	byName map[string]*Item
	listed []*Item                // see limitListed
	legacy func() json.RawMessage // the result of the list request, encoded on demand
	modern func() json.RawMessage
}

// Tools returns all tools in list order: servers as configured, each in its own order.
// The caller must not change the slice.
func (s *Snapshot) Tools() []*call.Tool { return s.tools }

// Items returns a whole list in order. The caller must not change the slice.
func (s *Snapshot) Items(kind call.ListKind) []*Item { return s.lists[kind].items }

// ByName returns the tool with a served name, false if no tool has it.
func (s *Snapshot) ByName(name string) (*call.Tool, bool) {
	item, ok := s.byName(call.Tools, name)
	if !ok {
		return nil, false
	}
	return item.Tool, true
}

// byName returns the item of a kind with a served name, or URI. ok is false if none exists.
func (s *Snapshot) byName(kind call.ListKind, name string) (*Item, bool) {
	item, ok := s.lists[kind].byName[name]
	return item, ok
}

// ToolList returns the result of tools/list in the form of the era.
func (s *Snapshot) ToolList(modern bool) json.RawMessage { return s.ListResult(call.Tools, modern) }

// ListResult returns the result of a list request in the form of the era. It is encoded once
// for each era. The caller must not change it.
func (s *Snapshot) ListResult(kind call.ListKind, modern bool) json.RawMessage {
	if modern {
		return s.lists[kind].modern()
	}
	return s.lists[kind].legacy()
}

// hasSameList reports whether the list of a kind has the same definitions in the same order in
// both snapshots.
func (s *Snapshot) hasSameList(other *Snapshot, kind call.ListKind) bool {
	return slices.EqualFunc(s.lists[kind].listed, other.lists[kind].listed, sameItem)
}

// sameItem reports whether two items have equal definitions.
func sameItem(a, b *Item) bool { return a == b || bytes.Equal(a.Definition, b.Definition) }

// newSnapshot merges the listings. If two names are equal, or look alike and belong to
// different servers, the first one stays and the other is left out. If two URIs are equal,
// the second is qualified. The errors describe the items that were left out.
func newSnapshot(all map[call.ListKind][]*Item, identity json.RawMessage, offline map[string]bool) (*Snapshot, []error) {
	s := &Snapshot{lists: map[call.ListKind]*servedList{}, identity: identity, offline: offline}
	var faults []error
	s.owners = ownersOf(all)
	for _, kind := range kinds() {
		section := &servedList{byName: map[string]*Item{}}
		alike := map[string]*Item{}
		for _, item := range all[kind] {
			item, fault := section.prepare(item.withServedUI(s.owners), alike, s.owners)
			if fault != nil {
				faults = append(faults, fault)
				continue
			}
			section.byName[item.Name] = item
			section.items = append(section.items, item)
			if item.Tool != nil && !offline[item.Server] {
				s.tools = append(s.tools, item.Tool)
			}
		}
		faults = append(faults, section.limitListed(kind, offline)...)
		section.legacy = sync.OnceValue(func() json.RawMessage { return section.encode(kind, nil, false) })
		section.modern = sync.OnceValue(func() json.RawMessage { return section.encode(kind, identity, true) })
		s.lists[kind] = section
	}
	return s, faults
}

// prepare returns the item as it is served, with a qualified URI if necessary, or an error
// that says why it is not served. alike holds the served items by the look of their name.
func (l *servedList) prepare(item *Item, alike map[string]*Item, owners owners) (*Item, error) {
	first, taken := l.byName[item.Name]
	if item.Kind == call.Resources || item.Kind == call.Templates {
		owner, owned := owners[item.Name]
		if taken && first.Server != item.Server || owned && owner != item.Server {
			item = item.qualified()
			_, taken = l.byName[item.Name]
		}
		if taken {
			return nil, fmt.Errorf("server %s lists %s twice", item.Server, item.Original)
		}
		return item, nil
	}
	what := string(item.Kind[:len(item.Kind)-1])
	if taken {
		return nil, fmt.Errorf("%s %s of server %s is not served: %s of server %s has the same name", what, item.Name, item.Server, first.Original, first.Server)
	}
	look := lookAlikeKey(item.Name)
	if first, taken := alike[look]; taken && first.Server != item.Server {
		return nil, fmt.Errorf("%s %s of server %s is not served: its name is too similar to %s of server %s; rename one of them in the configuration",
			what, item.Name, item.Server, first.Name, first.Server)
	}
	alike[look] = item
	return item, nil
}

// maxListBytes bounds the encoded list in bytes: it is one message, and many clients close
// the connection at a message of 10 MiB. Each server has its own bound as well.
const maxListBytes = 9 << 20

// limitListed lists all items except those of offline servers and, if the list is too
// large, those of the servers with the largest lists. It returns an error for each of the
// latter; their items are still found by name.
func (l *servedList) limitListed(kind call.ListKind, offline map[string]bool) (faults []error) {
	without := func(left func(server string) bool) {
		l.listed = slices.DeleteFunc(slices.Clone(l.listed), func(i *Item) bool { return left(i.Server) })
	}
	l.listed = l.items
	if len(offline) > 0 {
		without(func(server string) bool { return offline[server] })
	}
	sizes, total := map[string]int{}, 0
	for _, i := range l.listed {
		sizes[i.Server] += len(i.Definition)
		total += len(i.Definition)
	}
	for total > maxListBytes {
		most := l.listed[0].Server
		for _, i := range l.listed {
			if sizes[i.Server] > sizes[most] {
				most = i.Server
			}
		}
		faults = append(faults, fmt.Errorf("server %s: its %s are served but not listed: they have %d bytes, and the list of all servers would have %d; many clients accept %d",
			most, kind, sizes[most], total, maxListBytes))
		total -= sizes[most]
		without(func(server string) bool { return server == most })
	}
	return faults
}

// encode returns the result of a list request; modern: in the form of version 2026-07-28,
// with identity.
func (l *servedList) encode(kind call.ListKind, identity json.RawMessage, modern bool) json.RawMessage {
	definitions := make([]json.RawMessage, len(l.listed))
	for i, item := range l.listed {
		definitions[i] = item.Definition
	}
	return encode(kind, definitions, identity, modern)
}

// ToolListOf returns a result of tools/list with these definitions.
func (s *Snapshot) ToolListOf(definitions []json.RawMessage, modern bool) json.RawMessage {
	if modern {
		return encode(call.Tools, definitions, s.identity, true)
	}
	return encode(call.Tools, definitions, nil, false)
}

// encode returns the result of a list request with these definitions. modern selects the
// form of MCP 2026-07-28. identity, unless nil, is the server's identity for _meta.
func encode(kind call.ListKind, definitions []json.RawMessage, identity json.RawMessage, modern bool) json.RawMessage {
	size := 256 + len(identity)
	for _, definition := range definitions {
		size += len(definition) + 1
	}
	list := append(append(append(make([]byte, 0, size), `{"`...), kind...), `":[`...)
	for i, definition := range definitions {
		if i > 0 {
			list = append(list, ',')
		}
		if kind == call.Tools && !modern {
			definition = legacyTool(definition)
		}
		list = append(list, definition...)
	}
	list = append(list, ']')
	if modern { // must be requested again each time, and not be shared between users
		list = append(list, `,"ttlMs":0,"cacheScope":"private","resultType":"complete"`...)
	}
	if identity != nil {
		list = append(append(append(list, `,"_meta":{"io.modelcontextprotocol/serverInfo":`...), identity...), '}')
	}
	return append(list, '}')
}
