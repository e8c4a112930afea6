package anthropic

import (
	"encoding/json"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// DecodeRequest decodes the body of POST /v1/messages. It returns an error if the body is
// not JSON or has no list of messages; other members that it cannot read are losses.
func DecodeRequest(body json.RawMessage, o Options) (*llm.Request, llm.Losses, error) {
	v, err := tree.ParseRequest(body, "messages")
	if err != nil {
		return nil, nil, err
	}
	d := &decoder{o: o}
	r := &llm.Request{
		Model:       v.Take("model").Str(),
		MaxTokens:   v.Take("max_tokens").Int(),
		Temperature: v.Take("temperature").Float(),
		TopP:        v.Take("top_p").Float(),
		TopK:        v.Take("top_k").Int(),
		Tools:       decodeTools(v.Take("tools"), o),
	}
	if stream := v.Take("stream").Flag(); stream != nil {
		r.Stream = *stream
	}
	for _, s := range v.Take("stop_sequences").TakeItems() {
		r.StopSequences = append(r.StopSequences, s.Str())
	}
	if system := d.decodeContent(v.Take("system")); len(system) > 0 {
		r.Messages = append(r.Messages, llm.Message{Role: llm.SystemRole, Parts: system})
	}
	for _, m := range v.Take("messages").TakeItems() {
		r.Messages = append(r.Messages, d.decodeMessage(m)...)
	}
	d.decodeChoice(v.Take("tool_choice"), r)
	llm.FillResultNames(r.Messages)
	var losses llm.Losses
	losses.AddUnread(v)
	return r, losses, nil
}

// A decoder holds the options of decoding one request or response.
type decoder struct{ o Options }

// decodeChoice sets r.Choice and r.Parallel from tool_choice. It ignores an unknown
// type.
func (d *decoder) decodeChoice(v *tree.Value, r *llm.Request) {
	kind := v.Take("type").Str()
	modes := map[string]llm.ChoiceMode{"auto": llm.ChoiceAuto, "any": llm.ChoiceRequired, "none": llm.ChoiceNone, "tool": llm.ChoiceRequired}
	if modes[kind] == "" {
		return
	}
	r.Choice = &llm.Choice{Mode: modes[kind]}
	if kind == "tool" {
		r.Choice.ToolNames = []string{d.o.Names.FromVendor(v.Take("name").Str())}
	}
	if off := v.Take("disable_parallel_tool_use").Flag(); off != nil {
		on := !*off
		r.Parallel = &on
	}
}

// decodeMessage returns a message as several messages if tool results are next to other
// parts; none for an unknown role.
func (d *decoder) decodeMessage(m *tree.Value) []llm.Message {
	role := llm.Role(m.Take("role").Str())
	if role != llm.UserRole && role != llm.AssistantRole && role != llm.SystemRole {
		return nil
	}
	return llm.SplitResults(role, d.decodeContent(m.Take("content")))
}

// decodeContent returns the parts of a content, which is a text or a list of blocks.
func (d *decoder) decodeContent(v *tree.Value) []llm.Part {
	if v.Is(tree.String) {
		if text := v.Str(); text != "" {
			return []llm.Part{{Type: llm.TextPart, Text: text}}
		}
		return nil
	}
	var parts []llm.Part
	for _, item := range v.TakeItems() {
		parts = append(parts, d.decodeBlock(item))
	}
	return parts
}

// decodeBlock returns a content block as a part. An unknown block is kept as it is.
func (d *decoder) decodeBlock(v *tree.Value) llm.Part {
	has := func(kind string, members ...string) bool {
		if t := v.Get("type"); !t.Is(tree.String) || t.Text != kind {
			return false
		}
		for _, name := range members {
			if !v.Get(name).Is(tree.String) {
				return false
			}
		}
		v.Take("type").Str()
		return true
	}
	switch {
	case has("text", "text"):
		return llm.Part{Type: llm.TextPart, Text: v.Take("text").Str()}
	case has("thinking", "thinking", "signature"):
		return llm.Part{Type: llm.ThinkingPart, Text: v.Take("thinking").Str(), Signature: signature(v.Take("signature").Str())}
	case has("redacted_thinking", "data"):
		return llm.Part{Type: llm.RedactedPart, Signature: signature(v.Take("data").Str())}
	case v.Get("input").Is(tree.Object) && has("tool_use", "id", "name"):
		if caller := v.Get("caller").Get("type"); caller.Is(tree.String) && caller.Text == "direct" {
			v.Take("caller").MarkAllRead()
		}
		return llm.Part{Type: llm.CallPart, ToolCall: &llm.ToolCall{
			ID: v.Take("id").Str(), Name: d.o.Names.FromVendor(v.Take("name").Str()), Args: v.Take("input").TakeRaw(),
		}}
	case has("tool_result", "tool_use_id"):
		r := &llm.ToolResult{ID: v.Take("tool_use_id").Str(), Content: d.decodeContent(v.Take("content"))}
		if flag := v.Take("is_error").Flag(); flag != nil {
			r.IsError = *flag
		}
		return llm.Part{Type: llm.ResultPart, ToolResult: r}
	}
	if p, ok := decodeImage(v); ok {
		return p
	}
	return llm.Part{Type: llm.OpaquePart, Vendor: llm.Anthropic, Raw: v.TakeRaw()}
}

// signature returns value as a signature of Anthropic's.
func signature(value string) *llm.Signature {
	return &llm.Signature{Vendor: llm.Anthropic, Value: value}
}

// decodeImage returns an image block as a part. It returns false if v is not an image, or its
// source is neither base64 nor url.
func decodeImage(v *tree.Value) (llm.Part, bool) {
	source := v.Get("source")
	kind := source.Get("type")
	if t := v.Get("type"); !t.Is(tree.String) || t.Text != "image" || !kind.Is(tree.String) {
		return llm.Part{}, false
	}
	m := &llm.Media{}
	switch {
	case kind.Text == "base64" && source.Get("data").Is(tree.String):
		m.MIME, m.Data = v.Take("source").Take("media_type").Str(), source.Take("data").Str()
	case kind.Text == "url" && source.Get("url").Is(tree.String):
		m.URL = v.Take("source").Take("url").Str()
	default:
		return llm.Part{}, false
	}
	v.Take("type").Str()
	source.Take("type").Str()
	return llm.Part{Type: llm.ImagePart, Media: m}, true
}
