package llm

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// Shown returns the parts of a tool's result that models get: texts, images, and
// opaque content of this vendor. Other content of MCP becomes text. The parts have
// their indexes in Content.
func (r *ToolResult) Shown(vendor Vendor, path string, losses *Losses) []Part {
	for i := range r.Others {
		losses.Lose(Index(path+"/others", i), "not sent to models")
	}
	if r.Structured != nil && len(r.Content) == 0 {
		text := Part{Type: Text, Text: string(r.Structured)}
		losses.Change(path+"/content", "structured content became text", value([]Part{text}))
		losses.Carry(path+"/structured", "structured content became text", nil)
		return []Part{text}
	}
	if r.Structured != nil {
		losses.Lose(path+"/structured", "the content has the same data")
	}
	parts := make([]Part, len(r.Content))
	for i, p := range r.Content {
		at := Index(path+"/content", i)
		switch {
		case p.Type == Text, p.Type == Image, p.Type == Opaque && p.By == vendor:
		case p.Type == Opaque && p.By == MCP:
			p = describe(p)
			losses.Change(at, "resources became text", value(p))
		default:
			losses.Lose(at, "results have no "+string(p.Type)+" for this vendor")
			p = Part{}
		}
		if p.Signature != nil {
			losses.Lose(at+"/signature", "results are not signed")
			p.Signature = nil
		}
		parts[i] = p
	}
	return parts
}

// value is v as its JSON says it.
func value(v any) *tree.Value {
	raw, err := json.Marshal(v)
	if err != nil {
		return &tree.Value{}
	}
	return tree.Raw(raw)
}

// Value is a part of the model as its JSON says it, for reports.
func Value[T []Part | Part](v T) *tree.Value { return value(v) }

// ChoiceValue is a choice as its JSON says it.
func ChoiceValue(c *Choice) *tree.Value { return value(c) }

// describe tells in text what a block of MCP's is.
func describe(p Part) Part {
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
	if kind := text("/type"); kind == "text" || kind == "image" { // with annotations or the like
		if kind == "text" {
			return Part{Type: Text, Text: text("/text")}
		}
		return Part{Type: Image, Media: &Media{MIME: mime, Data: blob}}
	}
	switch {
	case text("/resource/text") != "":
		return Part{Type: Text, Text: fmt.Sprintf("[%s]\n%s", uri, text("/resource/text"))}
	case blob != "" && strings.HasPrefix(mime, "image/"):
		return Part{Type: Image, Media: &Media{MIME: mime, Data: blob}}
	case blob != "":
		return Part{Type: Text, Text: strings.TrimSpace(fmt.Sprintf("[%s, %d bytes] %s", mime, len(blob)/4*3, uri))}
	case uri != "":
		return Part{Type: Text, Text: strings.TrimSpace(fmt.Sprintf("[%s] %s\n%s", uri, text("/name"), text("/description")))}
	}
	return Part{Type: Text, Text: fmt.Sprintf("[%s]", text("/type"))}
}

// NameResults gives results the names of the tools that were called, where
// they have none.
func NameResults(messages []Message) {
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

// CalledNames are the names of the calls in a conversation, by their ids.
func CalledNames(messages []Message) map[string]string {
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

// Arguments returns a call's arguments as an object. Those that are none are
// told in one, and nil are empty.
func (c *ToolCall) Arguments(path string, losses *Losses) json.RawMessage {
	switch {
	case c.Malformed != "":
		told := tree.Obj("malformed_arguments", tree.Str(c.Malformed))
		losses.Carry(path+"/malformed", "arguments must be an object", nil)
		losses.Change(path+"/args", "the model's arguments are not an object", told)
		return told.JSON()
	case c.Args == nil:
		losses.Carry(path+"/args", "missing arguments became an empty object", tree.Obj())
		return json.RawMessage(`{}`)
	}
	return c.Args
}
