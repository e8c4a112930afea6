package openai

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// EncodeRequest encodes the body of POST /v1/chat/completions.
func EncodeRequest(r *llm.Request, o Options) (*tree.Value, llm.Losses) {
	e := &encoder{o: o, names: llm.CallNames(r.Messages)}
	body := tree.Obj()
	if r.Model != "" {
		body.Set("model", tree.Str(r.Model))
	}
	body.Set("messages", e.encodeMessages(r.Messages))
	if len(r.Tools) > 0 {
		tools, losses := EncodeTools(r.Tools, o)
		e.losses = append(e.losses, losses...)
		body.Set("tools", tools)
	}
	if r.Choice != nil {
		body.Set("tool_choice", e.encodeChoice(r.Choice))
	}
	if r.Parallel != nil {
		body.Set("parallel_tool_calls", tree.Boolean(*r.Parallel))
	}
	if r.MaxTokens > 0 {
		name := "max_completion_tokens"
		if o.OldMaxTokens {
			name = "max_tokens"
		}
		body.Set(name, tree.Int(r.MaxTokens))
	}
	if r.Temperature != nil {
		body.Set("temperature", tree.Float(*r.Temperature))
	}
	if r.TopP != nil {
		body.Set("top_p", tree.Float(*r.TopP))
	}
	if r.TopK != 0 {
		e.losses.AddLost("/top_k", "OpenAI has no such field")
	}
	if len(r.StopSequences) > 0 {
		body.Set("stop", tree.Strs(r.StopSequences...))
	}
	if r.Format != nil {
		body.Set("response_format", tree.Raw(r.Format))
	}
	if r.Stream {
		body.Set("stream", tree.Boolean(true))
	}
	if r.StreamUsage {
		body.Set("stream_options", tree.Obj("include_usage", tree.Boolean(true)))
	}
	return body, e.losses
}

// encoder holds the state of encoding one request or response, and what the format cannot
// express. The parameter at of its methods is the JSON pointer of a value in the request,
// for losses.
type encoder struct {
	o      Options
	losses llm.Losses
	names  map[string]string // tool names of the calls in the conversation, by ID
}

// encodeChoice returns the value of tool_choice.
func (e *encoder) encodeChoice(c *llm.Choice) *tree.Value {
	function := func(name string) *tree.Value {
		sent := e.o.Names.ToVendorReported(NameRule(), name, llm.AppendIndex("/choice/names", slices.Index(c.ToolNames, name)), &e.losses)
		return tree.Obj("type", tree.Str("function"), "function", tree.Obj("name", tree.Str(sent)))
	}
	switch {
	case c.Mode == llm.ChoiceNone || len(c.ToolNames) == 0:
		if len(c.ToolNames) > 0 {
			e.losses.AddLost("/choice/names", "tool calls are disabled")
		}
		return tree.Str(string(c.Mode))
	case c.Mode == llm.ChoiceRequired && len(c.ToolNames) == 1:
		return function(c.ToolNames[0])
	}
	list := tree.List()
	for _, name := range c.ToolNames {
		list.Items = append(list.Items, function(name))
	}
	return tree.Obj("type", tree.Str("allowed_tools"), "allowed_tools", tree.Obj("mode", tree.Str(string(c.Mode)), "tools", list))
}

// encodeMessages returns the value of messages. Images of tool results follow in a message
// of the user.
func (e *encoder) encodeMessages(messages []llm.Message) *tree.Value {
	list := tree.List()
	var images []*tree.Value
	for i, m := range messages {
		at := llm.AppendIndex("/messages", i)
		if m.Role != llm.ToolRole && len(images) > 0 {
			list.Items = append(list.Items, imagesMessage(images))
			images = nil
		}
		switch m.Role {
		case llm.ToolRole:
			made, seen := e.encodeResults(m, at)
			list.Items = append(list.Items, made...)
			images = append(images, seen...)
			continue
		case llm.AssistantRole:
			if made := e.encodeAssistant(m, at); made != nil {
				list.Items = append(list.Items, made)
			}
			continue
		}
		if content := e.encodeContent(m, at); content != nil {
			made := tree.Obj("role", tree.Str(string(m.Role)), "content", content)
			if m.Name != "" {
				made.Set("name", tree.Str(m.Name))
			}
			list.Items = append(list.Items, made)
		}
	}
	if len(images) > 0 {
		list.Items = append(list.Items, imagesMessage(images))
	}
	return list
}

// encodeContent encodes the parts of a user or system message; nil: there are none.
func (e *encoder) encodeContent(m llm.Message, at string) *tree.Value {
	list := tree.List()
	for j, p := range m.Parts {
		here := llm.AppendIndex(at+"/parts", j)
		e.reportSignature(p, here)
		switch {
		case p.Type == llm.TextPart && p.Text == "":
		case p.Type == llm.TextPart:
			list.Items = append(list.Items, llm.TextBlock(p.Text))
		case p.Type == llm.ImagePart && m.Role == llm.UserRole:
			list.Items = append(list.Items, imagePart(p.Media))
			e.reportMedia(p.Media, here+"/media")
		case p.Type == llm.OpaquePart && p.Vendor == llm.OpenAI:
			list.Items = append(list.Items, tree.Raw(p.Raw))
		default:
			e.losses.AddLost(here, fmt.Sprintf("OpenAI's %s messages have no %s", m.Role, p.Type))
		}
	}
	return llm.CompactBlocks(list)
}

// reportMedia adds a loss for a member of an image that is not sent: the URL if the
// image also has data, or the MIME type if it has only a URL.
func (e *encoder) reportMedia(m *llm.Media, at string) {
	switch {
	case m.Data != "" && m.URL != "":
		e.losses.AddLost(at+"/url", "the image data was sent instead")
	case m.Data == "" && m.MIME != "":
		e.losses.AddLost(at+"/mime", "OpenAI takes the type from the URL's response")
	}
}

// imagePart returns an image_url part.
func imagePart(m *llm.Media) *tree.Value {
	url := m.URL
	if m.Data != "" {
		url = "data:" + m.MIME + ";base64," + m.Data
	}
	image := tree.Obj("url", tree.Str(url))
	if m.Detail != "" {
		image.Set("detail", tree.Str(m.Detail))
	}
	return tree.Obj("type", tree.Str("image_url"), "image_url", image)
}

// reportSignature adds a loss if the part is signed, except thinking, which has its own.
func (e *encoder) reportSignature(p llm.Part, at string) {
	if p.Signature != nil && p.Type != llm.ThinkingPart && p.Type != llm.RedactedPart {
		e.losses.AddLost(at+"/signature", "OpenAI's messages are not signed")
	}
}

// encodeAssistant returns a message of the assistant, nil if nothing of it is left to send.
// Calls are moved after the text.
func (e *encoder) encodeAssistant(m llm.Message, at string) *tree.Value {
	list, calls, thoughts := tree.List(), tree.List(), ""
	var said, called []llm.Part
	mixed := false
	for j, p := range m.Parts {
		here := llm.AppendIndex(at+"/parts", j)
		if p.Signature != nil && !(e.o.Extensions && p.Type == llm.CallPart && p.Signature.Vendor == llm.Gemini) {
			e.reportSignature(p, here)
			p.Signature = nil
		}
		switch {
		case p.Type == llm.TextPart && p.Text == "", p.Type == llm.RefusalPart && p.Text == "":
			continue
		case p.Type == llm.TextPart:
			list.Items = append(list.Items, llm.TextBlock(p.Text))
		case p.Type == llm.RefusalPart:
			list.Items = append(list.Items, tree.Obj("type", tree.Str("refusal"), "refusal", tree.Str(p.Text)))
		case p.Type == llm.CallPart:
			calls.Items = append(calls.Items, e.encodeCall(&p, here))
			called = append(called, p)
			continue
		case p.Type == llm.OpaquePart && p.Vendor == llm.OpenAI && isCustomCall(p):
			calls.Items = append(calls.Items, tree.Raw(p.Raw))
			called = append(called, p)
			continue
		case p.Type == llm.OpaquePart && p.Vendor == llm.OpenAI:
			list.Items = append(list.Items, tree.Raw(p.Raw))
		case p.Type == llm.ThinkingPart && e.o.Extensions && j == 0 && p.Text != "":
			thoughts = p.Text
			if m.Parts[j].Signature != nil {
				e.losses.AddLost(here+"/signature", "OpenAI's messages are not signed")
			}
		default:
			e.losses.AddLost(here, fmt.Sprintf("OpenAI's assistant messages have no %s", p.Type))
			continue
		}
		mixed = mixed || len(called) > 0
		said = append(said, p)
	}
	if mixed {
		e.losses.AddChanged(at+"/parts", "calls were moved after the text", llm.PartsJSON(append(said, called...)))
	}
	if len(said) == 0 && len(called) == 0 {
		return nil
	}
	return assistantMessage(m.Name, thoughts, list, calls)
}

// assistantMessage returns a message of the assistant. speaker is the participant's name.
// Each argument can be empty.
func assistantMessage(speaker, thoughts string, blocks, calls *tree.Value) *tree.Value {
	content := llm.CompactBlocks(blocks)
	if content == nil {
		content = &tree.Value{}
	}
	out := tree.Obj("role", tree.Str("assistant"), "content", content)
	if thoughts != "" {
		out.Set("reasoning_content", tree.Str(thoughts))
	}
	if speaker != "" {
		out.Set("name", tree.Str(speaker))
	}
	if len(calls.Items) > 0 {
		out.Set("tool_calls", calls)
	}
	return out
}

// isCustomCall reports whether an opaque part is a call of a custom tool.
func isCustomCall(p llm.Part) bool {
	kind := tree.Raw(p.Raw).Get("type")
	return kind.Is(tree.String) && kind.Text == "custom"
}

// encodeCall returns an entry of tool_calls, and sets p.ToolCall to a copy with the ID and
// arguments that a decoder would return.
func (e *encoder) encodeCall(p *llm.Part, at string) *tree.Value {
	c := *p.ToolCall
	arguments := c.Malformed
	if arguments == "" {
		c.Args = c.ArgumentsObject(at+"/call", &e.losses)
		arguments = string(c.Args)
	}
	c.ID = e.shortenID(c.ID, at+"/call/id")
	p.ToolCall = &c
	out := tree.Obj("id", tree.Str(c.ID), "type", tree.Str("function"), "function", tree.Obj(
		"name", tree.Str(e.o.Names.ToVendorReported(NameRule(), c.Name, at+"/call/name", &e.losses)), "arguments", tree.Str(arguments)))
	if p.Signature != nil {
		out.Set("extra_content", tree.Obj("google", tree.Obj("thought_signature", tree.Str(p.Signature.Value))))
	}
	return out
}

// shortenID returns the ID of a call, or a shorter one made from it if it has more than the
// 40 characters that OpenAI accepts, and adds a loss then.
func (e *encoder) shortenID(id, at string) string {
	if len(id) <= 40 {
		return id
	}
	short := llm.NameRule{Max: 40}.MakeValid(id)
	e.losses.AddEquivalent(at, "ids have at most 40 characters", tree.Str(short))
	return short
}

// Tool results have no error flag and no images in this format. The first line marks
// an error; a text that begins with this line gets another first line, to tell it from
// an error. Images follow the results in a message of the user.
const (
	errorMark  = "[tool error]\n"
	resultMark = "[tool result]\n"
	imagesMark = "[images of tool results]"
)

// imagePlaceholder returns the text that replaces image n, from 1, in the result of the call
// id.
func imagePlaceholder(id string, n int) string { return fmt.Sprintf("[image %d of %s]", n, id) }

// imagesMessage returns a message of the user with the images of tool results, each after
// its placeholder.
func imagesMessage(images []*tree.Value) *tree.Value {
	return tree.Obj("role", tree.Str("user"), "content", tree.List(append([]*tree.Value{llm.TextBlock(imagesMark)}, images...)...))
}

// encodeResults returns a message for each result, and the images of the results, each
// after its placeholder.
func (e *encoder) encodeResults(m llm.Message, at string) (messages, images []*tree.Value) {
	for j, p := range m.Parts {
		here := llm.AppendIndex(at+"/parts", j)
		if p.Type != llm.ResultPart {
			e.losses.AddLost(here, "tool messages can contain only results")
			continue
		}
		e.reportSignature(p, here)
		r := p.ToolResult
		path := here + "/result"
		if r.Name != e.names[r.ID] {
			e.losses.AddLost(path+"/name", "OpenAI's results have no tool name")
		}
		id := e.shortenID(r.ID, path+"/id")
		list, seen := tree.List(), 0
		for k, part := range r.ModelContent(llm.OpenAI, path, &e.losses) {
			switch part.Type {
			case llm.TextPart:
				if part.Text != "" {
					list.Items = append(list.Items, llm.TextBlock(part.Text))
				}
			case llm.ImagePart:
				seen++
				list.Items = append(list.Items, llm.TextBlock(imagePlaceholder(id, seen)))
				images = append(images, llm.TextBlock(imagePlaceholder(id, seen)), imagePart(part.Media))
				e.losses.AddEquivalent(llm.AppendIndex(path+"/content", k), "results contain only text; images were moved to a user message", llm.PartsJSON(part))
				e.reportMedia(part.Media, llm.AppendIndex(path+"/content", k)+"/media")
			case llm.OpaquePart:
				list.Items = append(list.Items, tree.Raw(part.Raw))
			}
		}
		markError(list, r.IsError)
		if r.IsError {
			e.losses.AddEquivalent(path+"/is_error", "results have no error flag; the text reports the error", tree.Boolean(true))
		}
		content := llm.CompactBlocks(list)
		if content == nil {
			content = tree.Str("")
		}
		messages = append(messages, tree.Obj("role", tree.Str("tool"), "tool_call_id", tree.Str(id), "content", content))
	}
	return messages, images
}

// markError sets errorMark before the first text of a result that is an error, and
// resultMark before any other result that begins with a mark.
func markError(list *tree.Value, isError bool) {
	first := ""
	if len(list.Items) > 0 && list.Items[0].Get("text").Is(tree.String) {
		first = list.Items[0].Get("text").Text
	}
	line := ""
	switch {
	case isError:
		line = errorMark
	case strings.HasPrefix(first, errorMark), strings.HasPrefix(first, resultMark):
		line = resultMark
	default:
		return
	}
	if first == "" {
		list.Items = append([]*tree.Value{llm.TextBlock(line)}, list.Items...)
		return
	}
	list.Items[0] = llm.TextBlock(line + first)
}
