package gemini

import (
	"fmt"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// EncodeRequest encodes the body of POST …/models/MODEL:generateContent.
func EncodeRequest(r *llm.Request, o Options) (*tree.Value, llm.Losses) {
	e := &encoder{o: o, names: llm.CallNames(r.Messages), ids: map[string]string{}}
	messages := llm.SystemFirst(r.Messages, &e.losses)
	if o.NoIDs || hasGeneratedIDs(messages) {
		messages = llm.SortResults(messages, &e.losses)
	}
	body := tree.Obj()
	if r.Model != "" {
		e.losses.AddEquivalent("/model", "sent in the URL", nil)
	}
	if r.Stream {
		e.losses.AddEquivalent("/stream", "sent in the URL", nil)
	}
	if r.StreamUsage {
		e.losses.AddEquivalent("/stream_usage", "streams always report usage", nil)
	}
	if r.Parallel != nil {
		e.losses.AddLost("/parallel", "Gemini has no such field")
	}
	if r.Format != nil {
		e.losses.AddLost("/format", "a response format is not supported")
	}
	e.encodeContents(messages, body)
	if len(r.Tools) > 0 {
		tools, losses := EncodeTools(r.Tools, o)
		e.losses = append(e.losses, losses...)
		body.Set("tools", tools)
	}
	if r.Choice != nil {
		body.Set("toolConfig", tree.Obj("functionCallingConfig", e.encodeChoice(r.Choice)))
	}
	if config := generationConfig(r); len(config.Members) > 0 {
		body.Set("generationConfig", config)
	}
	return body, e.losses
}

// generationConfig returns the value of generationConfig, an empty object if nothing is
// set.
func generationConfig(r *llm.Request) *tree.Value {
	config := tree.Obj()
	if r.MaxTokens > 0 {
		config.Set("maxOutputTokens", tree.Int(r.MaxTokens))
	}
	if r.Temperature != nil {
		config.Set("temperature", tree.Float(*r.Temperature))
	}
	if r.TopP != nil {
		config.Set("topP", tree.Float(*r.TopP))
	}
	if r.TopK != 0 {
		config.Set("topK", tree.Int(r.TopK))
	}
	if len(r.StopSequences) > 0 {
		config.Set("stopSequences", tree.Strs(r.StopSequences...))
	}
	return config
}

// An encoder holds the state of encoding one request or response, and what the format
// cannot express. The parameter at of its methods is the JSON pointer of a value in the
// request, for losses.
type encoder struct {
	o      Options
	losses llm.Losses
	names  map[string]string // tool names of the calls in the conversation, by ID
	ids    map[string]string // generated IDs, as the decoder would generate them, by ID
	turn   int               // index of the content
	calls  int               // number of calls without an ID in the content
}

// encodeChoice returns the value of functionCallingConfig.
func (e *encoder) encodeChoice(c *llm.Choice) *tree.Value {
	config := tree.Obj("mode", tree.Str(map[llm.ChoiceMode]string{llm.ChoiceAuto: "AUTO", llm.ChoiceRequired: "ANY", llm.ChoiceNone: "NONE"}[c.Mode]))
	if len(c.ToolNames) == 0 {
		return config
	}
	if c.Mode == llm.ChoiceNone {
		e.losses.AddLost("/choice/names", "tool calls are disabled")
		return config
	}
	if c.Mode == llm.ChoiceAuto { // AUTO accepts no names
		config.Set("mode", tree.Str("VALIDATED"))
	}
	list := tree.List()
	for i, name := range c.ToolNames {
		list.Items = append(list.Items, tree.Str(e.o.Names.ToVendorReported(NameRule(), name, llm.AppendIndex("/choice/names", i), &e.losses)))
	}
	config.Set("allowedFunctionNames", list)
	return config
}

// encodeContents sets contents and systemInstruction of body. Successive messages of a
// role become one content, because Gemini requires that as many results follow as there
// were calls.
func (e *encoder) encodeContents(messages []llm.Message, body *tree.Value) {
	list, system, last, turn := tree.List(), tree.List(), llm.Role(""), -1
	for i, m := range messages {
		at := llm.AppendIndex("/messages", i)
		if m.Name != "" {
			e.losses.AddLost(at+"/name", "Gemini's messages have no name")
		}
		if m.Role == llm.DeveloperRole {
			e.losses.AddEquivalent(at+"/role", "developer messages became system messages", tree.Str(string(llm.SystemRole)))
		}
		if m.Role == llm.SystemRole || m.Role == llm.DeveloperRole {
			system.Items = append(system.Items, e.encodeParts(m, at+"/parts")...)
			continue
		}
		again := m.Role == last && len(list.Items) > 0
		e.turn = len(list.Items)
		if again {
			e.turn--
		}
		if e.turn != turn {
			e.calls, turn = 0, e.turn
		}
		parts := e.encodeParts(m, at+"/parts")
		switch {
		case len(parts) == 0:
			continue
		case again:
			content := list.Items[len(list.Items)-1].Get("parts")
			content.Items = append(content.Items, parts...)
		default:
			role := "user"
			if m.Role == llm.AssistantRole {
				role = "model"
			}
			list.Items = append(list.Items, tree.Obj("role", tree.Str(role), "parts", tree.List(parts...)))
		}
		last = m.Role
	}
	if len(system.Items) > 0 {
		body.Set("systemInstruction", tree.Obj("parts", system))
	}
	body.Set("contents", list)
}

// encodeParts returns the parts of a message. What Gemini cannot express is added to
// the losses.
func (e *encoder) encodeParts(m llm.Message, at string) []*tree.Value {
	var list []*tree.Value
	signed := false
	for j, p := range m.Parts {
		here := llm.AppendIndex(at, j)
		made := e.encodePart(m.Role, p, here)
		if made == nil {
			continue
		}
		switch {
		case p.Signature != nil && p.Signature.Vendor == llm.Gemini && p.Type != llm.OpaquePart:
			made.Set("thoughtSignature", tree.Str(p.Signature.Value))
			signed = true
		case p.Signature != nil:
			e.losses.AddLost(here+"/signature", "only the vendor that created the signature can use it")
		case e.o.SkipSignatures && p.Type == llm.CallPart && !signed:
			made.Set("thoughtSignature", tree.Str(skipSignature))
			signed = true
		}
		list = append(list, made)
	}
	return list
}

// skipSignature is the value that Gemini accepts as the signature of a call by another
// model.
const skipSignature = "skip_thought_signature_validator"

// encodePart returns a part of a message of the role; nil: Gemini has no such part, or
// it is empty.
func (e *encoder) encodePart(role llm.Role, p llm.Part, at string) *tree.Value {
	says, system := role == llm.AssistantRole, role == llm.SystemRole || role == llm.DeveloperRole
	own := p.Signature != nil && p.Signature.Vendor == llm.Gemini
	switch {
	case p.Type == llm.TextPart && role != llm.ToolRole:
		if p.Text == "" && !own {
			if p.Signature != nil {
				e.losses.AddLost(at, "the part is empty without its signature")
			}
			return nil
		}
		return tree.Obj("text", tree.Str(p.Text))
	case p.Type == llm.RefusalPart && says:
		if p.Text == "" {
			return nil
		}
		e.losses.AddChanged(at+"/type", "a refusal became text", tree.Str(string(llm.TextPart)))
		return tree.Obj("text", tree.Str(p.Text))
	case p.Type == llm.ThinkingPart && says && (p.Text != "" || own):
		return tree.Obj("text", tree.Str(p.Text), "thought", tree.Boolean(true))
	case p.Type == llm.ImagePart && role != llm.ToolRole && !system:
		return e.encodeMedia(p.Media, at+"/media")
	case p.Type == llm.CallPart && says:
		return e.encodeCall(p.ToolCall, at+"/call")
	case p.Type == llm.ResultPart && role == llm.ToolRole:
		return e.encodeResult(p.ToolResult, at+"/result")
	case p.Type == llm.OpaquePart && p.Vendor == llm.Gemini && role != llm.ToolRole:
		return tree.Raw(p.Raw)
	}
	e.losses.AddLost(at, fmt.Sprintf("Gemini's %s messages have no %s", role, p.Type))
	return nil
}

// encodeMedia returns an image as inlineData or fileData.
func (e *encoder) encodeMedia(m *llm.Media, at string) *tree.Value {
	if m.Detail != "" {
		e.losses.AddLost(at+"/detail", "Gemini has no such field")
	}
	out := tree.Obj()
	if mime := m.Type(); mime != "" {
		out.Set("mimeType", tree.Str(mime))
		if m.MIME == "" {
			e.losses.AddEquivalent(at+"/mime", "detected from the name or the content", tree.Str(mime))
		}
	}
	if m.Data == "" {
		out.Set("fileUri", tree.Str(m.URL))
		return tree.Obj("fileData", out)
	}
	if m.URL != "" {
		e.losses.AddLost(at+"/url", "the image data was sent instead")
	}
	out.Set("data", tree.Str(m.Data))
	return tree.Obj("inlineData", out)
}

// encodeCall returns a functionCall part. It leaves out the ID if Gemini did not give
// it, or with Options.NoIDs.
func (e *encoder) encodeCall(c *llm.ToolCall, at string) *tree.Value {
	out := tree.Obj()
	if e.o.NoIDs || isGenerated(c.ID) {
		id := CallID(e.turn, e.calls)
		e.calls++
		e.ids[c.ID] = id
		if id != c.ID {
			e.losses.AddEquivalent(at+"/id", "Gemini matches results to calls by order", tree.Str(id))
		}
	} else {
		out.Set("id", tree.Str(c.ID))
	}
	out.Set("name", tree.Str(e.o.Names.ToVendorReported(NameRule(), c.Name, at+"/name", &e.losses)))
	out.Set("args", tree.Raw(c.ArgumentsObject(at, &e.losses)))
	return tree.Obj("functionCall", out)
}

// encodeResult returns a functionResponse part.
func (e *encoder) encodeResult(r *llm.ToolResult, at string) *tree.Value {
	out := tree.Obj()
	switch id := e.ids[r.ID]; {
	case id == "" && (e.o.NoIDs || isGenerated(r.ID)):
		e.losses.AddLost(at+"/id", "the id matches no call, and Gemini has no ids")
	case id == "":
		out.Set("id", tree.Str(r.ID))
	case id != r.ID:
		e.losses.AddEquivalent(at+"/id", "Gemini matches results to calls by order", tree.Str(id))
	}
	name := r.Name
	if name == "" {
		name = e.names[r.ID]
	}
	if name == "" {
		name = "unknown"
		e.losses.AddEquivalent(at+"/name", "Gemini requires a name", tree.Str(name))
	}
	out.Set("name", tree.Str(e.o.Names.ToVendorReported(NameRule(), name, at+"/name", &e.losses)))
	key := "output"
	if r.IsError {
		key = "error"
	}
	if structured := tree.Raw(r.Structured); structured.Is(tree.Object) && len(r.Content) == 0 {
		for i := range r.ExtraMembers {
			e.losses.AddLost(llm.AppendIndex(at+"/others", i), "not sent to models")
		}
		out.Set("response", tree.Obj(key, structured))
		return tree.Obj("functionResponse", out)
	}
	list, media := e.encodeResultContent(r, at)
	value := tree.List(list...)
	switch {
	case len(list) == 0:
		value = tree.Str("")
	case len(list) == 1 && list[0].Is(tree.String):
		value = list[0]
	}
	out.Set("response", tree.Obj(key, value))
	if len(media) > 0 {
		out.Set("parts", tree.List(media...))
	}
	return tree.Obj("functionResponse", out)
}

// encodeResultContent returns the texts of a result, with references to its images in
// list, and the images in media.
func (e *encoder) encodeResultContent(r *llm.ToolResult, at string) (list, media []*tree.Value) {
	for k, p := range r.ModelContent(llm.Gemini, at, &e.losses) {
		here := llm.AppendIndex(at+"/content", k)
		switch {
		case p.Type == llm.TextPart && p.Text != "":
			list = append(list, tree.Str(p.Text))
		case p.Type == llm.ImagePart:
			name := fmt.Sprintf("image_%d", len(media)+1)
			made := e.encodeMedia(p.Media, here+"/media")
			made.Members[0].Value.Set("displayName", tree.Str(name))
			media = append(media, made)
			list = append(list, tree.Obj("$ref", tree.Str(name)))
		case p.Type == llm.OpaquePart:
			e.losses.AddLost(here, "Gemini's results can contain only text and images")
		}
	}
	return list, media
}
