package responses

import (
	"encoding/json"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// The states of items and responses.
const (
	InProgress = "in_progress"
	Completed  = "completed"
	Incomplete = "incomplete"
	Failed     = "failed"
)

// TextPart is a part of a message of the assistant's.
func TextPart(text string) *tree.Value {
	return tree.Obj("type", tree.Str("output_text"), "text", tree.Str(text), "annotations", tree.List(), "logprobs", tree.List())
}

// RefusalPart is a refusal by the model.
func RefusalPart(text string) *tree.Value {
	return tree.Obj("type", tree.Str("refusal"), "refusal", tree.Str(text))
}

// SummaryPart is a part of a reasoning item.
func SummaryPart(text string) *tree.Value {
	return tree.Obj("type", tree.Str("summary_text"), "text", tree.Str(text))
}

// Message is a message of the assistant's.
func Message(id, status string, parts ...*tree.Value) *tree.Value {
	return tree.Obj("id", tree.Str(id), "type", tree.Str("message"), "status", tree.Str(status), "role", tree.Str("assistant"), "content", tree.List(parts...))
}

// Reasoning is an item with a summary of the model's reasoning.
func Reasoning(id string, parts ...*tree.Value) *tree.Value {
	return tree.Obj("id", tree.Str(id), "type", tree.Str("reasoning"), "summary", tree.List(parts...))
}

// Call is a call of a client's tool. arguments are the model's, as JSON.
func (c Callable) Call(id, status, call, arguments string) *tree.Value {
	v := tree.Obj("id", tree.Str(id), "type", tree.Str("function_call"), "status", tree.Str(status), "call_id", tree.Str(call), "name", tree.Str(c.Name))
	if c.Custom {
		v.Set("type", tree.Str("custom_tool_call"))
		v.Set("input", tree.Str(Input(arguments)))
	} else {
		v.Set("arguments", tree.Str(arguments))
	}
	if c.Namespace != "" {
		v.Set("namespace", tree.Str(c.Namespace))
	}
	return v
}

// Input is the text that a custom tool is called with. Arguments that are not in the form
// that the model was told are taken as the text.
func Input(arguments string) string {
	var made struct{ Input *string }
	if json.Unmarshal([]byte(arguments), &made) != nil || made.Input == nil {
		return arguments
	}
	return *made.Input
}

// EncodeUsage writes the tokens that a response took.
func EncodeUsage(u *llm.Usage) *tree.Value {
	return tree.Obj(
		"input_tokens", tree.Int(u.Input), "input_tokens_details", tree.Obj("cached_tokens", tree.Int(u.CacheRead), "cache_write_tokens", tree.Int(u.CacheWrite)),
		"output_tokens", tree.Int(u.Output), "output_tokens_details", tree.Obj("reasoning_tokens", tree.Int(u.Reasoning)),
		"total_tokens", tree.Int(u.Input+u.Output))
}
