package catalog

import (
	"context"
	"slices"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// A Target is a source's tool, by the source's own name for it. The zero value
// is none.
type Target struct{ Server, Tool string }

// inherit gives tools that are other names of tools what their definitions do
// not say themselves: title, description, schemas and annotations. Stages take
// their traits from what they say themselves, since the call of the other tool
// goes through all of them, too.
func inherit(tools []*Item) {
	var resolve func(item *Item, depth int) *Item
	resolve = func(item *Item, depth int) *Item {
		if item.of == (Target{}) || item.whole || depth > len(tools) {
			return item
		}
		target := item.of.among(tools)
		if target == nil {
			return item
		}
		return item.with(resolve(target, depth+1))
	}
	for i, item := range tools {
		tools[i] = resolve(item, 0)
	}
}

func (t Target) among(tools []*Item) *Item {
	i := slices.IndexFunc(tools, func(item *Item) bool { return item.Server == t.Server && item.Original == t.Tool })
	if i < 0 {
		return nil
	}
	return tools[i]
}

// with is the item with what the definition of another has besides.
func (i *Item) with(target *Item) *Item {
	own, err := jsonrpc.Members(i.Definition)
	if err != nil {
		return i
	}
	theirs, err := jsonrpc.Members(target.Definition)
	if err != nil {
		return i
	}
	out := *i
	out.whole = target.whole || target.of == (Target{})
	tool := *i.Tool
	for _, m := range theirs {
		at := slices.IndexFunc(own, func(o jsonrpc.Member) bool { return o.Name == m.Name })
		said := at >= 0 && (m.Name != "inputSchema" || string(own[at].Value) != anyArguments)
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

// anyArguments is the schema of a tool that says none.
const anyArguments = `{"type":"object"}`

// maxNames bounds how many names a tool has one after the other.
const maxNames = 8

// whole is an item, of another name of a tool after that one's source has been
// asked.
func (c *Catalog) whole(ctx context.Context, item *Item) *Item {
	if item.of == (Target{}) || item.whole {
		return item
	}
	for next, n := item, 0; next != nil && next.of != (Target{}) && n < maxNames; n++ {
		of := next.of
		c.list(ctx, call.Tools, func(s *server) bool { return s.Source.Name() == of.Server })
		next = of.among(c.current.Load().Items(call.Tools))
	}
	if now, ok := c.current.Load().byName(item.Kind, item.Name); ok {
		return now
	}
	return item
}
