package openai

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// EncodeResponse writes a chat completion.
func EncodeResponse(r *llm.Response, o Options) (*tree.Value, llm.Losses) {
	e := &encoder{o: o}
	message := e.said(r.Parts)
	if o.OldFunctions {
		e.oldCall(message)
	}
	choice := tree.Obj("index", tree.Int(0), "message", message, "logprobs", &tree.Value{}, "finish_reason", e.stop(r))
	body := tree.Obj(
		"id", tree.Str(r.ID), "object", tree.Str("chat.completion"), "created", tree.Int(int(r.Created)),
		"model", tree.Str(r.Model), "choices", tree.List(choice))
	if u := r.Usage; u != nil {
		body.Set("usage", EncodeUsage(u))
	}
	return body, e.losses
}

// EncodeUsage writes what is at the end of a stream, too.
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

// said writes a message as responses have it: one text, one refusal, calls.
func (e *encoder) said(parts []llm.Part) *tree.Value {
	var kept []llm.Part
	var last llm.PartType
	merged := false
	for i, p := range parts {
		at := llm.Index("/parts", i)
		switch {
		case p.Type == llm.Image:
			e.losses.Lose(at, "OpenAI's responses have no images")
			continue
		case p.Type == llm.Opaque && (p.By != llm.OpenAI || !isCall(p)):
			e.losses.Lose(at, "OpenAI's responses have no such content")
			continue
		case p.Type == llm.Text || p.Type == llm.Refusal:
			e.unsigned(p, at)
			p.Signature = nil
			merged = merged || p.Type == llm.Text && slices.ContainsFunc(kept, func(k llm.Part) bool { return k.Type == llm.Refusal })
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
	message := inner.assistant(llm.Message{Role: llm.Assistant, Parts: kept}, "")
	for _, loss := range inner.losses {
		loss.Path = original(loss.Path, parts, kept)
		e.losses = append(e.losses, loss)
	}
	if message == nil {
		message = tree.Obj("role", tree.Str("assistant"), "content", &tree.Value{})
	}
	if merged {
		e.losses.Change("/parts", "a response has one text, then the refusal", e.now(kept))
	}
	e.separate(message)
	return message
}

// original converts a pointer to a part of the kept parts into one to the response.
func original(path string, parts, kept []llm.Part) string {
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
		if p.Type == llm.Opaque && string(p.Raw) != string(kept[index].Raw) {
			continue
		}
		if nth == 0 {
			return llm.Index("/parts", i) + path[len(llm.Index("/parts", index)):]
		}
		nth--
	}
	return path
}

// now are the parts that a response with kept ones is read as.
func (e *encoder) now(kept []llm.Part) *tree.Value {
	probe := &encoder{o: e.o}
	message := probe.assistant(llm.Message{Role: llm.Assistant, Parts: kept}, "")
	if message == nil {
		return tree.List()
	}
	probe.separate(message)
	d := &decoder{o: e.o}
	parts := d.assistant(message)
	if parts == nil {
		parts = []llm.Part{}
	}
	return llm.Value(parts)
}

// separate puts the refusal in its own member.
func (e *encoder) separate(message *tree.Value) {
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
		content = llm.Blocks(tree.List(rest...))
		if content == nil {
			content = &tree.Value{}
		}
		message.Set("content", content)
	}
	message.Set("refusal", refusal)
}

// oldCall writes the first call as there was one before there were several.
func (e *encoder) oldCall(message *tree.Value) {
	calls := message.Get("tool_calls").All()
	if len(calls) == 0 {
		return
	}
	message.Delete("tool_calls")
	message.Set("function_call", calls[0].Get("function"))
	e.losses.Lose("/parts", "function_call has no id, and a message has at most one")
}

func (e *encoder) stop(r *llm.Response) *tree.Value {
	if r.By == llm.OpenAI && r.Word != "" {
		return tree.Str(r.Word)
	}
	if r.Matched != "" {
		e.losses.Lose("/matched", "OpenAI does not report the stop sequence")
	}
	word, now := "stop", llm.StopEnd
	switch r.Stop {
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
	e.losses.Change("/stop", "OpenAI has no finish reason "+string(r.Stop), tree.Str(string(now)))
	return tree.Str(word)
}

// Stop says what a finish_reason means.
func Stop(word string) llm.Stop {
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

// DecodeResponse reads a chat completion: its first choice.
func DecodeResponse(body json.RawMessage, o Options) (*llm.Response, llm.Losses, error) {
	v, err := tree.Parse(body)
	if err != nil {
		return nil, nil, fmt.Errorf("the response: %w", err)
	}
	choices := v.Take("choices").List()
	if len(choices) == 0 || !choices[0].Get("message").Is(tree.Object) {
		return nil, nil, fmt.Errorf("the response has no choice with a message")
	}
	d := &decoder{o: o}
	v.Take("object").Skip()
	choices[0].Take("index").Skip()
	message := choices[0].Take("message")
	message.Take("role").Str()
	word := choices[0].Take("finish_reason").Str()
	r := &llm.Response{
		ID:      v.Take("id").Str(),
		Model:   v.Take("model").Str(),
		Created: int64(v.Take("created").Int()),
		Parts:   d.assistant(message),
		Stop:    Stop(word), Word: word, By: llm.OpenAI,
		Usage: DecodeUsage(v.Take("usage")),
	}
	var losses llm.Losses
	losses.Unread(v)
	return r, append(losses, d.losses...), nil
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
