package gemini

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// ID is the id of a call that came without one: the nth of those in a
// content. Written for Gemini, such ids are left out again.
func ID(content, n int) string { return fmt.Sprintf("%s%d_%d", prefix, content, n) }

const prefix = "gemini_call_"

// made reports whether an id is one of ID's.
func made(id string) bool {
	first, second, ok := strings.Cut(strings.TrimPrefix(id, prefix), "_")
	a, err := strconv.Atoi(first)
	b, err2 := strconv.Atoi(second)
	return ok && err == nil && err2 == nil && id == ID(a, b)
}

func synthesized(messages []llm.Message) bool {
	return slices.ContainsFunc(messages, func(m llm.Message) bool {
		return slices.ContainsFunc(m.Parts, func(p llm.Part) bool { return p.ToolCall != nil && made(p.ToolCall.ID) })
	})
}

// DecodeRequest reads the body of generateContent.
func DecodeRequest(body json.RawMessage, o Options) (*llm.Request, llm.Losses, error) {
	v, err := tree.Parse(body)
	if err != nil {
		return nil, nil, fmt.Errorf("the request: %w", err)
	}
	if !v.Get("contents").Is(tree.Array) {
		return nil, nil, fmt.Errorf("the request has no array contents")
	}
	d := &decoder{o: o}
	config := v.Take("generationConfig")
	config.Seen() // SDKs send it empty
	r := &llm.Request{
		Tools:       decodeTools(v.Take("tools"), o),
		MaxTokens:   config.Take("maxOutputTokens").Int(),
		Temperature: config.Take("temperature").Float(),
		TopP:        config.Take("topP").Float(),
		TopK:        config.Take("topK").Int(),
	}
	for _, s := range config.Take("stopSequences").List() {
		r.Stop = append(r.Stop, s.Str())
	}
	d.choice(v.Take("toolConfig").Take("functionCallingConfig"), r)
	if system := v.Take("systemInstruction"); system != nil {
		system.Take("role").Str()
		if parts := d.parts(system.Take("parts")); len(parts) > 0 {
			r.Messages = append(r.Messages, llm.Message{Role: llm.System, Parts: parts})
		}
	}
	for i, c := range v.Take("contents").List() {
		d.turn, d.calls = i, 0
		r.Messages = append(r.Messages, d.content(c)...)
	}
	llm.NameResults(r.Messages)
	var losses llm.Losses
	losses.Unread(v)
	return r, losses, nil
}

type decoder struct {
	o     Options
	turn  int
	calls int
	open  []*llm.ToolCall // without an id and without an answer yet
}

func (d *decoder) choice(v *tree.Value, r *llm.Request) {
	mode := v.Take("mode").Str()
	modes := map[string]llm.Mode{"AUTO": llm.Auto, "VALIDATED": llm.Auto, "ANY": llm.Required, "NONE": llm.None}
	if modes[mode] == "" {
		return
	}
	r.Choice = &llm.Choice{Mode: modes[mode]}
	for _, name := range v.Take("allowedFunctionNames").List() {
		r.Choice.Names = append(r.Choice.Names, d.o.Names.Own(name.Str()))
	}
}

// content decodes a content. It returns several messages if tool results are next to
// other parts.
func (d *decoder) content(c *tree.Value) []llm.Message {
	role := llm.User
	if c.Take("role").Str() == "model" {
		role = llm.Assistant
	}
	return llm.Messages(role, d.parts(c.Take("parts")))
}

func (d *decoder) parts(list *tree.Value) []llm.Part {
	var parts []llm.Part
	for _, v := range list.List() {
		p, ok := d.part(v)
		if !ok {
			parts = append(parts, llm.Part{Type: llm.Opaque, By: llm.Gemini, Raw: v.Whole()})
			continue
		}
		if s := v.Take("thoughtSignature").Str(); s != "" && s != unsigned {
			p.Signature = &llm.Signature{By: llm.Gemini, Value: s}
		}
		if p.Type != llm.Text || p.Text != "" || p.Signature != nil {
			parts = append(parts, p)
		}
	}
	return parts
}

func (d *decoder) part(v *tree.Value) (llm.Part, bool) {
	switch {
	case v.Get("text").Is(tree.String):
		thought := v.Take("thought").Flag()
		if thought != nil && *thought {
			return llm.Part{Type: llm.Thinking, Text: v.Take("text").Str()}, true
		}
		return llm.Part{Type: llm.Text, Text: v.Take("text").Str()}, true
	case v.Get("functionCall").Get("name").Is(tree.String):
		return llm.Part{Type: llm.Call, ToolCall: d.call(v.Take("functionCall"))}, true
	case v.Get("functionResponse").Get("name").Is(tree.String):
		return llm.Part{Type: llm.Result, ToolResult: d.result(v.Take("functionResponse"))}, true
	}
	m := media(v)
	return llm.Part{Type: llm.Image, Media: m}, m != nil
}

// media reads an image; nil: the part is none.
func media(v *tree.Value) *llm.Media {
	for _, name := range []string{"inlineData", "fileData"} {
		data := v.Get(name)
		mime, where := data.Get("mimeType"), "data"
		if name == "fileData" {
			where = "fileUri"
		}
		if !data.Get(where).Is(tree.String) || data.Get(where).Text == "" || mime != nil && (!mime.Is(tree.String) || !strings.HasPrefix(mime.Text, "image/")) {
			continue
		}
		v.Take(name)
		m := &llm.Media{MIME: data.Take("mimeType").Str()}
		if name == "fileData" {
			m.URL = data.Take(where).Str()
		} else {
			m.Data = data.Take(where).Str()
		}
		return m
	}
	return nil
}

func (d *decoder) call(v *tree.Value) *llm.ToolCall {
	c := &llm.ToolCall{ID: v.Take("id").Str(), Name: d.o.Names.Own(v.Take("name").Str()), Args: json.RawMessage(`{}`)}
	if v.Get("args").Is(tree.Object) {
		c.Args = v.Take("args").Whole()
	}
	if c.ID == "" {
		c.ID = ID(d.turn, d.calls)
		d.calls++
		d.open = append(d.open, c)
	}
	return c
}

// result reads one. Without an id it answers the first call of its name that
// has no answer.
func (d *decoder) result(v *tree.Value) *llm.ToolResult {
	r := &llm.ToolResult{ID: v.Take("id").Str(), Name: d.o.Names.Own(v.Take("name").Str())}
	if r.ID == "" {
		for i, c := range d.open {
			if c.Name == r.Name {
				r.ID = c.ID
				d.open = slices.Delete(d.open, i, i+1)
				break
			}
		}
	}
	response, images := v.Take("response"), map[string]*llm.Media{}
	var order []string
	for _, part := range v.Take("parts").List() {
		name := part.At("/inlineData/displayName")
		if name == nil {
			name = part.At("/fileData/displayName")
		}
		if m := media(part); m != nil {
			key := name.Str()
			if name == nil || images[key] != nil {
				key = fmt.Sprintf("\x00%d", len(order))
			}
			for _, kind := range []string{"inlineData", "fileData"} {
				part.Get(kind).Take("displayName").Str()
			}
			images[key] = m
			order = append(order, key)
		}
	}
	for _, key := range []string{"output", "error"} {
		if len(response.Each()) == 1 && response.Get(key) != nil {
			r.IsError = key == "error"
			d.output(r, response.Take(key), images)
		}
	}
	if len(response.Each()) != 1 || response.Get("output") == nil && response.Get("error") == nil {
		r.Structured = response.Whole()
	}
	for _, key := range order { // those that are nowhere in the text
		if m := images[key]; m != nil {
			r.Content = append(r.Content, llm.Part{Type: llm.Image, Media: m})
		}
	}
	return r
}

// output reads what is text, or texts and references to images; whatever else
// is structured.
func (d *decoder) output(r *llm.ToolResult, v *tree.Value, images map[string]*llm.Media) {
	if v.Is(tree.String) {
		if text := v.Str(); text != "" {
			r.Content = []llm.Part{{Type: llm.Text, Text: text}}
		}
		return
	}
	var content []llm.Part
	for _, item := range v.All() {
		ref := item.Get("$ref")
		switch {
		case item.Is(tree.String):
			content = append(content, llm.Part{Type: llm.Text, Text: item.Text})
		case ref.Is(tree.String) && images[ref.Text] != nil && len(item.Members) == 1:
			content = append(content, llm.Part{Type: llm.Image, Media: images[ref.Text]})
		default:
			r.Structured = v.Whole()
			return
		}
	}
	if !v.Is(tree.Array) {
		r.Structured = v.Whole()
		return
	}
	for _, item := range v.Items {
		if ref := item.Get("$ref"); ref != nil {
			delete(images, ref.Text)
		}
	}
	v.Skip()
	r.Content = content
}
