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

// kindRule returns a rule for values of a JSON kind; words names it in errors.
func kindRule(words string, kind tree.Kind) valueRule {
	return valueRule{words: words, fits: func(v *tree.Value) bool { return v.Is(kind) }}
}

// textRule returns a rule for strings.
func textRule() valueRule { return kindRule("a string", tree.String) }

// boolRule returns a rule for true and false.
func boolRule() valueRule { return kindRule("true or false", tree.Bool) }

// numberRule returns a rule for numbers.
func numberRule() valueRule { return kindRule("a number", tree.Number) }

// integerRule returns a rule for whole numbers.
func integerRule() valueRule {
	return valueRule{words: "a whole number", fits: func(v *tree.Value) bool {
		_, err := strconv.ParseInt(v.Text, 10, 64)
		return v.Is(tree.Number) && err == nil
	}}
}

// objectRule returns a rule for objects whose members, if they are there, fit the rules.
func objectRule(members map[string]valueRule) valueRule {
	w := kindRule("an object", tree.Object)
	w.members = members
	return w
}

// listRule returns a rule for lists whose items fit of.
func listRule(of valueRule) valueRule {
	w := kindRule("a list", tree.Array)
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
	function := objectRule(map[string]valueRule{"name": textRule(), "description": textRule(), "parameters": objectRule(nil), "strict": boolRule()})
	named := objectRule(map[string]valueRule{"name": textRule()})
	return objectRule(map[string]valueRule{
		"messages": messagesRule(), "model": textRule(), "stream": boolRule(), "parallel_tool_calls": boolRule(),
		"stream_options":  objectRule(map[string]valueRule{"include_usage": boolRule(), "include_obfuscation": boolRule()}),
		"tools":           listRule(objectRule(map[string]valueRule{"type": textRule(), "function": function})),
		"functions":       listRule(function),
		"function_call":   textRule().orRule(named),
		"tool_choice":     textRule().orRule(objectRule(map[string]valueRule{"type": textRule(), "function": named, "allowed_tools": objectRule(map[string]valueRule{"mode": textRule(), "tools": listRule(objectRule(map[string]valueRule{"type": textRule(), "function": named}))})})),
		"stop":            textRule().orRule(listRule(textRule())),
		"response_format": objectRule(map[string]valueRule{"type": textRule(), "json_schema": objectRule(map[string]valueRule{"name": textRule(), "description": textRule(), "schema": objectRule(nil), "strict": boolRule()})}),
		"user":            textRule(), "safety_identifier": textRule(), "prompt_cache_key": textRule(), "service_tier": textRule(), "reasoning_effort": textRule(), "verbosity": textRule(),
		"n": integerRule(), "seed": integerRule(), "top_logprobs": integerRule(), "logprobs": boolRule(), "store": boolRule(),
		"temperature": numberRule(), "top_p": numberRule(), "frequency_penalty": numberRule(), "presence_penalty": numberRule(),
		"max_tokens": integerRule(), "max_completion_tokens": integerRule(),
		"modalities": listRule(textRule()), "logit_bias": objectRule(nil), "metadata": objectRule(nil), "prediction": objectRule(nil),
	})
}

// messagesRule describes messages in OpenAI's format.
func messagesRule() valueRule {
	part := objectRule(map[string]valueRule{"type": textRule(), "text": textRule(), "refusal": textRule(), "image_url": objectRule(map[string]valueRule{"url": textRule(), "detail": textRule()})})
	called := objectRule(map[string]valueRule{"name": textRule(), "arguments": textRule().orRule(objectRule(nil))})
	return listRule(objectRule(map[string]valueRule{
		"role": textRule(), "name": textRule(), "content": textRule().orRule(listRule(part)), "refusal": textRule(), "reasoning_content": textRule(), "reasoning": textRule(),
		"tool_call_id": textRule(), "tool_calls": listRule(objectRule(map[string]valueRule{"id": textRule(), "type": textRule(), "function": called})), "function_call": called,
	}))
}

// messageRule describes the body of POST /v1/messages.
func messageRule() valueRule {
	source := objectRule(map[string]valueRule{"type": textRule(), "media_type": textRule(), "data": textRule(), "url": textRule()})
	cached := objectRule(map[string]valueRule{"type": textRule(), "ttl": textRule()})
	inner := map[string]valueRule{"type": textRule(), "text": textRule(), "source": source, "cache_control": cached}
	block := map[string]valueRule{
		"id": textRule(), "name": textRule(), "input": objectRule(nil), "tool_use_id": textRule(), "is_error": boolRule(), "content": textRule().orRule(listRule(objectRule(inner))),
		"thinking": textRule(), "signature": textRule(), "data": textRule(),
	}
	for name, w := range inner {
		block[name] = w
	}
	return objectRule(map[string]valueRule{
		"messages": listRule(objectRule(map[string]valueRule{"role": textRule(), "content": textRule().orRule(listRule(objectRule(block)))})),
		"system":   textRule().orRule(listRule(objectRule(inner))), "model": textRule(), "stream": boolRule(), "stop_sequences": listRule(textRule()),
		"max_tokens": integerRule(), "temperature": numberRule(), "top_p": numberRule(), "top_k": integerRule(),
		"tools":       listRule(objectRule(map[string]valueRule{"type": textRule(), "name": textRule(), "description": textRule(), "input_schema": objectRule(nil), "strict": boolRule(), "cache_control": cached})),
		"tool_choice": objectRule(map[string]valueRule{"type": textRule(), "name": textRule(), "disable_parallel_tool_use": boolRule()}),
		"metadata":    objectRule(map[string]valueRule{"user_id": textRule()}), "thinking": objectRule(map[string]valueRule{"type": textRule(), "budget_tokens": integerRule()}),
		"service_tier": textRule(), "mcp_servers": listRule(objectRule(nil)), "container": textRule().orRule(objectRule(nil)), "context_management": objectRule(nil), "output_config": objectRule(map[string]valueRule{"effort": textRule(), "format": objectRule(nil)}),
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
