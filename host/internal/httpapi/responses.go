package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/conversation"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/responses"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// responseOptions holds the members of a request that only the Responses API has.
type responseOptions struct {
	previous     string // id of the response to continue
	store        bool
	instructions string
	input        *tree.Value // the items
	tools        *responses.Tools
	echo         []any // names and values of request members that the response repeats

	before int64 // bytes of the conversation that is continued
}

// serveResponses answers POST /v1/responses: it runs the completion, with calls of the
// host's tools.
func (a *API) serveResponses(w http.ResponseWriter, r *http.Request) {
	q, err := a.readResponse(w, r)
	if err != nil {
		writeError(w, r, err)
		return
	}
	a.serveCompletion(w, r, q, func(c *completion) answerWriter { return newResponseWriter(c) })
}

// readResponse reads the body of POST /v1/responses, and the stored items that it refers to. Its
// errors name the wrong parameter.
func (a *API) readResponse(w http.ResponseWriter, r *http.Request) (*requestOptions, error) {
	v, err := readObject(w, r)
	if err != nil {
		return nil, err
	}
	q := &requestOptions{prefix: openaiPrefix, formatParam: "text.format"}
	only, err := q.takeExtensions(v, r)
	if err != nil {
		return nil, err
	}
	if err := checkResponse(v); err != nil {
		return nil, err
	}
	q.caller = callerOf(r, cmp.Or(textOf(v, "safety_identifier"), textOf(v, "user")))
	q.response = &responseOptions{
		previous: textOf(v, "previous_response_id"), store: !v.Get("store").False() && a.cfg.Responses != nil && q.session == "",
		instructions: textOf(v, "instructions"),
	}
	if err := a.readInput(r.Context(), q, v); err != nil {
		return nil, paramError(err)
	}
	if err := q.readOptions(v); err != nil {
		return nil, paramError(err)
	}
	if q.session != "" && q.response.previous != "" {
		return nil, invalid("previous_response_id", "previous_response_id and x_session both name a conversation; give one of them")
	}
	q.ignoreHints(v)
	return q, q.readModelAndTools(only)
}

// paramError returns an error of the decoder as one that names the parameter, and other errors
// unchanged.
func paramError(err error) error {
	var f *responses.RequestError
	if errors.As(err, &f) {
		return invalid(f.Path, "%s", f.Message)
	}
	return err
}

// textOf returns a string member, "" if it is missing or of another type.
func textOf(v *tree.Value, name string) string {
	if m := v.Get(name); m.Is(tree.String) {
		return m.Text
	}
	return ""
}

// checkResponse returns INVALID_PARAMS for the first member of a wrong type or value, or option
// that the host does not support.
func checkResponse(v *tree.Value) error {
	if err := responseRule().check(v, "", ""); err != nil {
		return err
	}
	for name, why := range map[string]string{
		"conversation": "continue a response with previous_response_id, or a session with x_session",
		"prompt":       "send the text of the prompt as instructions and input",
	} {
		if !isAbsent(v.Get(name)) {
			return invalid(name, "%s is not supported; %s", name, why)
		}
	}
	switch {
	case v.Get("background").True():
		return invalid("background", "background is not supported, because a response ends with the connection of its request; use stream")
	case !isAbsent(v.Get("max_tool_calls")):
		return invalid("max_tool_calls", "max_tool_calls is not supported; the host's policy limits the calls of a turn")
	case !isAbsent(v.Get("top_logprobs")) && v.Get("top_logprobs").Text != "0",
		slices.ContainsFunc(v.Get("include").PeekItems(), func(i *tree.Value) bool { return isString(i, "message.output_text.logprobs") }):
		return invalid("top_logprobs", "logprobs are not supported")
	}
	for name, most := range map[string]float64{"temperature": 2, "top_p": 1} {
		if err := checkRange(v, name, most); err != nil {
			return err
		}
	}
	if err := checkPositive(v, "max_output_tokens"); err != nil {
		return err
	}
	if m := v.Get("metadata"); len(m.PeekMembers()) > 16 {
		return invalid("metadata", "metadata has %d members; the maximum is 16", len(m.PeekMembers()))
	}
	return nil
}

// responseRule returns the types of the members of POST /v1/responses.
func responseRule() valueRule {
	return objectRule(map[string]valueRule{
		"input": textRule().orRule(listRule(objectRule(map[string]valueRule{
			"type": textRule(), "role": textRule(), "id": textRule(), "call_id": textRule(), "name": textRule(), "namespace": textRule(), "arguments": textRule(),
			"content": textRule().orRule(listRule(objectRule(nil))), "output": textRule().orRule(listRule(objectRule(nil))),
		}))),
		"model": textRule(), "instructions": textRule(), "stream": boolRule(), "store": boolRule(), "background": boolRule(), "parallel_tool_calls": boolRule(),
		"previous_response_id": textRule(), "max_output_tokens": integerRule(), "top_logprobs": integerRule(), "temperature": numberRule(), "top_p": numberRule(),
		"tools": listRule(objectRule(map[string]valueRule{
			"type": textRule(), "name": textRule(), "description": textRule(), "parameters": objectRule(nil), "strict": boolRule(),
			"format": objectRule(map[string]valueRule{"type": textRule(), "syntax": textRule(), "definition": textRule()}), "tools": listRule(objectRule(nil)),
		})),
		"tool_choice": textRule().orRule(objectRule(map[string]valueRule{"type": textRule(), "name": textRule(), "namespace": textRule(), "mode": textRule(), "tools": listRule(objectRule(nil))})),
		"text":        objectRule(map[string]valueRule{"format": objectRule(map[string]valueRule{"type": textRule(), "name": textRule(), "description": textRule(), "schema": objectRule(nil), "strict": boolRule()}), "verbosity": textRule()}),
		"reasoning":   objectRule(map[string]valueRule{"effort": textRule(), "summary": textRule()}), "include": listRule(textRule()), "metadata": objectRule(nil),
		"user": textRule(), "safety_identifier": textRule(), "truncation": textRule(), "service_tier": textRule(), "prompt_cache_key": textRule(), "stream_options": objectRule(nil),
	})
}

// readInput reads input, a text or items, into q.Messages. Stored items replace the
// references to them; kinds of items that it ignores are noted. It returns an error with
// status 400 for invalid input, and 404 for an unknown reference.
func (a *API) readInput(ctx context.Context, q *requestOptions, v *tree.Value) error {
	input := v.Get("input")
	switch {
	case input.Is(tree.String):
		input = tree.List(tree.Obj("type", tree.Str("message"), "role", tree.Str("user"),
			"content", tree.List(tree.Obj("type", tree.Str("input_text"), "text", input))))
	case len(input.PeekItems()) == 0:
		return invalid("input", "input must be text or a list of at least one item")
	}
	resolved, err := a.resolveItemReferences(ctx, q, input)
	if err != nil {
		return err
	}
	messages, ignored, err := responses.DecodeItems(resolved)
	if err != nil {
		return err
	}
	for _, kind := range ignored {
		q.ignore("input." + kind)
	}
	q.Messages, q.response.input = messages, input
	return nil
}

// readOptions reads the tools, the format of the answer and the sampling options. It
// returns an error with status 400 for an invalid one.
func (q *requestOptions) readOptions(v *tree.Value) error {
	tools, err := responses.DecodeTools(v.Get("tools"), q.response.input)
	if err != nil {
		return err
	}
	if q.Choice, err = responses.DecodeChoice(v.Get("tool_choice")); err != nil {
		return err
	}
	q.Model, q.Tools, q.response.tools = textOf(v, "model"), tools.Tools, tools
	q.Parallel, q.Temperature, q.TopP = v.Get("parallel_tool_calls").Flag(), v.Get("temperature").Float(), v.Get("top_p").Float()
	q.MaxTokens, q.Stream = v.Get("max_output_tokens").Int(), v.Get("stream").True()
	for _, kind := range tools.Ignored {
		q.ignore("tools." + kind)
	}
	if err := q.checkToolNamesUnique(); err != nil {
		return err
	}
	format := v.Get("text").Get("format")
	switch kind := textOf(format, "type"); {
	case isAbsent(format) || kind == "text":
	case kind == "json_object":
		q.Format = json.RawMessage(`{"type":"json_object"}`)
	case kind == "json_schema" && hasName(format) && format.Get("schema").Is(tree.Object):
		inner := tree.Obj("name", format.Get("name"), "schema", format.Get("schema"))
		for _, name := range []string{"description", "strict"} {
			if m := format.Get(name); !isAbsent(m) {
				inner.Set(name, m)
			}
		}
		q.Format = tree.Obj("type", tree.Str(kind), "json_schema", inner).JSON()
	default:
		return invalid("text.format", "text.format must be text, json_object, or json_schema with a name and a schema")
	}
	return nil
}

// ignoreHints notes the members of the request that have no effect, and sets the members that
// the response repeats.
func (q *requestOptions) ignoreHints(v *tree.Value) {
	followed := []string{
		"input", "model", "instructions", "stream", "store", "background", "parallel_tool_calls", "previous_response_id", "max_output_tokens",
		"temperature", "top_p", "tools", "tool_choice", "text", "include", "metadata", "user", "safety_identifier", "stream_options", "top_logprobs",
	}
	for _, m := range v.PeekMembers() {
		if !slices.Contains(followed, m.Name) && !isAbsent(m.Value) {
			q.ignore(m.Name)
		}
	}
	if !isAbsent(v.Get("text").Get("verbosity")) {
		q.ignore("text.verbosity")
	}
	null := &tree.Value{}
	for _, member := range []struct {
		name  string
		value *tree.Value
	}{
		{"instructions", null}, {"max_output_tokens", null}, {"metadata", tree.Obj()}, {"parallel_tool_calls", tree.Boolean(true)}, {"previous_response_id", null},
		{"reasoning", tree.Obj("effort", null, "summary", null)}, {"temperature", null}, {"text", tree.Obj("format", tree.Obj("type", tree.Str("text")))},
		{"tool_choice", tree.Str("auto")}, {"tools", tree.List()}, {"top_p", null}, {"truncation", tree.Str("disabled")}, {"user", null},
	} {
		value := v.Get(member.name)
		if isAbsent(value) {
			value = member.value
		}
		q.response.echo = append(q.response.echo, member.name, value)
	}
}

// resolveItemReferences returns the items of input, in which stored items replace the references to
// them. It returns status 404 for an unknown one.
func (a *API) resolveItemReferences(ctx context.Context, q *requestOptions, input *tree.Value) (*tree.Value, error) {
	out := tree.List()
	for i, item := range input.PeekItems() {
		if textOf(item, "type") != responses.ReferenceType {
			out.Items = append(out.Items, item)
			continue
		}
		found, err := a.storedItem(ctx, q, textOf(item, "id"))
		if err != nil {
			return nil, err
		}
		if found == nil {
			return nil, &apiError{status: http.StatusNotFound, code: string(toolerr.NotFound), param: llm.AppendIndex("input", i),
				message: "Item with id '" + truncate(textOf(item, "id"), 80) + "' not found."}
		}
		out.Items = append(out.Items, found)
	}
	return out, nil
}

// continueResponse sets the conversation of a response: that of the previous response, if
// the request names one, and the input of this one. It returns the errors of
// previousConversation, and an error for calls without a result.
func (c *completion) continueResponse(ctx context.Context, messages []llm.Message) error {
	asked := c.q.response
	var earlier []llm.Message
	if asked.previous != "" {
		var err error
		if earlier, asked.before, err = c.api.previousConversation(ctx, c.q); err != nil {
			return err
		}
	}
	fresh, err := c.api.restore(ctx, messages)
	if err != nil {
		return err
	}
	all := slices.Concat(earlier, fresh)
	if err := checkAnswered(all); err != nil {
		return err
	}
	c.newMessages = fresh
	c.history = append(c.q.instructionMessages(), conversation.WithResults(all)...)
	return nil
}

// instructionMessages returns the instructions, which apply to one request.
func (q *requestOptions) instructionMessages() []llm.Message {
	if q.response == nil || q.response.instructions == "" {
		return nil
	}
	return []llm.Message{{Role: llm.SystemRole, Parts: []llm.Part{{Type: llm.TextPart, Text: q.response.instructions}}}}
}

// checkAnswered returns an error, in OpenAI's words, for calls without outputs and outputs without
// calls.
func checkAnswered(messages []llm.Message) error {
	called := llm.CallNames(messages)
	for _, m := range messages {
		for _, p := range m.Parts {
			if p.ToolResult == nil {
				continue
			}
			if _, made := called[p.ToolResult.ID]; !made {
				return invalid("input", "No tool call found for function call output with call_id %.60s.", p.ToolResult.ID)
			}
		}
	}
	if ids := openCalls(messages); len(ids) > 0 {
		return invalid("input", "No tool output found for function call %.200s.", strings.Join(ids, ", "))
	}
	return nil
}
