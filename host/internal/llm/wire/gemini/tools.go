// Package gemini encodes and decodes the wire format of generateContent, for the
// Gemini API and Vertex AI.
package gemini

import (
	"encoding/json"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/schema"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// NameRule returns the rule for names of functions that all versions of Gemini accept.
func NameRule() llm.NameRule { return llm.NameRule{Max: 64, LetterFirst: true} }

// Options are options of the encoders and decoders.
type Options struct {
	Names *llm.NameMap // of the request's tools; nil: invalid names are replaced

	// NoIDs omits the IDs of calls, for versions that do not know them.
	NoIDs bool

	// SkipSignatures marks calls by other models so that Gemini accepts them without a
	// signature.
	SkipSignatures bool
}

// EncodeTools encodes a request's tools as one group of declarations.
func EncodeTools(tools []llm.Tool, o Options) (*tree.Value, llm.Losses) {
	list, all := llm.EncodeTools(tools, func(t llm.Tool) (*tree.Value, llm.Losses) { return encodeTool(t, o) })
	if len(list.Items) == 0 {
		return list, nil
	}
	return tree.List(tree.Obj("functionDeclarations", list)), all
}

// encodeTool returns a function declaration, and what the format cannot express.
func encodeTool(t llm.Tool, o Options) (*tree.Value, llm.Losses) {
	var losses llm.Losses
	t.ReportUnsupported(&losses, "Gemini", true)
	d := t.NameAndDescription(o.Names, NameRule(), &losses)
	parameters := schema.Subset(t.Input, "/inputSchema", &losses)
	if len(parameters.Get("properties").PeekMembers()) > 0 {
		d.Set("parameters", parameters)
	} else {
		losses.AddEquivalent("/inputSchema", "Gemini omits the schema of a function without parameters", tree.Obj("type", tree.Str("object")))
	}
	if t.Output != nil {
		d.Set("response", schema.Subset(t.Output, "/outputSchema", &losses))
	}
	return d, losses
}

// DecodeTools decodes a request's tools. It returns the error of llm.DecodeTools; what it
// cannot read is a loss.
func DecodeTools(data json.RawMessage, o Options) ([]llm.Tool, llm.Losses, error) {
	return llm.DecodeTools(data, func(list *tree.Value) []llm.Tool { return decodeTools(list, o) })
}

// decodeTools returns the functions in the array tools.
func decodeTools(list *tree.Value, o Options) []llm.Tool {
	var tools []llm.Tool
	for _, group := range list.TakeItems() {
		for _, d := range group.Take("functionDeclarations").TakeItems() {
			t := llm.Tool{
				Name:        o.Names.FromVendor(d.Take("name").Str()),
				Description: d.Take("description").Str(),
				Input:       decodeSchema(d, "parameters", "parametersJsonSchema"),
				Output:      decodeSchema(d, "response", "responseJsonSchema"),
			}
			tools = append(tools, t)
		}
	}
	return tools
}

// decodeSchema returns the schema in d as JSON Schema. Gemini has two forms: the member
// subset has a Schema object, the member whole JSON Schema. It returns nil if there is
// neither.
func decodeSchema(d *tree.Value, subset, whole string) json.RawMessage {
	if s := d.Take(subset); s != nil {
		return schema.FromSubset(s).JSON()
	}
	return d.Take(whole).TakeRaw()
}
