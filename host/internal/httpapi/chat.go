package httpapi

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/openai"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Prefixes of the ids of calls that clients get.
const (
	openaiPrefix    = "call_"
	anthropicPrefix = "toolu_"
)

// serveChat answers POST /v1/chat/completions: it runs the completion, with calls of the
// host's tools.
func (a *API) serveChat(w http.ResponseWriter, r *http.Request) {
	q, err := readChat(w, r)
	if err != nil {
		writeError(w, r, err)
		return
	}
	a.serveCompletion(w, r, q, func(c *completion) answerWriter { return newChatWriter(c) })
}

// readChat reads the body of POST /v1/chat/completions. Its errors name the wrong parameter.
func readChat(w http.ResponseWriter, r *http.Request) (*requestOptions, error) {
	v, err := readObject(w, r)
	if err != nil {
		return nil, err
	}
	q := &requestOptions{prefix: openaiPrefix, formatParam: "response_format"}
	tools, err := q.takeExtensions(v, r)
	if err != nil {
		return nil, err
	}
	if err := checkChat(v); err != nil {
		return nil, err
	}
	q.caller = callerOf(r, cmp.Or(v.Take("safety_identifier").Str(), v.Take("user").Str()))
	q.oldFunctions = v.Get("functions").Is(tree.Array) && !v.Get("tools").Is(tree.Array)
	request, losses, err := openai.DecodeRequest(v.JSON(), openai.Options{Extensions: true})
	if err != nil {
		return nil, toolerr.New(toolerr.InvalidInput, "%w", err)
	}
	if err := q.setRequest(request, losses); err != nil {
		return nil, err
	}
	if q.oldFunctions { // the old format has room for only one
		one := false
		q.Parallel = &one
	}
	return q, q.readModelAndTools(tools)
}

// checkChat returns INVALID_PARAMS for the first malformed member, or option that the host does
// not support.
func checkChat(v *tree.Value) error {
	if err := chatRule().check(v, "", ""); err != nil {
		return err
	}
	if n := v.Get("n"); !isAbsent(n) && !(n.Is(tree.Number) && n.Text == "1") {
		return invalid("n", "n must be 1: a request gets one answer; send the request again for another")
	}
	if err := checkFormat(v.Get("response_format")); err != nil {
		return err
	}
	if v.Get("logprobs").True() || v.Get("top_logprobs").Is(tree.Number) && v.Get("top_logprobs").Text != "0" {
		return invalid("logprobs", "logprobs are not supported")
	}
	for _, m := range v.Get("modalities").PeekItems() {
		if !isString(m, "text") {
			return invalid("modalities", "modalities must be text")
		}
	}
	for _, name := range []string{"audio", "web_search_options"} {
		if !isAbsent(v.Get(name)) {
			return invalid(name, "%s is not supported", name)
		}
	}
	for name, most := range map[string]float64{"temperature": 2, "top_p": 1} {
		if err := checkRange(v, name, most); err != nil {
			return err
		}
	}
	for _, name := range []string{"max_tokens", "max_completion_tokens"} {
		if err := checkPositive(v, name); err != nil {
			return err
		}
	}
	if choice := v.Get("tool_choice"); choice.Is(tree.String) && !slices.Contains([]string{"auto", "none", "required"}, choice.Text) {
		return invalid("tool_choice", "tool_choice must be auto, none, required or an object, not %.40q", choice.Text)
	}
	for i, t := range v.Get("tools").PeekItems() {
		if !isString(t.Get("type"), "function") || !hasName(t.Get("function")) {
			return invalid(llm.AppendIndex("tools", i), "a tool must be of type function and have a name")
		}
	}
	for i, f := range v.Get("functions").PeekItems() {
		if !hasName(f) {
			return invalid(llm.AppendIndex("functions", i), "a function must have a name")
		}
	}
	return checkChatMessages(v.Get("messages"))
}

// checkChatMessages returns an error that names the first wrong message of a chat
// completion request.
func checkChatMessages(list *tree.Value) error {
	if !list.Is(tree.Array) || len(list.Items) == 0 {
		return invalid("messages", "messages must be a list of at least one message")
	}
	for i, m := range list.Items {
		at := llm.AppendIndex("messages", i)
		content := m.Get("content")
		switch role := m.Get("role"); {
		case !role.Is(tree.String) || !slices.Contains([]string{"system", "developer", "user", "assistant", "tool", "function"}, role.Text):
			return invalid(at, "the role of message %d must be system, developer, user, assistant or tool", i)
		case !isAbsent(content) && !content.Is(tree.String) && !content.Is(tree.Array):
			return invalid(at, "the content of message %d must be text or a list of parts", i)
		case isAbsent(content) && role.Text != "assistant":
			return invalid(at, "message %d has no content", i)
		case role.Text == "tool" && !m.Get("tool_call_id").Is(tree.String):
			return invalid(at, "message %d is a tool result without tool_call_id", i)
		}
		for _, p := range content.PeekItems() {
			kind := p.Get("type")
			switch {
			case !kind.Is(tree.String):
				return invalid(at, "message %d has a part without a type", i)
			case kind.Text == "input_audio" || kind.Text == "file":
				return invalid(at, "message %d has a part of type %s, which is not supported", i, kind.Text)
			case kind.Text == "text" && !p.Get("text").Is(tree.String), kind.Text == "image_url" && !p.Get("image_url").Get("url").Is(tree.String):
				return invalid(at, "message %d has an incomplete part of type %s", i, kind.Text)
			}
		}
		for _, c := range m.Get("tool_calls").PeekItems() {
			if !c.Get("id").Is(tree.String) || !hasName(c.Get("function")) {
				return invalid(at, "message %d has a tool call without an id or a function name", i)
			}
		}
	}
	return nil
}

// chatWriter writes a completion in OpenAI's format.
type chatWriter struct {
	*completion
	id      string
	created int64

	out   *eventWriter // nil: the answer is not streamed
	first bool         // a chunk was sent
	parts map[int]int
	calls int
}

// newChatWriter returns a writer for c with a new id.
func newChatWriter(c *completion) *chatWriter {
	return &chatWriter{completion: c, id: "chatcmpl-" + randomText(), created: c.api.cfg.Now().Unix(), parts: map[int]int{}}
}

// keepAlive returns a comment of server-sent events, which clients ignore.
func (f *chatWriter) keepAlive() []byte { return []byte(": the host is working\n\n") }

func (f *chatWriter) stream(out *eventWriter) { f.out = out }

// sendChunk sends a chunk with these choices; with holds names and values of further members.
func (f *chatWriter) sendChunk(choices []any, with ...any) {
	body := map[string]any{"id": f.id, "object": "chat.completion.chunk", "created": f.created, "model": f.model, "choices": choices}
	if f.q.StreamUsage {
		body["usage"] = nil
	}
	for i := 0; i+1 < len(with); i += 2 {
		body[with[i].(string)] = with[i+1]
	}
	f.out.send("", body)
}

// sendDelta sends a chunk with members of the message, after the role if it is the first.
func (f *chatWriter) sendDelta(members map[string]any) {
	if !f.first {
		f.first = true
		f.sendDelta(map[string]any{"role": "assistant", "content": ""})
	}
	f.sendChunk([]any{map[string]any{"index": 0, "delta": members, "logprobs": nil, "finish_reason": nil}})
}

// sendPiece implements answerWriter: it sends a piece as a chunk.
func (f *chatWriter) sendPiece(p piece) {
	switch p.kind {
	case pieceText:
		f.sendDelta(map[string]any{"content": p.text})
	case pieceThinking:
		f.sendDelta(map[string]any{"reasoning_content": p.text})
	case pieceRefusal:
		f.sendDelta(map[string]any{"refusal": p.text})
	case pieceCall:
		f.parts[p.part] = f.calls
		f.calls++
		function := map[string]any{"name": p.name, "arguments": ""}
		if f.q.oldFunctions {
			f.sendDelta(map[string]any{"function_call": function})
			return
		}
		f.sendDelta(map[string]any{"tool_calls": []any{map[string]any{"index": f.parts[p.part], "id": p.id, "type": "function", "function": function}}})
	case pieceArguments:
		function := map[string]any{"arguments": p.text}
		if f.q.oldFunctions {
			f.sendDelta(map[string]any{"function_call": function})
			return
		}
		f.sendDelta(map[string]any{"tool_calls": []any{map[string]any{"index": f.parts[p.part], "function": function}}})
	case pieceTurned:
		clear(f.parts)
	}
}

// turnSeparator returns the separator between the texts of two turns.
func (f *chatWriter) turnSeparator() string { return "\n\n" }

// sendHostEvent sends a chunk with the extension x_event, which other clients ignore.
func (f *chatWriter) sendHostEvent(e map[string]any) { f.sendChunk([]any{}, "x_event", e) }

// finish sends the end of a stream: the reason, the usage if the client wants it, and [DONE].
func (f *chatWriter) finish(r *llm.Response, extra []any) {
	if !f.first { // also for an empty answer
		f.sendDelta(map[string]any{"content": ""})
	}
	whole, _ := openai.EncodeResponse(&llm.Response{StopReason: r.StopReason}, openai.Options{OldFunctions: f.q.oldFunctions})
	reason := whole.Get("choices").PeekItems()[0].Get("finish_reason")
	f.sendChunk([]any{map[string]any{"index": 0, "delta": map[string]any{}, "logprobs": nil, "finish_reason": reason}}, extra...)
	if f.q.StreamUsage {
		f.sendChunk([]any{}, "usage", openai.EncodeUsage(r.Usage))
	}
	f.out.sendText("", []byte("[DONE]"))
}

func (f *chatWriter) sendError(err error) { f.out.send("", apiErrorOf(err).body()) }

// wholeAnswer implements answerWriter. The answer has at most one thinking, one text and
// one refusal, then the calls. It changes ID, Created, Model and Parts of r.
func (f *chatWriter) wholeAnswer(r *llm.Response, extra []any) *tree.Value {
	r.ID, r.Created, r.Model = f.id, f.created, f.model
	var parts []llm.Part
	for _, kind := range []llm.PartType{llm.ThinkingPart, llm.TextPart, llm.RefusalPart} {
		text := ""
		for _, p := range r.Parts {
			if p.Type == kind {
				text += p.Text
			}
		}
		if text != "" {
			parts = append(parts, llm.Part{Type: kind, Text: text})
		}
	}
	for _, p := range r.Parts {
		if p.Type == llm.CallPart {
			parts = append(parts, llm.Part{Type: llm.CallPart, ToolCall: p.ToolCall})
		}
	}
	r.Parts = parts
	v, _ := openai.EncodeResponse(r, openai.Options{Extensions: true, OldFunctions: f.q.oldFunctions})
	for i := 0; i+1 < len(extra); i += 2 {
		v.Set(extra[i].(string), jsonTree(extra[i+1]))
	}
	return v
}
