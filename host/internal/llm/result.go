package llm

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// ModelContent returns the parts of a tool's result that a model of the vendor gets:
// texts, images, and opaque content of this vendor. Other MCP content becomes text. The
// parts have the same indexes as in Content; a part that is not sent is empty. Without
// Content, the structured result becomes a text. What is not sent is added to losses, with
// pointers below path.
func (r *ToolResult) ModelContent(vendor Vendor, path string, losses *Losses) []Part {
	for i := range r.ExtraMembers {
		losses.AddLost(AppendIndex(path+"/others", i), "not sent to models")
	}
	if r.Structured != nil && len(r.Content) == 0 {
		text := Part{Type: TextPart, Text: string(r.Structured)}
		losses.AddChanged(path+"/content", "structured content became text", asJSON([]Part{text}))
		losses.AddEquivalent(path+"/structured", "structured content became text", nil)
		return []Part{text}
	}
	if r.Structured != nil {
		losses.AddLost(path+"/structured", "the content has the same data")
	}
	parts := make([]Part, len(r.Content))
	for i, p := range r.Content {
		at := AppendIndex(path+"/content", i)
		switch {
		case p.Type == TextPart, p.Type == ImagePart, p.Type == OpaquePart && p.Vendor == vendor:
		case p.Type == OpaquePart && p.Vendor == MCP:
			p = describeBlock(p)
			losses.AddChanged(at, "resources became text", asJSON(p))
		default:
			losses.AddLost(at, "results have no "+string(p.Type)+" for this vendor")
			p = Part{}
		}
		if p.Signature != nil {
			losses.AddLost(at+"/signature", "results are not signed")
			p.Signature = nil
		}
		parts[i] = p
	}
	return parts
}

// asJSON returns v as a JSON tree, null if it cannot be encoded.
func asJSON(v any) *tree.Value {
	raw, err := json.Marshal(v)
	if err != nil {
		return &tree.Value{}
	}
	return tree.Raw(raw)
}

// PartsJSON returns parts, or one part, as a JSON tree for Loss.Replacement.
func PartsJSON[T []Part | Part](v T) *tree.Value { return asJSON(v) }

// ChoiceJSON returns a choice as a JSON tree for Loss.Replacement.
func ChoiceJSON(c *Choice) *tree.Value { return asJSON(c) }

// describeBlock returns an MCP content block (p.Raw) as a text or image: a resource by
// its URI and text, other blocks by their type or size.
func describeBlock(p Part) Part {
	v := tree.Raw(p.Raw)
	text := func(pointer string) string {
		if found := v.At(pointer); found.Is(tree.String) {
			return found.Text
		}
		return ""
	}
	uri := text("/uri") + text("/resource/uri")
	mime := text("/mimeType") + text("/resource/mimeType")
	blob := text("/data") + text("/resource/blob")
	if kind := text("/type"); kind == "text" || kind == "image" { // it has members, such as annotations, for which Part has no field
		if kind == "text" {
			return Part{Type: TextPart, Text: text("/text")}
		}
		return Part{Type: ImagePart, Media: &Media{MIME: mime, Data: blob}}
	}
	switch {
	case text("/resource/text") != "":
		return Part{Type: TextPart, Text: fmt.Sprintf("[%s]\n%s", uri, text("/resource/text"))}
	case blob != "" && strings.HasPrefix(mime, "image/"):
		return Part{Type: ImagePart, Media: &Media{MIME: mime, Data: blob}}
	case blob != "":
		return Part{Type: TextPart, Text: strings.TrimSpace(fmt.Sprintf("[%s, %d bytes] %s", mime, len(blob)/4*3, uri))}
	case uri != "":
		return Part{Type: TextPart, Text: strings.TrimSpace(fmt.Sprintf("[%s] %s\n%s", uri, text("/name"), text("/description")))}
	}
	return Part{Type: TextPart, Text: fmt.Sprintf("[%s]", text("/type"))}
}

// FillResultNames sets, in place, the tool names of results that have none, from the
// calls before them with the same ID.
func FillResultNames(messages []Message) {
	names := map[string]string{}
	for _, m := range messages {
		for _, p := range m.Parts {
			switch {
			case p.ToolCall != nil:
				names[p.ToolCall.ID] = p.ToolCall.Name
			case p.ToolResult != nil && p.ToolResult.Name == "":
				p.ToolResult.Name = names[p.ToolResult.ID]
			}
		}
	}
}

// CallNames returns the tool names of the calls in a conversation by call ID.
func CallNames(messages []Message) map[string]string {
	names := map[string]string{}
	for _, m := range messages {
		for _, p := range m.Parts {
			if p.ToolCall != nil {
				names[p.ToolCall.ID] = p.ToolCall.Name
			}
		}
	}
	return names
}

// ArgumentsObject returns the arguments as a JSON object. Malformed arguments are
// wrapped in an object as malformed_arguments, and nil becomes {}; both are added to
// losses, with pointers below path.
func (c *ToolCall) ArgumentsObject(path string, losses *Losses) json.RawMessage {
	switch {
	case c.Malformed != "":
		told := tree.Obj("malformed_arguments", tree.Str(c.Malformed))
		losses.AddEquivalent(path+"/malformed", "arguments must be an object", nil)
		losses.AddChanged(path+"/args", "the model's arguments are not an object", told)
		return told.JSON()
	case c.Args == nil:
		losses.AddEquivalent(path+"/args", "missing arguments became an empty object", tree.Obj())
		return json.RawMessage(`{}`)
	}
	return c.Args
}
