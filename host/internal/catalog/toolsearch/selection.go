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

// A selection is the list for one snapshot. It is immutable except for the index, which
// is built at the first search.
type selection struct {
	snapshot *catalog.Snapshot
	tools    []*call.Tool      // all, listed or not
	listed   []json.RawMessage // definitions; nil: of all tools
	legacy   func() json.RawMessage
	modern   func() json.RawMessage

	once  sync.Once
	index *search.Index
}

// selectionFor returns the selection for a snapshot. It computes a selection once and keeps
// the latest two.
func (o *List) selectionFor(s *catalog.Snapshot) *selection {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, have := range o.recent {
		if have != nil && have.snapshot == s {
			return have
		}
	}
	made := o.newSelection(s)
	o.recent[1], o.recent[0] = o.recent[0], made
	return made
}

// newSelection returns what the list shows of a snapshot: all tools if they fit into the
// limits, otherwise the meta-tools and the tools that selectListed chooses.
func (o *List) newSelection(s *catalog.Snapshot) *selection {
	made := &selection{snapshot: s, tools: s.Tools()}
	listed, all := o.selectListed(made.tools)
	if all {
		return made
	}
	made.listed = metaToolDefinitions(made.tools)
	for _, t := range listed {
		made.listed = append(made.listed, t.Definition)
	}
	made.legacy = sync.OnceValue(func() json.RawMessage { return s.ToolListOf(made.listed, false) })
	made.modern = sync.OnceValue(func() json.RawMessage { return s.ToolListOf(made.listed, true) })
	return made
}

// isShortened reports whether the list omits tools.
func (s *selection) isShortened() bool { return s.listed != nil }

// result returns the result of tools/list, in the modern or legacy protocol's form.
func (s *selection) result(modern bool) json.RawMessage {
	switch {
	case !s.isShortened():
		return s.snapshot.ToolList(modern)
	case modern:
		return s.modern()
	}
	return s.legacy()
}

// listsSame reports whether two selections list the same definitions in the same order.
func (s *selection) listsSame(other *selection) bool {
	return slices.EqualFunc(s.definitions(), other.definitions(), func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
}

// definitions returns the definitions of the listed tools.
func (s *selection) definitions() []json.RawMessage {
	if s.isShortened() {
		return s.listed
	}
	all := make([]json.RawMessage, len(s.tools))
	for i, t := range s.tools {
		all[i] = t.Definition
	}
	return all
}

// selectListed returns the tools to list, in the catalog's order, and whether these are
// all.
func (o *List) selectListed(tools []*call.Tool) (listed []*call.Tool, all bool) {
	maxTokens := o.cfg.maxTokens()
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
	for _, definition := range metaToolDefinitions(tools) {
		n++
		if maxTokens > 0 {
			tokens += o.count(definition)
		}
	}
	order := make([]int, 0, len(tools))
	for i, t := range tools {
		if !isMetaTool(t.Name) {
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

// rank returns the rank of a tool, lowest first: 0 for a pinned tool, else 1 + its
// position in Priority.
func (o *List) rank(t *call.Tool) int {
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

// searchIndex returns the search index of all tools, listed or not.
func (s *selection) searchIndex() *search.Index {
	s.once.Do(func() {
		docs := make([]search.Doc, len(s.tools))
		for i, t := range s.tools {
			d := parseDefinition(t.Definition)
			docs[i] = search.Doc{Name: t.Name, Group: t.Server, Text: d.Title + " " + d.Description}
			for _, p := range d.parameters() {
				docs[i].Parts = append(docs[i].Parts, p.name+" "+p.text)
			}
		}
		s.index = search.New(docs)
	})
	return s.index
}
