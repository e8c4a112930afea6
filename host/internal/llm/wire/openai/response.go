package openai

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// EncodeResponse encodes a chat completion.
func EncodeResponse(r *llm.Response, o Options) (*tree.Value, llm.Losses) {
	e := &encoder{o: o}
	message := e.responseMessage(r.Parts)
	if o.OldFunctions {
		e.useFunctionCall(message)
	}
	choice := tree.Obj("index", tree.Int(0), "message", message, "logprobs", &tree.Value{}, "finish_reason", e.finishReason(r))
	body := tree.Obj(
		"id", tree.Str(r.ID), "object", tree.Str("chat.completion"), "created", tree.Int(int(r.Created)),
		"model", tree.Str(r.Model), "choices", tree.List(choice))
	if u := r.Usage; u != nil {
		body.Set("usage", EncodeUsage(u))
	}
	return body, e.losses
}

// EncodeUsage returns the member usage of responses and of the end of a stream.
func EncodeUsage(u *llm.Usage) *tree.Value {
	prompt := tree.Obj("cached_tokens", tree.Int(u.CacheRead))
	if u.CacheWrite > 0 {
		prompt.Set("cache_write_tokens", tree.Int(u.CacheWrite))
	}
	return tree.Obj(
		"prompt_tokens", tree.Int(u.Input), "completion_tokens", tree.Int(u.Output), "total_tokens", tree.Int(u.Input+u.Output),
		"prompt_tokens_details", prompt,
		"completion_tokens_details", tree.Obj("reasoning_tokens", tree.Int(u.Reasoning)))
}

// responseMessage encodes the message of a response: at most one text and one refusal,
// and calls.
func (e *encoder) responseMessage(parts []llm.Part) *tree.Value {
	var kept []llm.Part
	var last llm.PartType
	merged := false
	for i, p := range parts {
		at := llm.AppendIndex("/parts", i)
		switch {
		case p.Type == llm.ImagePart:
			e.losses.AddLost(at, "OpenAI's responses have no images")
			continue
		case p.Type == llm.OpaquePart && (p.Vendor != llm.OpenAI || !isCustomCall(p)):
			e.losses.AddLost(at, "OpenAI's responses have no such content")
			continue
		case p.Type == llm.TextPart || p.Type == llm.RefusalPart:
			e.reportSignature(p, at)
			p.Signature = nil
			merged = merged || p.Type == llm.TextPart && slices.ContainsFunc(kept, func(k llm.Part) bool { return k.Type == llm.RefusalPart })
			found := false
			for k := range kept {
				if kept[k].Type == p.Type {
					if last != p.Type && kept[k].Text != "" && p.Text != "" {
						kept[k].Text += "\n\n"
					}
					kept[k].Text += p.Text
					found, merged = true, true
				}
			}
			last = p.Type
			if found {
				continue
			}
		default:
			last = p.Type
		}
		kept = append(kept, p)
	}
	inner := &encoder{o: e.o}
	message := inner.encodeAssistant(llm.Message{Role: llm.AssistantRole, Parts: kept}, "")
	for _, loss := range inner.losses {
		loss.Path = originalPath(loss.Path, parts, kept)
		e.losses = append(e.losses, loss)
	}
	if message == nil {
		message = tree.Obj("role", tree.Str("assistant"), "content", &tree.Value{})
	}
	if merged {
		e.losses.AddChanged("/parts", "a response has one text, then the refusal", e.decodedParts(kept))
	}
	e.separateRefusal(message)
	return message
}

// originalPath converts the pointer of a part of kept into the pointer of the same
// part of parts.
func originalPath(path string, parts, kept []llm.Part) string {
	var index int
	if n, _ := fmt.Sscanf(path, "/parts/%d", &index); n != 1 || index >= len(kept) { //nolint:errcheck // n tells
		return path
	}
	nth := 0
	for i := range index {
		if kept[i].Type == kept[index].Type {
			nth++
		}
	}
	for i, p := range parts {
		if p.Type != kept[index].Type {
			continue
		}
		if p.Type == llm.OpaquePart && string(p.Raw) != string(kept[index].Raw) {
			continue
		}
		if nth == 0 {
			return llm.AppendIndex("/parts", i) + path[len(llm.AppendIndex("/parts", index)):]
		}
		nth--
	}
	return path
}

// decodedParts returns the parts that a decoder would return for a response with the
// kept parts.
func (e *encoder) decodedParts(kept []llm.Part) *tree.Value {
	probe := &encoder{o: e.o}
	message := probe.encodeAssistant(llm.Message{Role: llm.AssistantRole, Parts: kept}, "")
	if message == nil {
		return tree.List()
	}
	probe.separateRefusal(message)
	d := &decoder{o: e.o}
	parts := d.decodeAssistant(message)
	if parts == nil {
		parts = []llm.Part{}
	}
	return llm.PartsJSON(parts)
}

// separateRefusal moves the refusal of a message from its content to the member refusal,
// null without one.
func (e *encoder) separateRefusal(message *tree.Value) {
	refusal := &tree.Value{}
	if content := message.Get("content"); content.Is(tree.Array) {
		var rest []*tree.Value
		for _, item := range content.Items {
			if text := item.Get("refusal"); text != nil {
				refusal = text
				continue
			}
			rest = append(rest, item)
		}
		content = llm.CompactBlocks(tree.List(rest...))
		if content == nil {
			content = &tree.Value{}
		}
		message.Set("content", content)
	}
	message.Set("refusal", refusal)
}

// useFunctionCall replaces tool_calls of the message by function_call, the deprecated form,
// with the first call.
func (e *encoder) useFunctionCall(message *tree.Value) {
	calls := message.Get("tool_calls").PeekItems()
	if len(calls) == 0 {
		return
	}
	message.Delete("tool_calls")
	message.Set("function_call", calls[0].Get("function"))
	e.losses.AddLost("/parts", "function_call has no id, and a message has at most one")
}

// finishReason returns OpenAI's word for the reason why the answer ended; null without
// a reason. What it cannot express is recorded as lost or changed.
func (e *encoder) finishReason(r *llm.Response) *tree.Value {
	if r.Vendor == llm.OpenAI && r.VendorStop != "" {
		return tree.Str(r.VendorStop)
	}
	if r.MatchedStop != "" {
		e.losses.AddLost("/matched", "OpenAI does not report the stop sequence")
	}
	word, now := "stop", llm.StopEnd
	switch r.StopReason {
	case "":
		return &tree.Value{}
	case llm.StopEnd:
		return tree.Str(word)
	case llm.StopCalls:
		if e.o.OldFunctions {
			return tree.Str("function_call")
		}
		return tree.Str("tool_calls")
	case llm.StopLength:
		return tree.Str("length")
	case llm.StopRefusal:
		return tree.Str("content_filter")
	case llm.StopContext:
		word, now = "length", llm.StopLength
	}
	e.losses.AddChanged("/stop", "OpenAI has no finish reason "+string(r.StopReason), tree.Str(string(now)))
	return tree.Str(word)
}

// StopReason returns the reason for a finish_reason: "" for "", StopOther for an unknown
// one.
func StopReason(word string) llm.StopReason {
	switch word {
	case "":
		return ""
	case "stop":
		return llm.StopEnd
	case "tool_calls", "function_call":
		return llm.StopCalls
	case "length":
		return llm.StopLength
	case "content_filter":
		return llm.StopRefusal
	}
	return llm.StopOther
}

// DecodeResponse decodes the first choice of a chat completion. It returns an error if the
// body is not JSON or has no such choice.
func DecodeResponse(body json.RawMessage, o Options) (*llm.Response, llm.Losses, error) {
	v, err := tree.Parse(body)
	if err != nil {
		return nil, nil, fmt.Errorf("the response: %w", err)
	}
	choices := v.Take("choices").TakeItems()
	if len(choices) == 0 || !choices[0].Get("message").Is(tree.Object) {
		return nil, nil, fmt.Errorf("the response has no choice with a message")
	}
	d := &decoder{o: o}
	v.Take("object").MarkAllRead()
	choices[0].Take("index").MarkAllRead()
	message := choices[0].Take("message")
	message.Take("role").Str()
	word := choices[0].Take("finish_reason").Str()
	r := &llm.Response{
		ID:         v.Take("id").Str(),
		Model:      v.Take("model").Str(),
		Created:    int64(v.Take("created").Int()),
		Parts:      d.decodeAssistant(message),
		StopReason: StopReason(word), VendorStop: word, Vendor: llm.OpenAI,
		Usage: DecodeUsage(v.Take("usage")),
	}
	var losses llm.Losses
	losses.AddUnread(v)
	return r, losses, nil
}

// DecodeUsage decodes the usage of a response or of the end of a stream; nil: none.
func DecodeUsage(v *tree.Value) *llm.Usage {
	if !v.Is(tree.Object) {
		return nil
	}
	prompt, completion := v.Take("prompt_tokens_details"), v.Take("completion_tokens_details")
	v.Take("total_tokens").Int()
	return &llm.Usage{
		Input:      v.Take("prompt_tokens").Int(),
		Output:     v.Take("completion_tokens").Int(),
		CacheRead:  prompt.Take("cached_tokens").Int(),
		CacheWrite: prompt.Take("cache_write_tokens").Int(),
		Reasoning:  completion.Take("reasoning_tokens").Int(),
	}
}
