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

// CallID returns the generated ID of a call without an ID: call n of the content, both
// from 0. Requests to Gemini omit such IDs.
func CallID(content, n int) string { return fmt.Sprintf("%s%d_%d", generatedPrefix, content, n) }

// generatedPrefix begins the IDs of CallID.
const generatedPrefix = "gemini_call_"

// isGenerated reports whether CallID returned the ID.
func isGenerated(id string) bool {
	first, second, ok := strings.Cut(strings.TrimPrefix(id, generatedPrefix), "_")
	a, err := strconv.Atoi(first)
	b, err2 := strconv.Atoi(second)
	return ok && err == nil && err2 == nil && id == CallID(a, b)
}

// hasGeneratedIDs reports whether a call has an ID that CallID returned.
func hasGeneratedIDs(messages []llm.Message) bool {
	return slices.ContainsFunc(messages, func(m llm.Message) bool {
		return slices.ContainsFunc(m.Parts, func(p llm.Part) bool { return p.ToolCall != nil && isGenerated(p.ToolCall.ID) })
	})
}

// DecodeRequest decodes the body of generateContent. It returns an error if the body is not
// JSON or has no list of contents; other members that it cannot read are losses.
func DecodeRequest(body json.RawMessage, o Options) (*llm.Request, llm.Losses, error) {
	v, err := tree.ParseRequest(body, "contents")
	if err != nil {
		return nil, nil, err
	}
	d := &decoder{o: o}
	config := v.Take("generationConfig")
	config.MarkRead() // SDKs send it empty
	r := &llm.Request{
		Tools:       decodeTools(v.Take("tools"), o),
		MaxTokens:   config.Take("maxOutputTokens").Int(),
		Temperature: config.Take("temperature").Float(),
		TopP:        config.Take("topP").Float(),
		TopK:        config.Take("topK").Int(),
	}
	for _, s := range config.Take("stopSequences").TakeItems() {
		r.StopSequences = append(r.StopSequences, s.Str())
	}
	d.decodeChoice(v.Take("toolConfig").Take("functionCallingConfig"), r)
	if system := v.Take("systemInstruction"); system != nil {
		system.Take("role").Str()
		if parts := d.decodeParts(system.Take("parts")); len(parts) > 0 {
			r.Messages = append(r.Messages, llm.Message{Role: llm.SystemRole, Parts: parts})
		}
	}
	for i, c := range v.Take("contents").TakeItems() {
		d.turn, d.calls = i, 0
		r.Messages = append(r.Messages, d.decodeContent(c)...)
	}
	llm.FillResultNames(r.Messages)
	var losses llm.Losses
	losses.AddUnread(v)
	return r, losses, nil
}

// A decoder holds the state of decoding one request or response of generateContent.
type decoder struct {
	o          Options
	turn       int             // index of the content
	calls      int             // number of calls without an ID in the content
	unanswered []*llm.ToolCall // calls without an ID and without a result so far
}

// decodeChoice sets r.Choice from functionCallingConfig. It ignores an unknown mode.
func (d *decoder) decodeChoice(v *tree.Value, r *llm.Request) {
	mode := v.Take("mode").Str()
	modes := map[string]llm.ChoiceMode{"AUTO": llm.ChoiceAuto, "VALIDATED": llm.ChoiceAuto, "ANY": llm.ChoiceRequired, "NONE": llm.ChoiceNone}
	if modes[mode] == "" {
		return
	}
	r.Choice = &llm.Choice{Mode: modes[mode]}
	for _, name := range v.Take("allowedFunctionNames").TakeItems() {
		r.Choice.ToolNames = append(r.Choice.ToolNames, d.o.Names.FromVendor(name.Str()))
	}
}

// decodeContent returns a content as several messages if tool results are next to other
// parts.
func (d *decoder) decodeContent(c *tree.Value) []llm.Message {
	role := llm.UserRole
	if c.Take("role").Str() == "model" {
		role = llm.AssistantRole
	}
	return llm.SplitResults(role, d.decodeParts(c.Take("parts")))
}

// decodeParts returns the parts of a content. An unknown part is kept as it is. A text
// that is empty and not signed is left out.
func (d *decoder) decodeParts(list *tree.Value) []llm.Part {
	var parts []llm.Part
	for _, v := range list.TakeItems() {
		p, ok := d.decodePart(v)
		if !ok {
			parts = append(parts, llm.Part{Type: llm.OpaquePart, Vendor: llm.Gemini, Raw: v.TakeRaw()})
			continue
		}
		if s := v.Take("thoughtSignature").Str(); s != "" && s != skipSignature {
			p.Signature = &llm.Signature{Vendor: llm.Gemini, Value: s}
		}
		if p.Type != llm.TextPart || p.Text != "" || p.Signature != nil {
			parts = append(parts, p)
		}
	}
	return parts
}

// decodePart returns a text, thinking, call, result or image. It returns false for any
// other part.
func (d *decoder) decodePart(v *tree.Value) (llm.Part, bool) {
	switch {
	case v.Get("text").Is(tree.String):
		thought := v.Take("thought").Flag()
		if thought != nil && *thought {
			return llm.Part{Type: llm.ThinkingPart, Text: v.Take("text").Str()}, true
		}
		return llm.Part{Type: llm.TextPart, Text: v.Take("text").Str()}, true
	case v.Get("functionCall").Get("name").Is(tree.String):
		return llm.Part{Type: llm.CallPart, ToolCall: d.decodeCall(v.Take("functionCall"))}, true
	case v.Get("functionResponse").Get("name").Is(tree.String):
		return llm.Part{Type: llm.ResultPart, ToolResult: d.decodeResult(v.Take("functionResponse"))}, true
	}
	m := decodeMedia(v)
	return llm.Part{Type: llm.ImagePart, Media: m}, m != nil
}

// decodeMedia returns the image of a part (inlineData or fileData); nil: the part is no
// image.
func decodeMedia(v *tree.Value) *llm.Media {
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

// decodeCall returns a function call. A call without an ID gets that of CallID.
func (d *decoder) decodeCall(v *tree.Value) *llm.ToolCall {
	c := &llm.ToolCall{ID: v.Take("id").Str(), Name: d.o.Names.FromVendor(v.Take("name").Str()), Args: json.RawMessage(`{}`)}
	if v.Get("args").Is(tree.Object) {
		c.Args = v.Take("args").TakeRaw()
	}
	if c.ID == "" {
		c.ID = CallID(d.turn, d.calls)
		d.calls++
		d.unanswered = append(d.unanswered, c)
	}
	return c
}

// decodeResult returns the result of a call. Without an ID it belongs to the first call
// of its tool that has no result.
func (d *decoder) decodeResult(v *tree.Value) *llm.ToolResult {
	r := &llm.ToolResult{ID: v.Take("id").Str(), Name: d.o.Names.FromVendor(v.Take("name").Str())}
	if r.ID == "" {
		for i, c := range d.unanswered {
			if c.Name == r.Name {
				r.ID = c.ID
				d.unanswered = slices.Delete(d.unanswered, i, i+1)
				break
			}
		}
	}
	response, images := v.Take("response"), map[string]*llm.Media{}
	var order []string
	for _, part := range v.Take("parts").TakeItems() {
		name := part.At("/inlineData/displayName")
		if name == nil {
			name = part.At("/fileData/displayName")
		}
		if m := decodeMedia(part); m != nil {
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
		if len(response.PeekMembers()) == 1 && response.Get(key) != nil {
			r.IsError = key == "error"
			d.decodeOutput(r, response.Take(key), images)
		}
	}
	if len(response.PeekMembers()) != 1 || response.Get("output") == nil && response.Get("error") == nil {
		r.Structured = response.TakeRaw()
	}
	for _, key := range order { // images to which no text refers
		if m := images[key]; m != nil {
			r.Content = append(r.Content, llm.Part{Type: llm.ImagePart, Media: m})
		}
	}
	return r
}

// decodeOutput sets r.Content from v: a text, or texts with references to images, which
// it removes from images. Any other value becomes structured content.
func (d *decoder) decodeOutput(r *llm.ToolResult, v *tree.Value, images map[string]*llm.Media) {
	if v.Is(tree.String) {
		if text := v.Str(); text != "" {
			r.Content = []llm.Part{{Type: llm.TextPart, Text: text}}
		}
		return
	}
	var content []llm.Part
	for _, item := range v.PeekItems() {
		ref := item.Get("$ref")
		switch {
		case item.Is(tree.String):
			content = append(content, llm.Part{Type: llm.TextPart, Text: item.Text})
		case ref.Is(tree.String) && images[ref.Text] != nil && len(item.Members) == 1:
			content = append(content, llm.Part{Type: llm.ImagePart, Media: images[ref.Text]})
		default:
			r.Structured = v.TakeRaw()
			return
		}
	}
	if !v.Is(tree.Array) {
		r.Structured = v.TakeRaw()
		return
	}
	for _, item := range v.Items {
		if ref := item.Get("$ref"); ref != nil {
			delete(images, ref.Text)
		}
	}
	v.MarkAllRead()
	r.Content = content
}
