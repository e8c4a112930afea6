package catalog

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// HasListed reports whether a server has listed its tools once.
func (c *Catalog) HasListed(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.allServers(), func(s *server) bool {
		return s.Source.Name() == name && (s.isKnown || s.lists[call.Tools].listed)
	})
}

// untried returns the servers of a group, nil meaning all, that were not asked for their
// list yet.
func (c *Catalog) untried(kind call.ListKind, group func(*server) bool) (servers []*server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.allServers() {
		if !s.lists[kind].tried && (group == nil || group(s)) {
			servers = append(servers, s)
		}
	}
	return servers
}

// unlistedTool returns a tool with Unlisted set if servers that the view shows may have a
// tool of this served name and could not be listed so far; nil without such a server. first
// are the servers whose list was requested for this call.
func (v *View) unlistedTool(name string, first []*server) *call.Tool {
	var tools []*call.Tool
	for _, u := range v.catalog.unlisted(call.Tools, name) {
		if !v.shows(u.item) {
			continue
		}
		unlisted := &call.Unlisted{Find: func(ctx context.Context) (*call.Tool, error) { return v.findListed(ctx, name) }}
		if slices.Contains(first, u.server) {
			unlisted.Err = u.err
		}
		tool := *u.item.Tool
		tool.Unlisted = unlisted
		tools = append(tools, &tool)
	}
	if len(tools) == 0 {
		return nil
	}
	tools[0].Unlisted.Others = tools[1:]
	return tools[0]
}

// UnlistedTool returns a tool with Unlisted set for the tool that a server calls original,
// if the server could not be listed so far and the filter does not block the tool; else
// false.
func (c *Catalog) UnlistedTool(server, original string) (*call.Tool, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.allServers() {
		if s.Source.Name() != server || !s.isUnlisted(call.Tools) {
			continue
		}
		if item := s.assumedItem(call.Tools, original); item != nil && s.Filter.serves(item) {
			tool := *item.Tool
			tool.Unlisted = &call.Unlisted{Find: func(ctx context.Context) (*call.Tool, error) { return c.View().findListed(ctx, tool.Name) }}
			return &tool, true
		}
	}
	return nil, false
}

// findListed returns the tool with a served name if it is listed now and the view shows it,
// else TOOL_NOT_FOUND.
func (v *View) findListed(ctx context.Context, name string) (*call.Tool, error) {
	item, ok := v.catalog.currentSnapshot().byName(call.Tools, name)
	if !ok || !v.shows(item) {
		return nil, toolerr.New(toolerr.ToolNotFound, "no tool %q", name)
	}
	return v.catalog.withTarget(ctx, item).Tool, nil
}

// unlistedPrompt returns an item for a prompt that a server may have under this served name
// and whose prompts could not be listed so far; nil without such a server.
func (v *View) unlistedPrompt(name string) *Item {
	for _, u := range v.catalog.unlisted(call.Prompts, name) {
		if v.shows(u.item) && u.item.Original != "" {
			return u.item
		}
	}
	return nil
}

// unlisted is an item that a server may have, which could not be listed so far.
type unlisted struct {
	server *server
	item   *Item
	err    error // of the last list
}

// unlisted returns the items that servers may serve under a name, as far as the name tells,
// of those servers that could not be listed so far. The server with the longest prefix is
// the first. A server without a prefix may have any name, so it counts only if no other
// server has the prefix of the name.
func (c *Catalog) unlisted(kind call.ListKind, name string) []unlisted {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []unlisted
	prefixed := false
	for _, s := range c.allServers() {
		prefixed = prefixed || s.prefix() != "" && strings.HasPrefix(name, s.prefix())
		if !s.isUnlisted(kind) {
			continue
		}
		if item := s.unlistedItem(kind, name); item != nil {
			all = append(all, unlisted{s, item, s.lists[kind].err})
		}
	}
	if prefixed {
		all = slices.DeleteFunc(all, func(u unlisted) bool { return !u.server.Plain && u.server.prefix() == "" && !u.server.renames(name) })
	}
	slices.SortStableFunc(all, func(a, b unlisted) int { return cmp.Compare(len(b.server.prefix()), len(a.server.prefix())) })
	return all
}

// isUnlisted reports whether a list was requested and could not be read so far. The
// catalog's mu is held.
func (s *server) isUnlisted(kind call.ListKind) bool {
	l := s.lists[kind]
	return l.tried && !l.listed && l.err != nil && !s.isKnown
}

// markedName returns a pattern for served names that cleanName may have changed.
var markedName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`_[0-9a-f]{8}$`) })

// unlistedItem returns the item that the entry would serve under a name, if its source
// lists it, or nil if it can serve none. Original is "" if it does not follow from the
// name. A tool that the filter blocks is not returned.
func (e SourceConfig) unlistedItem(kind call.ListKind, name string) *Item {
	own, certain := e.originalOf(kind, name)
	if own == "" && (e.Plain || !markedName().MatchString(name) || !e.MayServe(name)) {
		return nil
	}
	item := e.assumedItem(kind, cmp.Or(own, name))
	if item == nil {
		return nil
	}
	if own == "" {
		item.Name, item.Original = name, ""
		if kind == call.Tools {
			item.Tool = &call.Tool{Name: name, Server: item.Server, Definition: item.Tool.Definition}
		}
	}
	filter := e.Filter
	if !certain {
		filter.Allow = nil // it can allow the original name
	}
	if kind == call.Tools && !filter.serves(item) {
		return nil
	}
	return item
}

// assumedItem returns the item for a tool or prompt with this original name of which nothing
// else is known; nil if the name is malformed.
func (e SourceConfig) assumedItem(kind call.ListKind, own string) *Item {
	item, err := newItem(e, kind, append(jsonrpc.AppendString([]byte(`{"name":`), own), `,"inputSchema":{"type":"object"}}`...))
	if err != nil {
		return nil
	}
	return item
}

// originalOf returns the original name of the item that the entry serves under a name; ""
// if it does not follow from the name. certain is false if an item with another original
// name could have the same served name.
func (e SourceConfig) originalOf(kind call.ListKind, name string) (own string, certain bool) {
	if kind == call.Tools {
		for own := range e.Filter.Rename {
			if e.servedName(own, kind) == name {
				return own, true
			}
		}
	}
	if e.Plain && name != e.Source.Name() { // the tools of this source can have any names
		return "", false
	}
	rest, ok := strings.CutPrefix(name, e.prefix())
	if !ok || rest == "" {
		return "", false
	}
	unmarked := markedName().ReplaceAllString(rest, "")
	for _, own := range []string{unmarked, rest} {
		if own != "" && e.servedName(own, kind) == name {
			return own, own == unmarked
		}
	}
	return "", false
}
