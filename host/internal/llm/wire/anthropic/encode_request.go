package anthropic

import (
	"fmt"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// EncodeRequest encodes the body of POST /v1/messages.
func EncodeRequest(r *llm.Request, o Options) (*tree.Value, llm.Losses) {
	e := &encoder{o: o, names: llm.CallNames(r.Messages)}
	messages := llm.SystemFirst(r.Messages, &e.losses)
	body := tree.Obj()
	if r.Model != "" {
		body.Set("model", tree.Str(r.Model))
	}
	e.encodeSettings(r, body)
	system := tree.List()
	for i, m := range messages {
		if m.Role == llm.SystemRole || m.Role == llm.DeveloperRole {
			system.Items = append(system.Items, e.encodeSystem(m, llm.AppendIndex("/messages", i))...)
		}
	}
	if content := llm.CompactBlocks(system); content != nil {
		body.Set("system", content)
	}
	body.Set("messages", e.encodeMessages(messages))
	if len(r.Tools) > 0 {
		tools, losses := EncodeTools(r.Tools, o)
		e.losses = append(e.losses, losses...)
		body.Set("tools", tools)
	}
	if choice := e.encodeChoice(r); choice != nil {
		body.Set("tool_choice", choice)
	}
	return body, e.losses
}

// An encoder holds the state of encoding one request or response, and what the format
// cannot express. The parameter at of its methods is the JSON pointer of a value in the
// request, for losses.
type encoder struct {
	o      Options
	losses llm.Losses
	names  map[string]string // tool names of the calls in the conversation, by ID
}

// encodeSettings sets max_tokens (4096 if neither the request nor the options give it),
// the sampling settings, stop_sequences and stream of body.
func (e *encoder) encodeSettings(r *llm.Request, body *tree.Value) {
	limit := r.MaxTokens
	if limit == 0 {
		if limit = e.o.MaxTokens; limit == 0 {
			limit = 4096
		}
		e.losses.AddChanged("/max_tokens", "Anthropic requires max_tokens", tree.Int(limit))
	}
	body.Set("max_tokens", tree.Int(limit))
	if r.Temperature != nil {
		t := tree.Float(*r.Temperature)
		if *r.Temperature > 1 {
			t = tree.Int(1)
			e.losses.AddChanged("/temperature", "Anthropic's maximum is 1", t)
		}
		body.Set("temperature", t)
	}
	if r.TopP != nil {
		body.Set("top_p", tree.Float(*r.TopP))
	}
	if r.TopK != 0 {
		body.Set("top_k", tree.Int(r.TopK))
	}
	if r.Format != nil {
		e.losses.AddLost("/format", "a response format is not supported")
	}
	if len(r.StopSequences) > 0 {
		body.Set("stop_sequences", tree.Strs(r.StopSequences...))
	}
	if r.Stream {
		body.Set("stream", tree.Boolean(true))
	}
	if r.StreamUsage {
		e.losses.AddEquivalent("/stream_usage", "streams always report usage", nil)
	}
}

// encodeChoice returns the value of tool_choice; nil if it is not needed.
func (e *encoder) encodeChoice(r *llm.Request) *tree.Value {
	c := r.Choice
	if c == nil {
		if r.Parallel == nil {
			return nil
		}
		c = &llm.Choice{Mode: llm.ChoiceAuto}
		e.losses.AddEquivalent("/choice", "tool_choice carries the setting for parallel calls", llm.ChoiceJSON(c))
	}
	out := tree.Obj("type", tree.Str("auto"))
	switch {
	case c.Mode == llm.ChoiceNone:
		out = tree.Obj("type", tree.Str("none"))
	case c.Mode == llm.ChoiceRequired && len(c.ToolNames) == 1:
		out = tree.Obj("type", tree.Str("tool"), "name", tree.Str(e.o.Names.ToVendorReported(NameRule(), c.ToolNames[0], "/choice/names/0", &e.losses)))
	case c.Mode == llm.ChoiceRequired:
		out = tree.Obj("type", tree.Str("any"))
	}
	if len(c.ToolNames) > 0 && (c.Mode != llm.ChoiceRequired || len(c.ToolNames) > 1) {
		e.losses.AddLost("/choice/names", "Anthropic's tool_choice can name only one tool; send only the allowed tools instead")
	}
	switch {
	case r.Parallel == nil:
	case c.Mode == llm.ChoiceNone:
		e.losses.AddLost("/parallel", "tool calls are disabled")
	default:
		out.Set("disable_parallel_tool_use", tree.Boolean(!*r.Parallel))
	}
	return out
}

// encodeSystem returns the text blocks of a system message.
func (e *encoder) encodeSystem(m llm.Message, at string) []*tree.Value {
	var list []*tree.Value
	if m.Role == llm.DeveloperRole {
		e.losses.AddEquivalent(at+"/role", "developer messages became system messages", tree.Str(string(llm.SystemRole)))
	}
	e.reportName(m, at)
	for j, p := range m.Parts {
		here := llm.AppendIndex(at+"/parts", j)
		switch {
		case p.Type == llm.TextPart && p.Text != "":
			e.reportSignature(p, here)
			list = append(list, llm.TextBlock(p.Text))
		case p.Type == llm.OpaquePart && p.Vendor == llm.Anthropic:
			list = append(list, tree.Raw(p.Raw))
		case p.Type != llm.TextPart:
			e.losses.AddLost(here, "Anthropic's system messages contain only text")
		}
	}
	return list
}

// reportName adds a loss if the message has a name.
func (e *encoder) reportName(m llm.Message, at string) {
	if m.Name != "" {
		e.losses.AddLost(at+"/name", "Anthropic's messages have no name")
	}
}

// reportSignature adds a loss if the part is signed.
func (e *encoder) reportSignature(p llm.Part, at string) {
	if p.Signature != nil {
		e.losses.AddLost(at+"/signature", "Anthropic signs only thinking")
	}
}

// encodeMessages returns the value of messages: turns of user and assistant. Tool
// results belong to the user's turns; system messages are left out.
func (e *encoder) encodeMessages(messages []llm.Message) *tree.Value {
	list := tree.List()
	role, content := "", tree.List()
	flush := func() {
		if c := llm.CompactBlocks(content); c != nil {
			list.Items = append(list.Items, tree.Obj("role", tree.Str(role), "content", c))
		}
		content = tree.List()
	}
	for i, m := range messages {
		at := llm.AppendIndex("/messages", i)
		side := "user"
		switch m.Role {
		case llm.SystemRole, llm.DeveloperRole:
			continue
		case llm.AssistantRole:
			side = "assistant"
		}
		if side != role {
			flush()
			role = side
		}
		e.reportName(m, at)
		content.Items = append(content.Items, e.encodeParts(m, at+"/parts")...)
	}
	flush()
	return list
}

// encodeParts returns the blocks of a message. What the format cannot express is added
// to the losses.
func (e *encoder) encodeParts(m llm.Message, at string) []*tree.Value {
	var list []*tree.Value
	for j, p := range m.Parts {
		here := llm.AppendIndex(at, j)
		own := p.Signature != nil && p.Signature.Vendor == llm.Anthropic
		says := m.Role == llm.AssistantRole
		switch {
		case p.Type == llm.ThinkingPart && says && own:
			list = append(list, tree.Obj("type", tree.Str("thinking"), "thinking", tree.Str(p.Text), "signature", tree.Str(p.Signature.Value)))
			continue
		case p.Type == llm.RedactedPart && says && own:
			list = append(list, tree.Obj("type", tree.Str("redacted_thinking"), "data", tree.Str(p.Signature.Value)))
			continue
		case p.Type == llm.ThinkingPart || p.Type == llm.RedactedPart:
			e.losses.AddLost(here, "Anthropic accepts only thinking with its own signature")
			continue
		case p.Type == llm.TextPart && m.Role != llm.ToolRole:
			if p.Text == "" && p.Signature != nil {
				e.losses.AddLost(here, "Anthropic's text has no signature and cannot be empty")
				continue
			}
			if p.Text != "" {
				list = append(list, llm.TextBlock(p.Text))
			}
		case p.Type == llm.RefusalPart && says:
			if p.Text != "" {
				e.losses.AddChanged(here+"/type", "a refusal became text", tree.Str(string(llm.TextPart)))
				list = append(list, llm.TextBlock(p.Text))
			}
		case p.Type == llm.ImagePart && m.Role == llm.UserRole:
			list = append(list, e.encodeImage(p.Media, here+"/media"))
		case p.Type == llm.CallPart && says:
			list = append(list, tree.Obj("type", tree.Str("tool_use"), "id", tree.Str(e.validID(p.ToolCall.ID, here+"/call/id")),
				"name", tree.Str(e.o.Names.ToVendorReported(NameRule(), p.ToolCall.Name, here+"/call/name", &e.losses)), "input", tree.Raw(p.ToolCall.ArgumentsObject(here+"/call", &e.losses))))
		case p.Type == llm.ResultPart && m.Role == llm.ToolRole:
			list = append(list, e.encodeResult(p.ToolResult, here+"/result"))
		case p.Type == llm.OpaquePart && p.Vendor == llm.Anthropic && m.Role != llm.ToolRole:
			list = append(list, tree.Raw(p.Raw))
		default:
			e.losses.AddLost(here, fmt.Sprintf("Anthropic's %s messages have no %s", m.Role, p.Type))
			continue
		}
		e.reportSignature(p, here)
	}
	return list
}

// validID returns the ID, or a valid one made from it if it has other characters than
// letters, digits, _ and -, or more than 64; it adds a loss then.
func (e *encoder) validID(id, at string) string {
	short := llm.NameRule{Max: 64}.MakeValid(id)
	if short != id {
		e.losses.AddEquivalent(at, "ids can contain only letters, digits, _ and -", tree.Str(short))
	}
	return short
}

// encodeImage returns an image block.
func (e *encoder) encodeImage(m *llm.Media, at string) *tree.Value {
	if m.Detail != "" {
		e.losses.AddLost(at+"/detail", "Anthropic has no such field")
	}
	if m.Data == "" {
		if m.MIME != "" {
			e.losses.AddLost(at+"/mime", "Anthropic takes the type from the URL's response")
		}
		return tree.Obj("type", tree.Str("image"), "source", tree.Obj("type", tree.Str("url"), "url", tree.Str(m.URL)))
	}
	if m.URL != "" {
		e.losses.AddLost(at+"/url", "the image data was sent instead")
	}
	if m.MIME == "" {
		e.losses.AddEquivalent(at+"/mime", "detected from the content", tree.Str(m.Type()))
	}
	return tree.Obj("type", tree.Str("image"), "source", tree.Obj("type", tree.Str("base64"), "media_type", tree.Str(m.Type()), "data", tree.Str(m.Data)))
}

// encodeResult returns a tool_result block.
func (e *encoder) encodeResult(r *llm.ToolResult, at string) *tree.Value {
	if r.Name != e.names[r.ID] && r.Name != "" {
		e.losses.AddLost(at+"/name", "Anthropic's results have no tool name")
	}
	out := tree.Obj("type", tree.Str("tool_result"), "tool_use_id", tree.Str(e.validID(r.ID, at+"/id")))
	list := tree.List()
	for k, p := range r.ModelContent(llm.Anthropic, at, &e.losses) {
		switch {
		case p.Type == llm.TextPart && p.Text != "":
			list.Items = append(list.Items, llm.TextBlock(p.Text))
		case p.Type == llm.ImagePart:
			list.Items = append(list.Items, e.encodeImage(p.Media, llm.AppendIndex(at+"/content", k)+"/media"))
		case p.Type == llm.OpaquePart:
			list.Items = append(list.Items, tree.Raw(p.Raw))
		}
	}
	if content := llm.CompactBlocks(list); content != nil {
		out.Set("content", content)
	}
	if r.IsError {
		out.Set("is_error", tree.Boolean(true))
	}
	return out
}
