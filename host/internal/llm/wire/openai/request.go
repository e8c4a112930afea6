package openai

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// EncodeRequest writes the body of POST /v1/chat/completions.
func EncodeRequest(r *llm.Request, o Options) (*tree.Value, llm.Losses) {
	e := &encoder{o: o, names: llm.CalledNames(r.Messages)}
	body := tree.Obj()
	if r.Model != "" {
		body.Set("model", tree.Str(r.Model))
	}
	body.Set("messages", e.messages(r.Messages))
	if len(r.Tools) > 0 {
		tools, losses := EncodeTools(r.Tools, o)
		e.losses = append(e.losses, losses...)
		body.Set("tools", tools)
	}
	if r.Choice != nil {
		body.Set("tool_choice", e.choice(r.Choice))
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
		e.losses.Lose("/top_k", "OpenAI has no such field")
	}
	if len(r.Stop) > 0 {
		body.Set("stop", tree.Strs(r.Stop...))
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

type encoder struct {
	o      Options
	losses llm.Losses
	names  map[string]string // of the conversation's calls, by id
}

func (e *encoder) choice(c *llm.Choice) *tree.Value {
	function := func(name string) *tree.Value {
		sent := e.o.Names.Send(Rule(), name, llm.Index("/choice/names", slices.Index(c.Names, name)), &e.losses)
		return tree.Obj("type", tree.Str("function"), "function", tree.Obj("name", tree.Str(sent)))
	}
	switch {
	case c.Mode == llm.None || len(c.Names) == 0:
		if len(c.Names) > 0 {
			e.losses.Lose("/choice/names", "tool calls are disabled")
		}
		return tree.Str(string(c.Mode))
	case c.Mode == llm.Required && len(c.Names) == 1:
		return function(c.Names[0])
	}
	list := tree.List()
	for _, name := range c.Names {
		list.Items = append(list.Items, function(name))
	}
	return tree.Obj("type", tree.Str("allowed_tools"), "allowed_tools", tree.Obj("mode", tree.Str(string(c.Mode)), "tools", list))
}

func (e *encoder) messages(messages []llm.Message) *tree.Value {
	list := tree.List()
	var images []*tree.Value
	for i, m := range messages {
		at := llm.Index("/messages", i)
		if m.Role != llm.ToolRole && len(images) > 0 {
			list.Items = append(list.Items, carrier(images))
			images = nil
		}
		switch m.Role {
		case llm.ToolRole:
			made, seen := e.results(m, at)
			list.Items = append(list.Items, made...)
			images = append(images, seen...)
			continue
		case llm.Assistant:
			if made := e.assistant(m, at); made != nil {
				list.Items = append(list.Items, made)
			}
			continue
		}
		if content := e.content(m, at); content != nil {
			made := tree.Obj("role", tree.Str(string(m.Role)), "content", content)
			if m.Name != "" {
				made.Set("name", tree.Str(m.Name))
			}
			list.Items = append(list.Items, made)
		}
	}
	if len(images) > 0 {
		list.Items = append(list.Items, carrier(images))
	}
	return list
}

// content writes the parts of a user or system message; nil: there are none.
func (e *encoder) content(m llm.Message, at string) *tree.Value {
	list := tree.List()
	for j, p := range m.Parts {
		here := llm.Index(at+"/parts", j)
		e.unsigned(p, here)
		switch {
		case p.Type == llm.Text && p.Text == "":
		case p.Type == llm.Text:
			list.Items = append(list.Items, llm.TextBlock(p.Text))
		case p.Type == llm.Image && m.Role == llm.User:
			list.Items = append(list.Items, imagePart(p.Media))
			e.media(p.Media, here+"/media")
		case p.Type == llm.Opaque && p.By == llm.OpenAI:
			list.Items = append(list.Items, tree.Raw(p.Raw))
		default:
			e.losses.Lose(here, fmt.Sprintf("OpenAI's %s messages have no %s", m.Role, p.Type))
		}
	}
	return llm.Blocks(list)
}

// media tells what an image loses: with its bytes in it, its address.
func (e *encoder) media(m *llm.Media, at string) {
	switch {
	case m.Data != "" && m.URL != "":
		e.losses.Lose(at+"/url", "the image data was sent instead")
	case m.Data == "" && m.MIME != "":
		e.losses.Lose(at+"/mime", "OpenAI takes the type from the URL's response")
	}
}

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

// unsigned reports a signature that is not sent.
func (e *encoder) unsigned(p llm.Part, at string) {
	if p.Signature != nil && p.Type != llm.Thinking && p.Type != llm.Redacted {
		e.losses.Lose(at+"/signature", "OpenAI's messages are not signed")
	}
}

func (e *encoder) assistant(m llm.Message, at string) *tree.Value {
	list, calls, thoughts := tree.List(), tree.List(), ""
	var said, called []llm.Part
	mixed := false
	for j, p := range m.Parts {
		here := llm.Index(at+"/parts", j)
		if p.Signature != nil && !(e.o.Extensions && p.Type == llm.Call && p.Signature.By == llm.Gemini) {
			e.unsigned(p, here)
			p.Signature = nil
		}
		switch {
		case p.Type == llm.Text && p.Text == "", p.Type == llm.Refusal && p.Text == "":
			continue
		case p.Type == llm.Text:
			list.Items = append(list.Items, llm.TextBlock(p.Text))
		case p.Type == llm.Refusal:
			list.Items = append(list.Items, tree.Obj("type", tree.Str("refusal"), "refusal", tree.Str(p.Text)))
		case p.Type == llm.Call:
			calls.Items = append(calls.Items, e.call(&p, here))
			called = append(called, p)
			continue
		case p.Type == llm.Opaque && p.By == llm.OpenAI && isCall(p):
			calls.Items = append(calls.Items, tree.Raw(p.Raw))
			called = append(called, p)
			continue
		case p.Type == llm.Opaque && p.By == llm.OpenAI:
			list.Items = append(list.Items, tree.Raw(p.Raw))
		case p.Type == llm.Thinking && e.o.Extensions && j == 0 && p.Text != "":
			thoughts = p.Text
			if m.Parts[j].Signature != nil {
				e.losses.Lose(here+"/signature", "OpenAI's messages are not signed")
			}
		default:
			e.losses.Lose(here, fmt.Sprintf("OpenAI's assistant messages have no %s", p.Type))
			continue
		}
		mixed = mixed || len(called) > 0
		said = append(said, p)
	}
	if mixed {
		e.losses.Change(at+"/parts", "calls were moved after the text", llm.Value(append(said, called...)))
	}
	if len(said) == 0 && len(called) == 0 {
		return nil
	}
	return assistantMessage(m.Name, thoughts, list, calls)
}

func assistantMessage(name, thoughts string, list, calls *tree.Value) *tree.Value {
	content := llm.Blocks(list)
	if content == nil {
		content = &tree.Value{}
	}
	out := tree.Obj("role", tree.Str("assistant"), "content", content)
	if thoughts != "" {
		out.Set("reasoning_content", tree.Str(thoughts))
	}
	if name != "" {
		out.Set("name", tree.Str(name))
	}
	if len(calls.Items) > 0 {
		out.Set("tool_calls", calls)
	}
	return out
}

// isCall reports whether an opaque part is a call of a custom tool.
func isCall(p llm.Part) bool {
	kind := tree.Raw(p.Raw).Get("type")
	return kind.Is(tree.String) && kind.Text == "custom"
}

// call writes one, and makes p what it will be read as.
func (e *encoder) call(p *llm.Part, at string) *tree.Value {
	c := *p.ToolCall
	arguments := c.Malformed
	if arguments == "" {
		c.Args = c.Arguments(at+"/call", &e.losses)
		arguments = string(c.Args)
	}
	c.ID = e.id(c.ID, at+"/call/id")
	p.ToolCall = &c
	out := tree.Obj("id", tree.Str(c.ID), "type", tree.Str("function"), "function", tree.Obj(
		"name", tree.Str(e.o.Names.Send(Rule(), c.Name, at+"/call/name", &e.losses)), "arguments", tree.Str(arguments)))
	if p.Signature != nil {
		out.Set("extra_content", tree.Obj("google", tree.Obj("thought_signature", tree.Str(p.Signature.Value))))
	}
	return out
}

// id makes an id fit: OpenAI takes 40 characters.
func (e *encoder) id(id, at string) string {
	if len(id) <= 40 {
		return id
	}
	short := llm.NameRule{Max: 40}.Short(id)
	e.losses.Carry(at, "ids have at most 40 characters", tree.Str(short))
	return short
}

// Tool results have no error flag and no images here. An error is marked by its first
// line; a text that begins with this line is distinguished by another first line.
// Images follow the results in a message of the user.
const (
	errorMark  = "[tool error]\n"
	resultMark = "[tool result]\n"
	imagesMark = "[images of tool results]"
)

func placeholder(id string, n int) string { return fmt.Sprintf("[image %d of %s]", n, id) }

func carrier(images []*tree.Value) *tree.Value {
	return tree.Obj("role", tree.Str("user"), "content", tree.List(append([]*tree.Value{llm.TextBlock(imagesMark)}, images...)...))
}

// results writes a message for each result, and the images they had.
func (e *encoder) results(m llm.Message, at string) (messages, images []*tree.Value) {
	for j, p := range m.Parts {
		here := llm.Index(at+"/parts", j)
		if p.Type != llm.Result {
			e.losses.Lose(here, "tool messages can contain only results")
			continue
		}
		e.unsigned(p, here)
		r := p.ToolResult
		path := here + "/result"
		if r.Name != e.names[r.ID] {
			e.losses.Lose(path+"/name", "OpenAI's results have no tool name")
		}
		id := e.id(r.ID, path+"/id")
		list, seen := tree.List(), 0
		for k, part := range r.Shown(llm.OpenAI, path, &e.losses) {
			switch part.Type {
			case llm.Text:
				if part.Text != "" {
					list.Items = append(list.Items, llm.TextBlock(part.Text))
				}
			case llm.Image:
				seen++
				list.Items = append(list.Items, llm.TextBlock(placeholder(id, seen)))
				images = append(images, llm.TextBlock(placeholder(id, seen)), imagePart(part.Media))
				e.losses.Carry(llm.Index(path+"/content", k), "results contain only text; images were moved to a user message", llm.Value(part))
				e.media(part.Media, llm.Index(path+"/content", k)+"/media")
			case llm.Opaque:
				list.Items = append(list.Items, tree.Raw(part.Raw))
			}
		}
		mark(list, r.IsError)
		if r.IsError {
			e.losses.Carry(path+"/is_error", "results have no error flag; the text reports the error", tree.Boolean(true))
		}
		content := llm.Blocks(list)
		if content == nil {
			content = tree.Str("")
		}
		messages = append(messages, tree.Obj("role", tree.Str("tool"), "tool_call_id", tree.Str(id), "content", content))
	}
	return messages, images
}

// mark says in the first text whether a result is an error.
func mark(list *tree.Value, isError bool) {
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
