package responses

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// Reference is the type of an item that names an item of a stored response.
const Reference = "item_reference"

// additional is the type of an item that declares tools.
const additional = "additional_tools"

// passedOver are the types of items that record calls of built-in tools. DecodeItems
// returns them as ignored.
func passedOver() []string {
	return []string{
		"web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "computer_call", "computer_call_output",
		"local_shell_call", "local_shell_call_output", "shell_call", "shell_call_output", "apply_patch_call", "apply_patch_call_output",
		"mcp_list_tools", "mcp_call", "mcp_approval_request", "mcp_approval_response", "tool_search_call", "tool_search_output",
	}
}

// DecodeItems reads the items of input as messages. Neighbouring items of the assistant
// become one message, and so do neighbouring results. Reasoning items are skipped: the
// host keeps signed reasoning itself. ignored are the types of other skipped items.
func DecodeItems(list *tree.Value) (messages []llm.Message, ignored []string, err error) {
	d := &decoder{}
	for i, item := range list.All() {
		if err := d.item(item, llm.Index("input", i)); err != nil {
			return nil, nil, err
		}
	}
	llm.NameResults(d.messages)
	return d.messages, d.ignored, nil
}

type decoder struct {
	messages []llm.Message
	ignored  []string
}

// add adds parts to the last message if the role is the same and join is set.
func (d *decoder) add(role llm.Role, join bool, parts ...llm.Part) {
	if last := len(d.messages) - 1; join && last >= 0 && d.messages[last].Role == role {
		d.messages[last].Parts = append(d.messages[last].Parts, parts...)
		return
	}
	d.messages = append(d.messages, llm.Message{Role: role, Parts: parts})
}

func (d *decoder) item(v *tree.Value, at string) error {
	switch kind := text(v, "type"); {
	case kind == "message", kind == "" && v.Get("role") != nil:
		return d.message(v, at)
	case kind == "function_call", kind == "custom_tool_call":
		return d.call(v, kind, at)
	case kind == "function_call_output", kind == "custom_tool_call_output":
		return d.result(v, kind, at)
	case kind == "reasoning", kind == additional:
		return nil
	case slices.Contains(passedOver(), kind):
		if !slices.Contains(d.ignored, kind) {
			d.ignored = append(d.ignored, kind)
		}
		return nil
	case kind == "":
		return fault(at, "an input item has neither a type nor a role")
	default:
		return fault(at, "input items of type %.60s are not supported", kind)
	}
}

func (d *decoder) message(v *tree.Value, at string) error {
	role := llm.Role(text(v, "role"))
	if !slices.Contains([]llm.Role{llm.User, llm.Assistant, llm.System, llm.Developer}, role) {
		return fault(at, "the role of a message must be user, assistant, system or developer, not %.40q", role)
	}
	parts, err := content(v.Get("content"), role, at)
	if err != nil {
		return err
	}
	d.add(role, role == llm.Assistant, parts...)
	return nil
}

// content reads a text or a list of parts.
func content(v *tree.Value, role llm.Role, at string) ([]llm.Part, error) {
	switch {
	case v.Is(tree.String):
		return []llm.Part{{Type: llm.Text, Text: v.Text}}, nil
	case !v.Is(tree.Array):
		return nil, fault(at, "the content must be text or a list of parts")
	}
	var parts []llm.Part
	for _, p := range v.Items {
		kind := text(p, "type")
		switch {
		case (kind == "input_text" || kind == "output_text" || kind == "text") && p.Get("text").Is(tree.String):
			parts = append(parts, llm.Part{Type: llm.Text, Text: p.Get("text").Text})
		case kind == "refusal" && role == llm.Assistant && p.Get("refusal").Is(tree.String):
			parts = append(parts, llm.Part{Type: llm.Refusal, Text: p.Get("refusal").Text})
		case kind == "input_image" && text(p, "image_url") != "" && (role == llm.User || role == llm.ToolRole):
			parts = append(parts, llm.Part{Type: llm.Image, Media: image(text(p, "image_url"), text(p, "detail"))})
		default:
			return nil, fault(at, "a part of type %.40q is not supported: a %s can contain input_text, output_text or input_image with an image_url", kind, role)
		}
	}
	return parts, nil
}

// image is an image at an address, or in it (RFC 2397).
func image(url, detail string) *llm.Media {
	m := &llm.Media{URL: url, Detail: detail}
	rest, inline := strings.CutPrefix(url, "data:")
	head, data, cut := strings.Cut(rest, ",")
	mime, base64 := strings.CutSuffix(head, ";base64")
	if inline && cut && base64 && !strings.Contains(mime, ";") && data != "" {
		m.MIME, m.Data, m.URL = mime, data, ""
	}
	return m
}

func (d *decoder) call(v *tree.Value, kind, at string) error {
	c := &llm.ToolCall{ID: text(v, "call_id"), Name: told(text(v, "namespace"), text(v, "name"))}
	if c.ID == "" || text(v, "name") == "" {
		return fault(at, "a %s has no call_id or no name", kind)
	}
	arguments := text(v, "arguments")
	if kind == "custom_tool_call" {
		arguments = string(tree.Obj("input", tree.Str(text(v, "input"))).JSON())
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
	d.add(llm.Assistant, true, llm.Part{Type: llm.Call, ToolCall: c})
	return nil
}

func (d *decoder) result(v *tree.Value, kind, at string) error {
	r := &llm.ToolResult{ID: text(v, "call_id")}
	if r.ID == "" {
		return fault(at, "a %s has no call_id", kind)
	}
	parts, err := content(v.Get("output"), llm.ToolRole, at)
	if err != nil {
		return err
	}
	r.Content = parts
	d.add(llm.ToolRole, true, llm.Part{Type: llm.Result, ToolResult: r})
	return nil
}
