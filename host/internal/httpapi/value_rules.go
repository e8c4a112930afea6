package httpapi

import (
	"slices"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// A valueRule describes a value of a request: the parts that are used, and the hints. null
// counts as missing, except in a list. Members without a name here may have any value.
type valueRule struct {
	words   string
	fits    func(*tree.Value) bool
	members map[string]valueRule // of an object
	items   *valueRule           // of a list
}

// ofKind returns a rule for values of a JSON kind; words names it in errors.
func ofKind(words string, kind tree.Kind) valueRule {
	return valueRule{words: words, fits: func(v *tree.Value) bool { return v.Is(kind) }}
}

// aText returns a rule for strings.
func aText() valueRule { return ofKind("a string", tree.String) }

// aFlag returns a rule for true and false.
func aFlag() valueRule { return ofKind("true or false", tree.Bool) }

// aNumber returns a rule for numbers.
func aNumber() valueRule { return ofKind("a number", tree.Number) }

// aWhole returns a rule for whole numbers.
func aWhole() valueRule {
	return valueRule{words: "a whole number", fits: func(v *tree.Value) bool {
		_, err := strconv.ParseInt(v.Text, 10, 64)
		return v.Is(tree.Number) && err == nil
	}}
}

// anObject returns a rule for objects whose members, if they are there, fit the rules.
func anObject(members map[string]valueRule) valueRule {
	w := ofKind("an object", tree.Object)
	w.members = members
	return w
}

// aList returns a rule for lists whose items fit of.
func aList(of valueRule) valueRule {
	w := ofKind("a list", tree.Array)
	w.items = &of
	return w
}

// orRule returns a rule that accepts what either rule accepts. Only other may describe the members
// of an object or the items of a list.
func (w valueRule) orRule(other valueRule) valueRule {
	return valueRule{
		words:   w.words + " or " + other.words,
		fits:    func(v *tree.Value) bool { return w.fits(v) || other.fits(v) },
		members: other.members, items: other.items,
	}
}

// check returns INVALID_PARAMS for the first value that does not fit. at is its JSON pointer for
// the message, and param the parameter that the error names; "": the member of v.
func (w valueRule) check(v *tree.Value, at, param string) error {
	if isAbsent(v) {
		return nil
	}
	if !w.fits(v) {
		return invalid(param, "%.200s must be %s", strings.TrimPrefix(at, "/"), w.words)
	}
	for _, m := range v.PeekMembers() {
		if of, known := w.members[m.Name]; known {
			inner := param
			if param == "" {
				inner = m.Name
			}
			if err := of.check(m.Value, llm.AppendKey(at, m.Name), inner); err != nil {
				return err
			}
		}
	}
	if w.items == nil {
		return nil
	}
	for i, item := range v.PeekItems() {
		here, inner := llm.AppendIndex(at, i), param
		if w.items.members != nil && strings.Count(at, "/") == 1 {
			inner = llm.AppendIndex(param, i)
		}
		if isAbsent(item) {
			return invalid(inner, "%.200s must be %s, not null", strings.TrimPrefix(here, "/"), w.items.words)
		}
		if err := w.items.check(item, here, inner); err != nil {
			return err
		}
	}
	return nil
}

// chatRule describes the body of POST /v1/chat/completions.
func chatRule() valueRule {
	function := anObject(map[string]valueRule{"name": aText(), "description": aText(), "parameters": anObject(nil), "strict": aFlag()})
	named := anObject(map[string]valueRule{"name": aText()})
	return anObject(map[string]valueRule{
		"messages": messagesRule(), "model": aText(), "stream": aFlag(), "parallel_tool_calls": aFlag(),
		"stream_options":  anObject(map[string]valueRule{"include_usage": aFlag(), "include_obfuscation": aFlag()}),
		"tools":           aList(anObject(map[string]valueRule{"type": aText(), "function": function})),
		"functions":       aList(function),
		"function_call":   aText().orRule(named),
		"tool_choice":     aText().orRule(anObject(map[string]valueRule{"type": aText(), "function": named, "allowed_tools": anObject(map[string]valueRule{"mode": aText(), "tools": aList(anObject(map[string]valueRule{"type": aText(), "function": named}))})})),
		"stop":            aText().orRule(aList(aText())),
		"response_format": anObject(map[string]valueRule{"type": aText(), "json_schema": anObject(map[string]valueRule{"name": aText(), "description": aText(), "schema": anObject(nil), "strict": aFlag()})}),
		"user":            aText(), "safety_identifier": aText(), "prompt_cache_key": aText(), "service_tier": aText(), "reasoning_effort": aText(), "verbosity": aText(),
		"n": aWhole(), "seed": aWhole(), "top_logprobs": aWhole(), "logprobs": aFlag(), "store": aFlag(),
		"temperature": aNumber(), "top_p": aNumber(), "frequency_penalty": aNumber(), "presence_penalty": aNumber(),
		"max_tokens": aWhole(), "max_completion_tokens": aWhole(),
		"modalities": aList(aText()), "logit_bias": anObject(nil), "metadata": anObject(nil), "prediction": anObject(nil),
	})
}

// messagesRule describes messages in OpenAI's format.
func messagesRule() valueRule {
	part := anObject(map[string]valueRule{"type": aText(), "text": aText(), "refusal": aText(), "image_url": anObject(map[string]valueRule{"url": aText(), "detail": aText()})})
	called := anObject(map[string]valueRule{"name": aText(), "arguments": aText().orRule(anObject(nil))})
	return aList(anObject(map[string]valueRule{
		"role": aText(), "name": aText(), "content": aText().orRule(aList(part)), "refusal": aText(), "reasoning_content": aText(), "reasoning": aText(),
		"tool_call_id": aText(), "tool_calls": aList(anObject(map[string]valueRule{"id": aText(), "type": aText(), "function": called})), "function_call": called,
	}))
}

// messageRule describes the body of POST /v1/messages.
func messageRule() valueRule {
	source := anObject(map[string]valueRule{"type": aText(), "media_type": aText(), "data": aText(), "url": aText()})
	cached := anObject(map[string]valueRule{"type": aText(), "ttl": aText()})
	inner := map[string]valueRule{"type": aText(), "text": aText(), "source": source, "cache_control": cached}
	block := map[string]valueRule{
		"id": aText(), "name": aText(), "input": anObject(nil), "tool_use_id": aText(), "is_error": aFlag(), "content": aText().orRule(aList(anObject(inner))),
		"thinking": aText(), "signature": aText(), "data": aText(),
	}
	for name, w := range inner {
		block[name] = w
	}
	return anObject(map[string]valueRule{
		"messages": aList(anObject(map[string]valueRule{"role": aText(), "content": aText().orRule(aList(anObject(block)))})),
		"system":   aText().orRule(aList(anObject(inner))), "model": aText(), "stream": aFlag(), "stop_sequences": aList(aText()),
		"max_tokens": aWhole(), "temperature": aNumber(), "top_p": aNumber(), "top_k": aWhole(),
		"tools":       aList(anObject(map[string]valueRule{"type": aText(), "name": aText(), "description": aText(), "input_schema": anObject(nil), "strict": aFlag(), "cache_control": cached})),
		"tool_choice": anObject(map[string]valueRule{"type": aText(), "name": aText(), "disable_parallel_tool_use": aFlag()}),
		"metadata":    anObject(map[string]valueRule{"user_id": aText()}), "thinking": anObject(map[string]valueRule{"type": aText(), "budget_tokens": aWhole()}),
		"service_tier": aText(), "mcp_servers": aList(anObject(nil)), "container": aText().orRule(anObject(nil)), "context_management": anObject(nil), "output_config": anObject(map[string]valueRule{"effort": aText(), "format": anObject(nil)}),
	})
}

// lacksImage reports whether an image block has no complete source: data with its type, or a URL.
func lacksImage(b *tree.Value) bool {
	source := b.Get("source")
	switch kind := source.Get("type"); {
	case isString(kind, "base64"):
		return !source.Get("data").Is(tree.String) || !source.Get("media_type").Is(tree.String)
	case isString(kind, "url"):
		return !source.Get("url").Is(tree.String)
	}
	return true
}

// formatTypes returns the types of response_format except text.
func formatTypes() []string { return []string{"json_object", "json_schema"} }

// checkFormat returns an error for a response_format of an unknown type, or a json_schema without
// name or schema. A missing one is valid.
func checkFormat(f *tree.Value) error {
	kind := f.Get("type")
	switch {
	case isAbsent(f) || isString(kind, "text"):
		return nil
	case !kind.Is(tree.String) || !slices.Contains(formatTypes(), kind.Text):
		return invalid("response_format", "the type of response_format must be one of text, %s", strings.Join(formatTypes(), ", "))
	case kind.Text == "json_schema" && (!hasName(f.Get("json_schema")) || !f.Get("json_schema").Get("schema").Is(tree.Object)):
		return invalid("response_format", "response_format of type json_schema must have json_schema with a name and a schema")
	}
	return nil
}
