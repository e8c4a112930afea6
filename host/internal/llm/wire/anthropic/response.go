package anthropic

import (
	"encoding/json"
	"fmt"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// EncodeResponse writes a message of the assistant's.
func EncodeResponse(r *llm.Response, o Options) (*tree.Value, llm.Losses) {
	e := &encoder{o: o}
	blocks := tree.List(e.parts(llm.Message{Role: llm.Assistant, Parts: r.Parts}, "/parts")...)
	for _, b := range blocks.Items {
		switch kind := b.Get("type"); { // as Anthropic's own have it
		case !kind.Is(tree.String):
		case kind.Text == "text":
			b.Set("citations", &tree.Value{})
		case kind.Text == "tool_use":
			b.Set("caller", tree.Obj("type", tree.Str("direct")))
		}
	}
	if r.Created != 0 {
		e.losses.Lose("/created", "Anthropic does not report the time")
	}
	matched := &tree.Value{}
	if r.Matched != "" {
		matched = tree.Str(r.Matched)
	}
	usage := r.Usage
	if usage == nil {
		usage = &llm.Usage{}
		e.losses.Carry("/usage", "Anthropic always reports usage", tree.Obj())
	}
	return tree.Obj(
		"id", tree.Str(r.ID), "type", tree.Str("message"), "role", tree.Str("assistant"), "model", tree.Str(r.Model),
		"content", blocks, "stop_reason", e.stop(r), "stop_sequence", matched, "usage", EncodeUsage(usage)), e.losses
}

// EncodeUsage writes it as it is in streams, too.
func EncodeUsage(u *llm.Usage) *tree.Value {
	return tree.Obj(
		"input_tokens", tree.Int(u.Input-u.CacheRead-u.CacheWrite), "output_tokens", tree.Int(u.Output),
		"cache_read_input_tokens", tree.Int(u.CacheRead), "cache_creation_input_tokens", tree.Int(u.CacheWrite),
		"output_tokens_details", tree.Obj("thinking_tokens", tree.Int(u.Reasoning)))
}

// words are Anthropic's for why a turn ended.
func words() map[llm.Stop]string {
	return map[llm.Stop]string{
		llm.StopEnd: "end_turn", llm.StopCalls: "tool_use", llm.StopLength: "max_tokens", llm.StopSequence: "stop_sequence",
		llm.StopPause: "pause_turn", llm.StopRefusal: "refusal", llm.StopContext: "model_context_window_exceeded",
	}
}

func (e *encoder) stop(r *llm.Response) *tree.Value {
	if r.By == llm.Anthropic && r.Word != "" {
		return tree.Str(r.Word)
	}
	if r.Stop == "" {
		return &tree.Value{}
	}
	if word := words()[r.Stop]; word != "" {
		return tree.Str(word)
	}
	e.losses.Change("/stop", "Anthropic has no stop reason "+string(r.Stop), tree.Str(string(llm.StopEnd)))
	return tree.Str("end_turn")
}

// Stop says what a stop_reason means.
func Stop(word string) llm.Stop {
	for stop, w := range words() {
		if w == word {
			return stop
		}
	}
	if word == "" {
		return ""
	}
	return llm.StopOther
}

// DecodeResponse reads a message of the assistant's.
func DecodeResponse(body json.RawMessage, o Options) (*llm.Response, llm.Losses, error) {
	v, err := tree.Parse(body)
	if err != nil {
		return nil, nil, fmt.Errorf("the response: %w", err)
	}
	if !v.Get("content").Is(tree.Array) {
		return nil, nil, fmt.Errorf("the response has no array content")
	}
	d := &decoder{o: o}
	v.Take("type").Str()
	v.Take("role").Str()
	word := v.Take("stop_reason").Str()
	r := &llm.Response{
		ID:    v.Take("id").Str(),
		Model: v.Take("model").Str(),
		Parts: d.blocks(v.Take("content")),
		Stop:  Stop(word), Word: word, By: llm.Anthropic,
		Matched: v.Take("stop_sequence").Str(),
		Usage:   DecodeUsage(v.Take("usage")),
	}
	var losses llm.Losses
	losses.Unread(v)
	return r, losses, nil
}

// DecodeUsage decodes a usage, also of a stream's event; nil: none.
func DecodeUsage(v *tree.Value) *llm.Usage {
	if !v.Is(tree.Object) {
		return nil
	}
	u := &llm.Usage{
		Input:      v.Take("input_tokens").Int(),
		Output:     v.Take("output_tokens").Int(),
		CacheRead:  v.Take("cache_read_input_tokens").Int(),
		CacheWrite: v.Take("cache_creation_input_tokens").Int(),
		Reasoning:  v.Take("output_tokens_details").Take("thinking_tokens").Int(),
	}
	u.Input += u.CacheRead + u.CacheWrite
	return u
}
