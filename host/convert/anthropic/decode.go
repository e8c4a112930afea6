package anthropic

import (
	"encoding/json"
	"fmt"

	"github.com/toolroom-mcp/toolroom/host/convert"
	"github.com/toolroom-mcp/toolroom/host/convert/tree"
)

// DecodeRequest reads the body of POST /v1/messages.
func DecodeRequest(body json.RawMessage, o Options) (*convert.Request, convert.Losses, error) {
	v, err := tree.Parse(body)
	if err != nil {
		return nil, nil, fmt.Errorf("the request: %w", err)
	}
	if !v.Get("messages").Is(tree.Array) {
		return nil, nil, fmt.Errorf("the request has no array messages")
	}
	d := &decoder{o: o}
	r := &convert.Request{
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
	for _, s := range v.Take("stop_sequences").List() {
		r.Stop = append(r.Stop, s.Str())
	}
	if system := d.blocks(v.Take("system")); len(system) > 0 {
		r.Messages = append(r.Messages, convert.Message{Role: convert.System, Parts: system})
	}
	for _, m := range v.Take("messages").List() {
		r.Messages = append(r.Messages, d.message(m)...)
	}
	d.choice(v.Take("tool_choice"), r)
	convert.NameResults(r.Messages)
	var losses convert.Losses
	losses.Unread(v)
	return r, losses, nil
}

type decoder struct{ o Options }

func (d *decoder) choice(v *tree.Value, r *convert.Request) {
	kind := v.Take("type").Str()
	modes := map[string]convert.Mode{"auto": convert.Auto, "any": convert.Required, "none": convert.None, "tool": convert.Required}
	if modes[kind] == "" {
		return
	}
	r.Choice = &convert.Choice{Mode: modes[kind]}
	if kind == "tool" {
		r.Choice.Names = []string{d.o.Names.Own(v.Take("name").Str())}
	}
	if off := v.Take("disable_parallel_tool_use").Flag(); off != nil {
		on := !*off
		r.Parallel = &on
	}
}

// message reads one, which is several where results stand beside other parts.
func (d *decoder) message(m *tree.Value) []convert.Message {
	role := convert.Role(m.Take("role").Str())
	if role != convert.User && role != convert.Assistant && role != convert.System {
		return nil
	}
	return convert.Messages(role, d.blocks(m.Take("content")))
}

// blocks reads a content: text, or a list of blocks.
func (d *decoder) blocks(v *tree.Value) []convert.Part {
	if v.Is(tree.String) {
		if text := v.Str(); text != "" {
			return []convert.Part{{Type: convert.Text, Text: text}}
		}
		return nil
	}
	var parts []convert.Part
	for _, item := range v.List() {
		parts = append(parts, d.block(item))
	}
	return parts
}

func (d *decoder) block(v *tree.Value) convert.Part {
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
		return convert.Part{Type: convert.Text, Text: v.Take("text").Str()}
	case has("thinking", "thinking", "signature"):
		return convert.Part{Type: convert.Thinking, Text: v.Take("thinking").Str(), Signature: signed(v.Take("signature").Str())}
	case has("redacted_thinking", "data"):
		return convert.Part{Type: convert.Redacted, Signature: signed(v.Take("data").Str())}
	case v.Get("input").Is(tree.Object) && has("tool_use", "id", "name"):
		if caller := v.Get("caller").Get("type"); caller.Is(tree.String) && caller.Text == "direct" {
			v.Take("caller").Skip()
		}
		return convert.Part{Type: convert.Call, ToolCall: &convert.ToolCall{
			ID: v.Take("id").Str(), Name: d.o.Names.Own(v.Take("name").Str()), Args: v.Take("input").Whole(),
		}}
	case has("tool_result", "tool_use_id"):
		r := &convert.ToolResult{ID: v.Take("tool_use_id").Str(), Content: d.blocks(v.Take("content"))}
		if flag := v.Take("is_error").Flag(); flag != nil {
			r.IsError = *flag
		}
		return convert.Part{Type: convert.Result, ToolResult: r}
	}
	if p, ok := image(v); ok {
		return p
	}
	return convert.Part{Type: convert.Opaque, By: convert.Anthropic, Raw: v.Whole()}
}

func signed(value string) *convert.Signature {
	return &convert.Signature{By: convert.Anthropic, Value: value}
}

func image(v *tree.Value) (convert.Part, bool) {
	source := v.Get("source")
	kind := source.Get("type")
	if t := v.Get("type"); !t.Is(tree.String) || t.Text != "image" || !kind.Is(tree.String) {
		return convert.Part{}, false
	}
	m := &convert.Media{}
	switch {
	case kind.Text == "base64" && source.Get("data").Is(tree.String):
		m.MIME, m.Data = v.Take("source").Take("media_type").Str(), source.Take("data").Str()
	case kind.Text == "url" && source.Get("url").Is(tree.String):
		m.URL = v.Take("source").Take("url").Str()
	default:
		return convert.Part{}, false
	}
	v.Take("type").Str()
	source.Take("type").Str()
	return convert.Part{Type: convert.Image, Media: m}, true
}
