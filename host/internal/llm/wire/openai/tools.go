// Package openai encodes and decodes the wire format of chat completions.
package openai

import (
	"encoding/json"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/schema"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// NameRule returns OpenAI's rule for names of functions.
func NameRule() llm.NameRule { return llm.NameRule{Max: 64} }

// Options are options for OpenAI and compatible servers. The zero value is for OpenAI.
type Options struct {
	Names  *llm.NameMap // of the request's tools; nil: invalid names are replaced
	Strict bool         // enforce the schemas of all tools (strict mode)

	// Extensions allows members that compatible servers know and OpenAI refuses:
	// reasoning_content, and Google's extra_content with signatures of calls.
	Extensions bool

	OldMaxTokens bool // use max_tokens instead of max_completion_tokens
	OldFunctions bool // responses use function_call instead of tool_calls
}

// EncodeTools encodes a request's tools.
func EncodeTools(tools []llm.Tool, o Options) (*tree.Value, llm.Losses) {
	return llm.EncodeTools(tools, func(t llm.Tool) (*tree.Value, llm.Losses) { return encodeTool(t, o) })
}

// encodeTool returns an entry of tools, and what the format cannot express.
func encodeTool(t llm.Tool, o Options) (*tree.Value, llm.Losses) {
	var losses llm.Losses
	t.ReportUnsupported(&losses, "OpenAI", false)
	f := t.NameAndDescription(o.Names, NameRule(), &losses)
	converted, strict := schema.StrictOrPlain(t.Input, o.Strict || t.Strict, schema.OpenAILimits(), "OpenAI", &losses)
	if strict {
		f.Set("strict", tree.Boolean(true))
	}
	f.Set("parameters", converted)
	return tree.Obj("type", tree.Str("function"), "function", f), losses
}

// DecodeTools decodes a request's tools. It returns the error of llm.DecodeTools; what it
// cannot read is a loss.
func DecodeTools(data json.RawMessage, o Options) ([]llm.Tool, llm.Losses, error) {
	return llm.DecodeTools(data, func(list *tree.Value) []llm.Tool { return decodeTools(list, o) })
}

// decodeTools returns the functions in the array tools; OpenAI's built-in tools are left
// unread.
func decodeTools(list *tree.Value, o Options) []llm.Tool {
	var tools []llm.Tool
	for _, item := range list.TakeItems() {
		if item.Get("function") == nil || item.Get("type").Str() != "function" {
			continue // a built-in tool of OpenAI
		}
		item.Take("type").Str()
		tools = append(tools, decodeFunction(item.Take("function"), o))
	}
	return tools
}

// decodeFunction returns a function's definition as a tool.
func decodeFunction(f *tree.Value, o Options) llm.Tool {
	t := llm.Tool{
		Name:        o.Names.FromVendor(f.Take("name").Str()),
		Description: f.Take("description").Str(),
		Input:       f.Take("parameters").TakeRaw(),
	}
	if strict := f.Take("strict").Flag(); strict != nil {
		t.Strict = *strict
	}
	return t
}
