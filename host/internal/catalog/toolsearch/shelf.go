package toolsearch

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
	"github.com/toolroom-mcp/toolroom/host/internal/search"
)

// shelf is what is offered of one snapshot. It is immutable but for the index,
// which is made when it is first needed.
type shelf struct {
	of     *catalog.Snapshot
	tools  []*call.Tool      // all of them, listed or not
	listed []json.RawMessage // definitions; nil: all tools'
	legacy func() json.RawMessage
	modern func() json.RawMessage

	once  sync.Once
	index *search.Index
}

// shelf returns what is offered of a snapshot, made once.
func (o *Offer) shelf(s *catalog.Snapshot) *shelf {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, have := range o.recent {
		if have != nil && have.of == s {
			return have
		}
	}
	made := o.newShelf(s)
	o.recent[1], o.recent[0] = o.recent[0], made
	return made
}

func (o *Offer) newShelf(s *catalog.Snapshot) *shelf {
	made := &shelf{of: s, tools: s.Tools()}
	listed, all := o.fitting(made.tools)
	if all {
		return made
	}
	made.listed = standInDefinitions(made.tools)
	for _, t := range listed {
		made.listed = append(made.listed, t.Definition)
	}
	made.legacy = sync.OnceValue(func() json.RawMessage { return s.Listed(made.listed, false) })
	made.modern = sync.OnceValue(func() json.RawMessage { return s.Listed(made.listed, true) })
	return made
}

// short reports whether not all is listed.
func (s *shelf) short() bool { return s.listed != nil }

// list is the result of tools/list.
func (s *shelf) list(modern bool) json.RawMessage {
	switch {
	case !s.short():
		return s.of.List(modern)
	case modern:
		return s.modern()
	}
	return s.legacy()
}

// same reports whether two list the same.
func (s *shelf) same(other *shelf) bool {
	return slices.EqualFunc(s.definitions(), other.definitions(), func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
}

func (s *shelf) definitions() []json.RawMessage {
	if s.short() {
		return s.listed
	}
	all := make([]json.RawMessage, len(s.tools))
	for i, t := range s.tools {
		all[i] = t.Definition
	}
	return all
}

// fitting returns the tools that are listed, and whether these are all.
func (o *Offer) fitting(tools []*call.Tool) (listed []*call.Tool, all bool) {
	maxTokens := o.cfg.tokens()
	cost := func(t *call.Tool) int {
		if maxTokens == 0 {
			return 0
		}
		return o.count(t.Definition)
	}
	total, costs := 0, make([]int, len(tools))
	for i, t := range tools {
		costs[i] = cost(t)
		total += costs[i]
	}
	within := func(n, tokens int) bool {
		return (o.cfg.MaxTools == 0 || n <= o.cfg.MaxTools) && (maxTokens == 0 || tokens <= maxTokens)
	}
	if within(len(tools), total) {
		return tools, true
	}
	n, tokens := 0, 0
	for _, definition := range standInDefinitions(tools) {
		n++
		if maxTokens > 0 {
			tokens += o.count(definition)
		}
	}
	order := make([]int, 0, len(tools))
	for i, t := range tools {
		if !isStandIn(t.Name) {
			order = append(order, i)
		}
	}
	rank := make([]int, len(tools))
	for i, t := range tools {
		rank[i] = o.rank(t)
	}
	slices.SortStableFunc(order, func(a, b int) int { return rank[a] - rank[b] })
	var chosen []int
	for _, i := range order {
		if rank[i] > 0 && !within(n+1, tokens+costs[i]) {
			continue // a smaller one may still fit
		}
		n, tokens = n+1, tokens+costs[i]
		chosen = append(chosen, i)
	}
	slices.Sort(chosen)
	for _, i := range chosen {
		listed = append(listed, tools[i])
	}
	return listed, false
}

// rank is 0 for what is pinned, then the place in Priority.
func (o *Offer) rank(t *call.Tool) int {
	meant := func(patterns ...string) bool {
		return catalog.MatchesAny(patterns, t.Name) || t.Unrenamed != "" && catalog.MatchesAny(patterns, t.Unrenamed)
	}
	if meant(o.cfg.Pinned...) {
		return 0
	}
	for i, pattern := range o.cfg.Priority {
		if meant(pattern) {
			return 1 + i
		}
	}
	return 1 + len(o.cfg.Priority)
}

// find returns the index of all tools, listed or not.
func (s *shelf) find() *search.Index {
	s.once.Do(func() {
		docs := make([]search.Doc, len(s.tools))
		for i, t := range s.tools {
			d := read(t.Definition)
			docs[i] = search.Doc{Name: t.Name, Group: t.Server, Text: d.Title + " " + d.Description}
			for _, p := range d.params() {
				docs[i].Parts = append(docs[i].Parts, p.name+" "+p.text)
			}
		}
		s.index = search.New(docs)
	})
	return s.index
}
