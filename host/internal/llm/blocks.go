package llm

import "github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"

// TextBlock returns a text block in the format that OpenAI, Anthropic and MCP share.
func TextBlock(text string) *tree.Value {
	return tree.Obj("type", tree.Str("text"), "text", tree.Str(text))
}

// CompactBlocks returns a list of content blocks in the shortest form that OpenAI and
// Anthropic accept: a single text block becomes a string. It returns nil for an empty
// list.
func CompactBlocks(list *tree.Value) *tree.Value {
	switch {
	case len(list.Items) == 0:
		return nil
	case len(list.Items) == 1 && list.Items[0].Get("type").Is(tree.String) && list.Items[0].Get("type").Text == "text" && len(list.Items[0].Members) == 2:
		return list.Items[0].Get("text")
	}
	return list
}
