package llm

import "github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"

// TextBlock is a piece of text as OpenAI, Anthropic and MCP write it.
func TextBlock(text string) *tree.Value {
	return tree.Obj("type", tree.Str("text"), "text", tree.Str(text))
}

// Blocks returns a list of content blocks in the form of OpenAI and Anthropic: a
// single text block becomes its text; nil means none.
func Blocks(list *tree.Value) *tree.Value {
	switch {
	case len(list.Items) == 0:
		return nil
	case len(list.Items) == 1 && list.Items[0].Get("type").Is(tree.String) && list.Items[0].Get("type").Text == "text" && len(list.Items[0].Members) == 2:
		return list.Items[0].Get("text")
	}
	return list
}
