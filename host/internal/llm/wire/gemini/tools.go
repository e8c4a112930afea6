// Package gemini writes and reads the wire format of generateContent, as the
// Gemini API and Vertex AI have it.
package gemini

import (
	"encoding/json"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/schema"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// Rule returns the rule for names of functions that all versions of Gemini accept.
func Rule() llm.NameRule { return llm.NameRule{Max: 64, LetterFirst: true} }

// Options say how to write for Gemini.
type Options struct {
	Names *llm.Names // of the request's tools; nil: names are made to fit

	// NoIDs writes for versions that know no ids of calls.
	NoIDs bool

	// SkipSignatures signs calls of other models' so that Gemini takes them.
	SkipSignatures bool
}

// EncodeTools writes a request's tools: one group of declarations.
func EncodeTools(tools []llm.Tool, o Options) (*tree.Value, llm.Losses) {
	list, all := llm.EncodeTools(tools, func(t llm.Tool) (*tree.Value, llm.Losses) { return encodeTool(t, o) })
	if len(list.Items) == 0 {
		return list, nil
	}
	return tree.List(tree.Obj("functionDeclarations", list)), all
}

func encodeTool(t llm.Tool, o Options) (*tree.Value, llm.Losses) {
	var losses llm.Losses
	t.Unplaced(&losses, "Gemini", true)
	d := t.Begun(o.Names, Rule(), &losses)
	parameters := schema.Subset(t.Input, "/inputSchema", &losses)
	if len(parameters.Get("properties").Each()) > 0 {
		d.Set("parameters", parameters)
	} else {
		losses.Carry("/inputSchema", "Gemini omits the schema of a function without parameters", tree.Obj("type", tree.Str("object")))
	}
	if t.Output != nil {
		d.Set("response", schema.Subset(t.Output, "/outputSchema", &losses))
	}
	return d, losses
}

// DecodeTools reads a request's tools.
func DecodeTools(data json.RawMessage, o Options) ([]llm.Tool, llm.Losses, error) {
	return llm.DecodeTools(data, func(list *tree.Value) []llm.Tool { return decodeTools(list, o) })
}

func decodeTools(list *tree.Value, o Options) []llm.Tool {
	var tools []llm.Tool
	for _, group := range list.List() {
		for _, d := range group.Take("functionDeclarations").List() {
			t := llm.Tool{
				Name:        o.Names.Own(d.Take("name").Str()),
				Description: d.Take("description").Str(),
				Input:       decodeSchema(d, "parameters", "parametersJsonSchema"),
				Output:      decodeSchema(d, "response", "responseJsonSchema"),
			}
			tools = append(tools, t)
		}
	}
	return tools
}

// decodeSchema reads a schema in either of the forms that Gemini takes.
func decodeSchema(d *tree.Value, subset, whole string) json.RawMessage {
	if s := d.Take(subset); s != nil {
		return schema.FromSubset(s).JSON()
	}
	return d.Take(whole).Whole()
}
