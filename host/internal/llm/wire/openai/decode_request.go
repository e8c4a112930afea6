package openai

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// DecodeRequest decodes the body of POST /v1/chat/completions. It returns an error if the
// body is not JSON or has no list of messages; other members that it cannot read are
// losses.
func DecodeRequest(body json.RawMessage, o Options) (*llm.Request, llm.Losses, error) {
	v, err := tree.ParseRequest(body, "messages")
	if err != nil {
		return nil, nil, err
	}
	d := &decoder{o: o}
	r := &llm.Request{
		Model:       v.Take("model").Str(),
		Messages:    d.decodeMessages(v.Take("messages")),
		Tools:       decodeTools(v.Take("tools"), o),
		Choice:      d.decodeChoice(v.Take("tool_choice")),
		Parallel:    v.Take("parallel_tool_calls").Flag(),
		MaxTokens:   v.Take("max_completion_tokens").Int(),
		Temperature: v.Take("temperature").Float(),
		TopP:        v.Take("top_p").Float(),
	}
	if usage := v.Take("stream_options").Take("include_usage").Flag(); usage != nil {
		r.StreamUsage = *usage
	}
	if old := v.Take("max_tokens").Int(); r.MaxTokens == 0 {
		r.MaxTokens = old
	}
	if stream := v.Take("stream").Flag(); stream != nil {
		r.Stream = *stream
	}
	if v.Get("n").Is(tree.Number) && v.Get("n").Text == "1" {
		v.Take("n").MarkAllRead()
	}
	if f := v.Get("response_format"); f.Is(tree.Object) && f.Get("type").Is(tree.String) {
		if v.Take("response_format"); f.Get("type").Text == "text" {
			f.MarkAllRead()
		} else {
			r.Format = f.TakeRaw()
		}
	}
	stop := v.Take("stop")
	if stop.Is(tree.String) {
		r.StopSequences = []string{stop.Str()}
	}
	for _, s := range stop.TakeItems() {
		r.StopSequences = append(r.StopSequences, s.Str())
	}
	for _, f := range v.Take("functions").TakeItems() {
		r.Tools = append(r.Tools, decodeFunction(f, o))
	}
	if old := v.Take("function_call"); r.Choice == nil && old != nil {
		r.Choice = d.decodeOldChoice(old)
	}
	llm.FillResultNames(r.Messages)
	var losses llm.Losses
	losses.AddUnread(v)
	return r, losses, nil
}

// decoder holds the state of decoding one request or response of OpenAI's Chat Completions
// API.
type decoder struct {
	o        Options
	oldCalls int // number of calls in the old format, which have no IDs
}

// decodeChoice returns tool_choice as a choice; nil if it is unknown.
func (d *decoder) decodeChoice(v *tree.Value) *llm.Choice {
	if v.Is(tree.String) {
		return &llm.Choice{Mode: llm.ChoiceMode(v.Str())}
	}
	switch v.Get("type").Str() {
	case "function":
		v.Take("type")
		return &llm.Choice{Mode: llm.ChoiceRequired, ToolNames: []string{d.o.Names.FromVendor(v.Take("function").Take("name").Str())}}
	case "allowed_tools":
		v.Take("type")
		allowed := v.Take("allowed_tools")
		c := &llm.Choice{Mode: llm.ChoiceMode(allowed.Take("mode").Str())}
		for _, t := range allowed.Take("tools").TakeItems() {
			t.Take("type").Str()
			c.ToolNames = append(c.ToolNames, d.o.Names.FromVendor(t.Take("function").Take("name").Str()))
		}
		return c
	}
	return nil
}

// decodeOldChoice returns function_call, the deprecated form of tool_choice, as a choice.
func (d *decoder) decodeOldChoice(v *tree.Value) *llm.Choice {
	if v.Is(tree.String) {
		return &llm.Choice{Mode: llm.ChoiceMode(v.Str())}
	}
	return &llm.Choice{Mode: llm.ChoiceRequired, ToolNames: []string{d.o.Names.FromVendor(v.Take("name").Str())}}
}

// decodeMessages returns the messages of a request. It skips those with an unknown role.
func (d *decoder) decodeMessages(list *tree.Value) []llm.Message {
	var out []llm.Message
	for _, m := range list.TakeItems() {
		role := llm.Role(m.Take("role").Str())
		message := llm.Message{Role: role, Name: m.Take("name").Str()}
		switch role {
		case llm.AssistantRole:
			message.Parts = d.decodeAssistant(m)
		case llm.ToolRole:
			message.Parts = []llm.Part{d.decodeResult(m, m.Take("tool_call_id").Str())}
		case "function": // the old format, without IDs
			message.Role, message.Name = llm.ToolRole, ""
			p := d.decodeResult(m, oldCallID(d.oldCalls-1))
			p.ToolResult.Name = m.Get("name").Str()
			message.Parts = []llm.Part{p}
		case llm.SystemRole, llm.DeveloperRole, llm.UserRole:
			message.Parts = d.decodeContent(m.Take("content"))
			if last := len(out) - 1; role == llm.UserRole && last >= 0 && out[last].Role == llm.ToolRole && d.restoreImages(out, message.Parts) {
				continue
			}
		default:
			continue
		}
		out = append(out, message)
	}
	return out
}

// oldCallID returns an ID for call n, from 0, in the deprecated format, whose calls have
// none.
func oldCallID(n int) string { return "function_call_" + strconv.Itoa(max(n, 0)) }

// decodeContent returns the content of a message, a text or a list, as parts.
func (d *decoder) decodeContent(v *tree.Value) []llm.Part {
	if v.Is(tree.String) {
		return textParts(v.Str())
	}
	var parts []llm.Part
	for _, item := range v.TakeItems() {
		parts = append(parts, d.decodePart(item))
	}
	return parts
}

// textParts returns a list with the text as a part, nil for "".
func textParts(text string) []llm.Part {
	if text == "" {
		return nil
	}
	return []llm.Part{{Type: llm.TextPart, Text: text}}
}

// decodePart returns an item of a content list as a part. An unknown item is kept as it is.
func (d *decoder) decodePart(v *tree.Value) llm.Part {
	kind := v.Get("type").Str()
	switch {
	case kind == "text" && v.Get("text").Is(tree.String):
		v.Take("type")
		return llm.Part{Type: llm.TextPart, Text: v.Take("text").Str()}
	case kind == "refusal" && v.Get("refusal").Is(tree.String):
		v.Take("type")
		return llm.Part{Type: llm.RefusalPart, Text: v.Take("refusal").Str()}
	case kind == "image_url" && v.Get("image_url").Get("url").Is(tree.String):
		v.Take("type")
		image := v.Take("image_url")
		media := &llm.Media{URL: image.Take("url").Str(), Detail: image.Take("detail").Str()}
		if mime, data, ok := parseDataURL(media.URL); ok {
			media.MIME, media.Data, media.URL = mime, data, ""
		}
		return llm.Part{Type: llm.ImagePart, Media: media}
	}
	return llm.Part{Type: llm.OpaquePart, Vendor: llm.OpenAI, Raw: v.TakeRaw()}
}

// parseDataURL parses a base64 data URL (RFC 2397). ok is false for any other URL; data is
// not decoded.
func parseDataURL(url string) (mime, data string, ok bool) {
	rest, ok := strings.CutPrefix(url, "data:")
	head, data, cut := strings.Cut(rest, ",")
	mime, is64 := strings.CutSuffix(head, ";base64")
	return mime, data, ok && cut && is64 && !strings.Contains(mime, ";") && data != ""
}

// decodeAssistant returns the parts of a model's message: thinking, text, refusal and calls.
// Custom calls are kept as they are, calls of unknown types are left out.
func (d *decoder) decodeAssistant(m *tree.Value) []llm.Part {
	var parts []llm.Part
	for _, name := range []string{"reasoning_content", "reasoning"} {
		if text := m.Take(name).Str(); text != "" && len(parts) == 0 {
			parts = append(parts, llm.Part{Type: llm.ThinkingPart, Text: text})
		}
	}
	parts = append(parts, d.decodeContent(m.Take("content"))...)
	if text := m.Take("refusal").Str(); text != "" {
		parts = append(parts, llm.Part{Type: llm.RefusalPart, Text: text})
	}
	for _, c := range m.Take("tool_calls").TakeItems() {
		switch kind := c.Get("type").Str(); {
		case kind == "custom":
			parts = append(parts, llm.Part{Type: llm.OpaquePart, Vendor: llm.OpenAI, Raw: c.TakeRaw()})
			continue
		case kind != "function" && kind != "" || c.Get("function") == nil:
			continue
		}
		c.Take("type")
		c.Take("index").Int()
		p := d.decodeCall(c.Take("function"), c.Take("id").Str())
		if signature := c.Take("extra_content").Take("google").Take("thought_signature").Str(); signature != "" {
			p.Signature = &llm.Signature{Vendor: llm.Gemini, Value: signature}
		}
		parts = append(parts, p)
	}
	if old := m.Take("function_call"); old != nil {
		parts = append(parts, d.decodeCall(old, oldCallID(d.oldCalls)))
		d.oldCalls++
	}
	return parts
}

// decodeCall returns a function call as a part. Arguments that are not a JSON object are kept
// as Malformed.
func (d *decoder) decodeCall(f *tree.Value, id string) llm.Part {
	c := &llm.ToolCall{ID: id, Name: d.o.Names.FromVendor(f.Take("name").Str())}
	arguments := f.Take("arguments")
	text := arguments.Str()
	if arguments.Is(tree.Object) { // some servers send an object
		text = string(arguments.TakeRaw())
	}
	switch v, err := tree.Parse([]byte(text)); {
	case strings.TrimSpace(text) == "":
		c.Args = json.RawMessage(`{}`)
	case err == nil && v.Is(tree.Object):
		c.Args = json.RawMessage(text)
	default:
		c.Malformed = text
	}
	return llm.Part{Type: llm.CallPart, ToolCall: c}
}

// decodeResult returns the result of the call id as a part. It removes the mark of
// markError from the text; errorMark makes the result an error.
func (d *decoder) decodeResult(m *tree.Value, id string) llm.Part {
	r := &llm.ToolResult{ID: id, Content: d.decodeContent(m.Take("content"))}
	if len(r.Content) > 0 && r.Content[0].Type == llm.TextPart {
		first := r.Content[0].Text
		text, isError := strings.CutPrefix(first, errorMark)
		if !isError {
			text = strings.TrimPrefix(first, resultMark)
		}
		r.IsError, r.Content[0].Text = isError, text
		if text == "" {
			r.Content = r.Content[1:]
		}
	}
	return llm.Part{Type: llm.ResultPart, ToolResult: r}
}

// restoreImages replaces the placeholders in the last results of messages by the images in
// parts, a user message of imagesMessage. It reports whether parts are such a message; if
// not, it changes nothing.
func (d *decoder) restoreImages(messages []llm.Message, parts []llm.Part) bool {
	if len(parts) < 3 || len(parts)%2 == 0 || parts[0].Type != llm.TextPart || parts[0].Text != imagesMark {
		return false
	}
	images := map[string]*llm.Part{}
	for i := 1; i < len(parts); i += 2 {
		if parts[i].Type != llm.TextPart || parts[i+1].Type != llm.ImagePart || images[parts[i].Text] != nil {
			return false
		}
		images[parts[i].Text] = &parts[i+1]
	}
	var places []*llm.Part
	for _, m := range slices.Backward(messages) {
		if m.Role != llm.ToolRole {
			break
		}
		for i := range m.Parts {
			content := m.Parts[i].ToolResult.Content
			for j := range content {
				if content[j].Type == llm.TextPart && images[content[j].Text] != nil {
					places = append(places, &content[j])
				}
			}
		}
	}
	if len(places) != len(images) {
		return false
	}
	for _, place := range places {
		*place = *images[place.Text]
	}
	return true
}
