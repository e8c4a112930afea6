package gateway

import (
	"context"
	"encoding/json"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// filteredCatalog is the catalog of a caller that may use only the tools for which permits
// returns true. It has no meta-tools.
type filteredCatalog struct {
	Catalog
	permits func(name string) bool
}

// Lookup returns the tool with a served name, and false if none exists or the caller may not
// use it.
func (n filteredCatalog) Lookup(ctx context.Context, name string) (*call.Tool, bool) {
	if !n.permits(name) {
		return nil, false
	}
	return n.Catalog.Lookup(ctx, name)
}

// List returns the result of a list request, with only the tools that the caller may
// use.
func (n filteredCatalog) List(ctx context.Context, kind call.ListKind, modern bool) json.RawMessage {
	whole := n.Catalog.List(ctx, kind, modern)
	if kind != call.Tools {
		return whole
	}
	left := []json.RawMessage{}
	var all struct {
		Tools []json.RawMessage `json:"tools"`
	}
	if json.Unmarshal(whole, &all) == nil {
		for _, definition := range all.Tools {
			var t struct {
				Name string `json:"name"`
			}
			if json.Unmarshal(definition, &t) == nil && n.permits(t.Name) {
				left = append(left, definition)
			}
		}
	}
	tools, err := jsonrpc.Marshal(left)
	if err == nil {
		whole, err = jsonrpc.SetMember(whole, "tools", tools)
	}
	if err != nil { // of definitions that were decoded before
		return json.RawMessage(`{"tools":[]}`)
	}
	return whole
}
