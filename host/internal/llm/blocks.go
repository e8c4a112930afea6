package llm

import "github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"

// TextBlock is a piece of text as OpenAI, Anthropic and MCP write it.
func TextBlock(text string) *tree.Value {
	return tree.Obj("type", tree.Str("text"), "text", tree.Str(text))
}

// Blocks is a list of pieces as OpenAI and Anthropic take it: the text of the only
// one, if that is nothing else, in its place; nil: there is none.
func Blocks(list *tree.Value) *tree.Value {
	switch {
	case len(list.Items) == 0:
		return nil
	case len(list.Items) == 1 && list.Items[0].Get("type").Is(tree.String) && list.Items[0].Get("type").Text == "text" && len(list.Items[0].Members) == 2:
		return list.Items[0].Get("text")
	}
	return list
}
