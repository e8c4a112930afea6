package responses

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// ReferenceType is the type of an item that names an item of a stored response.
const ReferenceType = "item_reference"

// additionalToolsType is the type of an item that declares tools.
const additionalToolsType = "additional_tools"

// ignoredTypes lists the types of items that record calls of built-in tools.
// DecodeItems returns them as ignored.
func ignoredTypes() []string {
	return []string{
		"web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "computer_call", "computer_call_output",
		"local_shell_call", "local_shell_call_output", "shell_call", "shell_call_output", "apply_patch_call", "apply_patch_call_output",
		"mcp_list_tools", "mcp_call", "mcp_approval_request", "mcp_approval_response", "tool_search_call", "tool_search_output",
	}
}

// DecodeItems decodes the items of an input into messages. Successive items of the
// assistant become one message, and so do successive results. Reasoning items are skipped:
// the host keeps signed reasoning itself. ignored holds the types of other skipped items.
// The error names the path of a malformed item.
func DecodeItems(list *tree.Value) (messages []llm.Message, ignored []string, err error) {
	d := &decoder{}
	for i, item := range list.PeekItems() {
		if err := d.addItem(item, llm.AppendIndex("input", i)); err != nil {
			return nil, nil, err
		}
	}
	llm.FillResultNames(d.messages)
	return d.messages, d.ignored, nil
}

// decoder collects the messages of input items.
type decoder struct {
	messages []llm.Message
	ignored  []string // types of skipped items, each once
}

// addParts adds parts to the last message if join is set and it has the same role, else as
// a new message.
func (d *decoder) addParts(role llm.Role, join bool, parts ...llm.Part) {
	if last := len(d.messages) - 1; join && last >= 0 && d.messages[last].Role == role {
		d.messages[last].Parts = append(d.messages[last].Parts, parts...)
		return
	}
	d.messages = append(d.messages, llm.Message{Role: role, Parts: parts})
}

// addItem adds an input item, whose path is at. It collects the types of ignoredTypes in
// ignored, and leaves out reasoning and additional tools. It returns a *RequestError for
// other types.
func (d *decoder) addItem(v *tree.Value, at string) error {
	switch kind := stringMember(v, "type"); {
	case kind == "message", kind == "" && v.Get("role") != nil:
		return d.addMessage(v, at)
	case kind == "function_call", kind == "custom_tool_call":
		return d.addCall(v, kind, at)
	case kind == "function_call_output", kind == "custom_tool_call_output":
		return d.addResult(v, kind, at)
	case kind == "reasoning", kind == additionalToolsType:
		return nil
	case slices.Contains(ignoredTypes(), kind):
		if !slices.Contains(d.ignored, kind) {
			d.ignored = append(d.ignored, kind)
		}
		return nil
	case kind == "":
		return requestErrorf(at, "an input item has neither a type nor a role")
	default:
		return requestErrorf(at, "input items of type %.60s are not supported", kind)
	}
}

// addMessage adds a message. It returns a RequestError for an unknown role.
func (d *decoder) addMessage(v *tree.Value, at string) error {
	role := llm.Role(stringMember(v, "role"))
	if !slices.Contains([]llm.Role{llm.UserRole, llm.AssistantRole, llm.SystemRole, llm.DeveloperRole}, role) {
		return requestErrorf(at, "the role of a message must be user, assistant, system or developer, not %.40q", role)
	}
	parts, err := decodeContent(v.Get("content"), role, at)
	if err != nil {
		return err
	}
	d.addParts(role, role == llm.AssistantRole, parts...)
	return nil
}

// decodeContent returns the parts of a content, which is a text or a list of parts. It
// returns a *RequestError for a part that a message of this role cannot have.
func decodeContent(v *tree.Value, role llm.Role, at string) ([]llm.Part, error) {
	switch {
	case v.Is(tree.String):
		return []llm.Part{{Type: llm.TextPart, Text: v.Text}}, nil
	case !v.Is(tree.Array):
		return nil, requestErrorf(at, "the content must be text or a list of parts")
	}
	var parts []llm.Part
	for _, p := range v.Items {
		kind := stringMember(p, "type")
		switch {
		case (kind == "input_text" || kind == "output_text" || kind == "text") && p.Get("text").Is(tree.String):
			parts = append(parts, llm.Part{Type: llm.TextPart, Text: p.Get("text").Text})
		case kind == "refusal" && role == llm.AssistantRole && p.Get("refusal").Is(tree.String):
			parts = append(parts, llm.Part{Type: llm.RefusalPart, Text: p.Get("refusal").Text})
		case kind == "input_image" && stringMember(p, "image_url") != "" && (role == llm.UserRole || role == llm.ToolRole):
			parts = append(parts, llm.Part{Type: llm.ImagePart, Media: decodeImage(stringMember(p, "image_url"), stringMember(p, "detail"))})
		default:
			return nil, requestErrorf(at, "a part of type %.40q is not supported: a %s can contain input_text, output_text or input_image with an image_url", kind, role)
		}
	}
	return parts, nil
}

// decodeImage returns an image with this URL; with the data of a base64 data URL (RFC
// 2397).
func decodeImage(url, detail string) *llm.Media {
	m := &llm.Media{URL: url, Detail: detail}
	rest, inline := strings.CutPrefix(url, "data:")
	head, data, cut := strings.Cut(rest, ",")
	mime, base64 := strings.CutSuffix(head, ";base64")
	if inline && cut && base64 && !strings.Contains(mime, ";") && data != "" {
		m.MIME, m.Data, m.URL = mime, data, ""
	}
	return m
}

// addCall adds a function or custom tool call to the model's message. It returns a
// RequestError without a call id or a name. Arguments that are no JSON object are kept
// as Malformed.
func (d *decoder) addCall(v *tree.Value, kind, at string) error {
	c := &llm.ToolCall{ID: stringMember(v, "call_id"), Name: modelName(stringMember(v, "namespace"), stringMember(v, "name"))}
	if c.ID == "" || stringMember(v, "name") == "" {
		return requestErrorf(at, "a %s has no call_id or no name", kind)
	}
	arguments := stringMember(v, "arguments")
	if kind == "custom_tool_call" {
		arguments = string(tree.Obj("input", tree.Str(stringMember(v, "input"))).JSON())
	}
	var object map[string]json.RawMessage
	switch {
	case strings.TrimSpace(arguments) == "":
		c.Args = json.RawMessage(`{}`)
	case json.Unmarshal([]byte(arguments), &object) != nil || object == nil:
		c.Malformed = arguments
	default:
		c.Args = json.RawMessage(arguments)
	}
	d.addParts(llm.AssistantRole, true, llm.Part{Type: llm.CallPart, ToolCall: c})
	return nil
}

// addResult adds the output of a call. It returns a RequestError without a call id, and
// for an output that content refuses.
func (d *decoder) addResult(v *tree.Value, kind, at string) error {
	r := &llm.ToolResult{ID: stringMember(v, "call_id")}
	if r.ID == "" {
		return requestErrorf(at, "a %s has no call_id", kind)
	}
	parts, err := decodeContent(v.Get("output"), llm.ToolRole, at)
	if err != nil {
		return err
	}
	r.Content = parts
	d.addParts(llm.ToolRole, true, llm.Part{Type: llm.ResultPart, ToolResult: r})
	return nil
}
