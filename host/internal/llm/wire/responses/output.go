package responses

import (
	"encoding/json"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// The status values of items and responses.
const (
	InProgress = "in_progress"
	Completed  = "completed"
	Incomplete = "incomplete"
	Failed     = "failed"
)

// TextPart returns a text part of an assistant's message.
func TextPart(text string) *tree.Value {
	return tree.Obj("type", tree.Str("output_text"), "text", tree.Str(text), "annotations", tree.List(), "logprobs", tree.List())
}

// RefusalPart returns a refusal part of an assistant's message.
func RefusalPart(text string) *tree.Value {
	return tree.Obj("type", tree.Str("refusal"), "refusal", tree.Str(text))
}

// SummaryPart returns a part of a reasoning item.
func SummaryPart(text string) *tree.Value {
	return tree.Obj("type", tree.Str("summary_text"), "text", tree.Str(text))
}

// MessageItem returns a message item of the assistant.
func MessageItem(id, status string, parts ...*tree.Value) *tree.Value {
	return tree.Obj("id", tree.Str(id), "type", tree.Str("message"), "status", tree.Str(status), "role", tree.Str("assistant"), "content", tree.List(parts...))
}

// ReasoningItem returns a reasoning item with a summary.
func ReasoningItem(id string, parts ...*tree.Value) *tree.Value {
	return tree.Obj("id", tree.Str(id), "type", tree.Str("reasoning"), "summary", tree.List(parts...))
}

// CallItem returns an item with a call of the tool. arguments are the model's JSON
// text.
func (c Callable) CallItem(id, status, call, arguments string) *tree.Value {
	v := tree.Obj("id", tree.Str(id), "type", tree.Str("function_call"), "status", tree.Str(status), "call_id", tree.Str(call), "name", tree.Str(c.Name))
	if c.Custom {
		v.Set("type", tree.Str("custom_tool_call"))
		v.Set("input", tree.Str(CustomInput(arguments)))
	} else {
		v.Set("arguments", tree.Str(arguments))
	}
	if c.Namespace != "" {
		v.Set("namespace", tree.Str(c.Namespace))
	}
	return v
}

// CustomInput returns the text for a custom tool from the model's arguments, a JSON object
// with the member input. Other arguments are returned unchanged.
func CustomInput(arguments string) string {
	var made struct{ Input *string }
	if json.Unmarshal([]byte(arguments), &made) != nil || made.Input == nil {
		return arguments
	}
	return *made.Input
}

// EncodeUsage encodes the usage of a response.
func EncodeUsage(u *llm.Usage) *tree.Value {
	return tree.Obj(
		"input_tokens", tree.Int(u.Input), "input_tokens_details", tree.Obj("cached_tokens", tree.Int(u.CacheRead), "cache_write_tokens", tree.Int(u.CacheWrite)),
		"output_tokens", tree.Int(u.Output), "output_tokens_details", tree.Obj("reasoning_tokens", tree.Int(u.Reasoning)),
		"total_tokens", tree.Int(u.Input+u.Output))
}
