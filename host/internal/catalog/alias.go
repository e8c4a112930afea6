package catalog

import (
	"context"
	"slices"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// An AliasTarget names a tool of a source by the source's own name. The zero value means
// none.
type AliasTarget struct{ Server, Tool string }

// completeAliases completes the definitions of tools that are other names of tools: title,
// description, schemas and annotations. Stages use the traits of the tool itself,
// since the call of the target passes all stages, too.
func completeAliases(tools []*Item) {
	var resolve func(item *Item, depth int) *Item
	resolve = func(item *Item, depth int) *Item {
		if item.aliasOf == (AliasTarget{}) || item.completed || depth > len(tools) {
			return item
		}
		target := item.aliasOf.find(tools)
		if target == nil {
			return item
		}
		return item.completedFrom(resolve(target, depth+1))
	}
	for i, item := range tools {
		tools[i] = resolve(item, 0)
	}
}

// find returns the tool that t names, nil if it is not among tools.
func (t AliasTarget) find(tools []*Item) *Item {
	i := slices.IndexFunc(tools, func(item *Item) bool { return item.Server == t.Server && item.Original == t.Tool })
	if i < 0 {
		return nil
	}
	return tools[i]
}

// completedFrom returns a copy of the item to which title, description, schemas and
// annotations of the target are added, where its own definition has none. It returns the
// item itself if a definition is malformed.
func (i *Item) completedFrom(target *Item) *Item {
	own, err := jsonrpc.Members(i.Definition)
	if err != nil {
		return i
	}
	theirs, err := jsonrpc.Members(target.Definition)
	if err != nil {
		return i
	}
	out := *i
	out.completed = target.completed || target.aliasOf == (AliasTarget{})
	tool := *i.Tool
	for _, m := range theirs {
		at := slices.IndexFunc(own, func(o jsonrpc.Member) bool { return o.Name == m.Name })
		said := at >= 0 && (m.Name != "inputSchema" || string(own[at].Value) != anyArgumentsSchema)
		switch m.Name {
		case "title", "description", "inputSchema", "outputSchema", "annotations":
		default:
			continue
		}
		if said {
			continue
		}
		with, err := jsonrpc.SetMember(out.Definition, m.Name, m.Value)
		if err != nil {
			return i
		}
		out.Definition = with
	}
	tool.Definition, out.Tool = out.Definition, &tool
	return &out
}

// anyArgumentsSchema is the schema of a tool without one.
const anyArgumentsSchema = `{"type":"object"}`

// maxAliasDepth bounds a chain of names of names.
const maxAliasDepth = 8

// withTarget returns an alias with the members of its target's definition. For this it
// waits, at most until ctx ends, for the tool lists of the target's sources. Other items,
// and aliases without a known target, are returned as they are.
func (c *Catalog) withTarget(ctx context.Context, item *Item) *Item {
	if item.aliasOf == (AliasTarget{}) || item.completed {
		return item
	}
	for next, n := item, 0; next != nil && next.aliasOf != (AliasTarget{}) && n < maxAliasDepth; n++ {
		of := next.aliasOf
		c.awaitLists(ctx, call.Tools, func(s *server) bool { return s.Source.Name() == of.Server })
		next = of.find(c.currentSnapshot().Items(call.Tools))
	}
	if now, ok := c.currentSnapshot().byName(item.Kind, item.Name); ok {
		return now
	}
	return item
}
