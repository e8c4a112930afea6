package anthropic

import (
	"encoding/json"
	"fmt"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// EncodeResponse encodes a message of the assistant.
func EncodeResponse(r *llm.Response, o Options) (*tree.Value, llm.Losses) {
	e := &encoder{o: o}
	blocks := tree.List(e.encodeParts(llm.Message{Role: llm.AssistantRole, Parts: r.Parts}, "/parts")...)
	for _, b := range blocks.Items {
		switch kind := b.Get("type"); { // order of members as from Anthropic
		case !kind.Is(tree.String):
		case kind.Text == "text":
			b.Set("citations", &tree.Value{})
		case kind.Text == "tool_use":
			b.Set("caller", tree.Obj("type", tree.Str("direct")))
		}
	}
	if r.Created != 0 {
		e.losses.AddLost("/created", "Anthropic does not report the time")
	}
	matched := &tree.Value{}
	if r.MatchedStop != "" {
		matched = tree.Str(r.MatchedStop)
	}
	usage := r.Usage
	if usage == nil {
		usage = &llm.Usage{}
		e.losses.AddEquivalent("/usage", "Anthropic always reports usage", tree.Obj())
	}
	return tree.Obj(
		"id", tree.Str(r.ID), "type", tree.Str("message"), "role", tree.Str("assistant"), "model", tree.Str(r.Model),
		"content", blocks, "stop_reason", e.stopReason(r), "stop_sequence", matched, "usage", EncodeUsage(usage)), e.losses
}

// EncodeUsage returns the member usage of responses and streams.
func EncodeUsage(u *llm.Usage) *tree.Value {
	return tree.Obj(
		"input_tokens", tree.Int(u.Input-u.CacheRead-u.CacheWrite), "output_tokens", tree.Int(u.Output),
		"cache_read_input_tokens", tree.Int(u.CacheRead), "cache_creation_input_tokens", tree.Int(u.CacheWrite),
		"output_tokens_details", tree.Obj("thinking_tokens", tree.Int(u.Reasoning)))
}

// stopReasons returns Anthropic's names of the stop reasons.
func stopReasons() map[llm.StopReason]string {
	return map[llm.StopReason]string{
		llm.StopEnd: "end_turn", llm.StopCalls: "tool_use", llm.StopLength: "max_tokens", llm.StopSequence: "stop_sequence",
		llm.StopPause: "pause_turn", llm.StopRefusal: "refusal", llm.StopContext: "model_context_window_exceeded",
	}
}

// stopReason returns Anthropic's word for the reason why the answer ended; null without
// a reason. A reason without a word becomes end_turn, and is recorded as changed.
func (e *encoder) stopReason(r *llm.Response) *tree.Value {
	if r.Vendor == llm.Anthropic && r.VendorStop != "" {
		return tree.Str(r.VendorStop)
	}
	if r.StopReason == "" {
		return &tree.Value{}
	}
	if word := stopReasons()[r.StopReason]; word != "" {
		return tree.Str(word)
	}
	e.losses.AddChanged("/stop", "Anthropic has no stop reason "+string(r.StopReason), tree.Str(string(llm.StopEnd)))
	return tree.Str("end_turn")
}

// StopReason returns the reason for a stop_reason: "" for "", StopOther for an unknown
// one.
func StopReason(word string) llm.StopReason {
	for stop, w := range stopReasons() {
		if w == word {
			return stop
		}
	}
	if word == "" {
		return ""
	}
	return llm.StopOther
}

// DecodeResponse decodes a message of the assistant. It fails without an array content.
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
		ID:         v.Take("id").Str(),
		Model:      v.Take("model").Str(),
		Parts:      d.decodeContent(v.Take("content")),
		StopReason: StopReason(word), VendorStop: word, Vendor: llm.Anthropic,
		MatchedStop: v.Take("stop_sequence").Str(),
		Usage:       DecodeUsage(v.Take("usage")),
	}
	var losses llm.Losses
	losses.AddUnread(v)
	return r, losses, nil
}

// DecodeUsage decodes the usage of a response or of an event of a stream; nil: none.
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
