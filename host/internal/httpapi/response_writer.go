package httpapi

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/responses"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// responseWriter writes a completion in the format of OpenAI's Responses API: as
// items.
type responseWriter struct {
	*completion
	id      string
	created int64

	out    *eventWriter // nil: the answer is not streamed
	head   bool         // response.created was sent
	number int          // of the next event

	items []*tree.Value     // items of the output; open ones as they began
	open  map[int]*openItem // by part of the turn
	order []int             // the parts in open
}

// openItem is an incomplete item of the output.
type openItem struct {
	kind  pieceKind
	index int // index in the output
	id    string
	text  strings.Builder

	call string // id of the call
	tool responses.Callable
}

// newResponseWriter returns a writer that answers in the format of OpenAI's Responses
// API.
func newResponseWriter(c *completion) *responseWriter {
	return &responseWriter{completion: c, id: "resp_" + randomText(), created: c.api.cfg.Now().Unix(), open: map[int]*openItem{}}
}

// turnSeparator implements answerWriter. Each text has its own item, so it needs no
// separator.
func (f *responseWriter) turnSeparator() string { return "" }

// keepAlive returns a comment of server-sent events, which clients ignore.
func (f *responseWriter) keepAlive() []byte { return []byte(": the host is working\n\n") }

func (f *responseWriter) stream(out *eventWriter) { f.out = out }

// send sends an event of a type, after the events that begin a response if it is the first. It
// does nothing if the answer is not streamed. members holds names and values.
func (f *responseWriter) send(kind string, members ...any) {
	if f.out == nil {
		return
	}
	if !f.head {
		f.head = true
		f.send("response.created", "response", f.responseObject(responses.InProgress, nil, nil))
		f.send("response.in_progress", "response", f.responseObject(responses.InProgress, nil, nil))
	}
	body := map[string]any{"type": kind, "sequence_number": f.number}
	f.number++
	for i := 0; i+1 < len(members); i += 2 {
		body[members[i].(string)] = members[i+1]
	}
	f.out.send(kind, body)
}

// responseObject returns the response object with the items so far. extra holds names and values
// of further members.
func (f *responseWriter) responseObject(status string, usage *llm.Usage, extra []any) *tree.Value {
	null := &tree.Value{}
	v := tree.Obj("id", tree.Str(f.id), "object", tree.Str("response"), "created_at", tree.Int(int(f.created)), "status", tree.Str(status),
		"background", tree.Boolean(false), "completed_at", null, "error", null, "incomplete_details", null, "model", tree.Str(f.model), "output", tree.List(f.items...),
		"service_tier", tree.Str("default"), "store", tree.Boolean(f.q.response.store))
	for i := 0; i+1 < len(f.q.response.echo); i += 2 {
		v.Set(f.q.response.echo[i].(string), f.q.response.echo[i+1].(*tree.Value))
	}
	if status == responses.Completed {
		v.Set("completed_at", tree.Int(int(f.api.cfg.Now().Unix())))
	}
	v.Set("usage", null)
	if usage != nil {
		v.Set("usage", responses.EncodeUsage(usage))
	}
	for i := 0; i+1 < len(extra); i += 2 {
		v.Set(extra[i].(string), jsonTree(extra[i+1]))
	}
	return v
}

// sendPiece adds a piece to its item, and sends it if the answer is streamed. Items with text and thinking follow each other; items with
// calls can grow at the same time.
func (f *responseWriter) sendPiece(p piece) {
	switch p.kind {
	case pieceTurned:
		f.closeItems(func(*openItem) bool { return true })
	case pieceText, pieceRefusal, pieceThinking:
		item := f.open[p.part]
		if item == nil || item.kind != p.kind {
			f.closeItems(func(i *openItem) bool { return i.kind != pieceCall })
			item = f.beginItem(p)
		}
		item.text.WriteString(p.text)
		f.sendText(item, p.text)
	case pieceCall:
		f.closeItems(func(i *openItem) bool { return i.kind != pieceCall })
		f.beginItem(p)
	case pieceArguments:
		if item := f.open[p.part]; item != nil && item.kind == pieceCall {
			item.text.WriteString(p.text)
			f.sendText(item, p.text)
		}
	}
}

// itemID returns the id of an item of the output. It contains the id of the response,
// so that a reference to the item can be found.
func (f *responseWriter) itemID(kind string) string {
	return kind + "_" + strings.TrimPrefix(f.id, "resp_") + "_" + strconv.Itoa(len(f.items))
}

// beginItem opens an output item for a part of the answer, and sends the events that
// announce it.
func (f *responseWriter) beginItem(p piece) *openItem {
	item := &openItem{kind: p.kind, index: len(f.items)}
	var kind string
	switch p.kind {
	case pieceThinking:
		kind = "rs"
	case pieceCall:
		item.call, item.tool, kind = p.id, f.q.response.tools.Callable(p.name), "fc"
	default:
		kind = "msg"
	}
	item.id = f.itemID(kind)
	begun := item.encode(responses.InProgress, false)
	f.send("response.output_item.added", "output_index", item.index, "item", begun)
	f.items = append(f.items, begun)
	f.open[p.part], f.order = item, append(f.order, p.part)
	switch p.kind {
	case pieceText, pieceRefusal:
		f.sendItemEvent("response.content_part.added", item, "content_index", 0, "part", item.part(""))
	case pieceThinking:
		f.sendItemEvent("response.reasoning_summary_part.added", item, "summary_index", 0, "part", item.part(""))
	}
	return item
}

// sendItemEvent sends an event about an item. members are further members of the event:
// name, value, name, value.
func (f *responseWriter) sendItemEvent(kind string, item *openItem, members ...any) {
	f.send(kind, append([]any{"item_id", item.id, "output_index", item.index}, members...)...)
}

// sendText sends more text of an open item, or more of a call's arguments.
func (f *responseWriter) sendText(item *openItem, text string) {
	switch {
	case item.kind == pieceText:
		f.sendItemEvent("response.output_text.delta", item, "content_index", 0, "delta", text, "logprobs", []any{})
	case item.kind == pieceRefusal:
		f.sendItemEvent("response.refusal.delta", item, "content_index", 0, "delta", text)
	case item.kind == pieceThinking:
		f.sendItemEvent("response.reasoning_summary_text.delta", item, "summary_index", 0, "delta", text)
	case !item.tool.Custom: // the input of a custom tool is known when its JSON is complete
		f.sendItemEvent("response.function_call_arguments.delta", item, "delta", text)
	}
}

// closeItems completes the open items for which which returns true, in their order.
func (f *responseWriter) closeItems(which func(*openItem) bool) {
	f.order = slices.DeleteFunc(f.order, func(part int) bool {
		item := f.open[part]
		if !which(item) {
			return false
		}
		delete(f.open, part)
		f.finishItem(item)
		return true
	})
}

// finishItem sends the events that end an item, with its whole text.
func (f *responseWriter) finishItem(item *openItem) {
	text := item.text.String()
	switch {
	case item.kind == pieceText:
		f.sendItemEvent("response.output_text.done", item, "content_index", 0, "text", text, "logprobs", []any{})
		f.sendItemEvent("response.content_part.done", item, "content_index", 0, "part", item.part(text))
	case item.kind == pieceRefusal:
		f.sendItemEvent("response.refusal.done", item, "content_index", 0, "refusal", text)
		f.sendItemEvent("response.content_part.done", item, "content_index", 0, "part", item.part(text))
	case item.kind == pieceThinking:
		f.sendItemEvent("response.reasoning_summary_text.done", item, "summary_index", 0, "text", text)
		f.sendItemEvent("response.reasoning_summary_part.done", item, "summary_index", 0, "part", item.part(text))
	case item.tool.Custom:
		f.sendItemEvent("response.custom_tool_call_input.delta", item, "delta", responses.CustomInput(text))
		f.sendItemEvent("response.custom_tool_call_input.done", item, "input", responses.CustomInput(text))
	default:
		f.sendItemEvent("response.function_call_arguments.done", item, "arguments", text, "name", item.tool.Name)
	}
	f.items[item.index] = item.encode(responses.Completed, true)
	f.send("response.output_item.done", "output_index", item.index, "item", f.items[item.index])
}

// part returns the only part of an item with a text.
func (i *openItem) part(text string) *tree.Value {
	switch i.kind {
	case pieceRefusal:
		return responses.RefusalPart(text)
	case pieceThinking:
		return responses.SummaryPart(text)
	}
	return responses.TextPart(text)
}

// encode returns the item with a status: complete if whole is set, otherwise as it begins,
// without content.
func (i *openItem) encode(status string, whole bool) *tree.Value {
	if i.kind == pieceCall {
		arguments := i.text.String()
		if i.tool.Custom && !whole {
			arguments = `{"input":""}`
		}
		return i.tool.CallItem(i.id, status, i.call, arguments)
	}
	var parts []*tree.Value
	if whole {
		parts = append(parts, i.part(i.text.String()))
	}
	if i.kind == pieceThinking {
		return responses.ReasoningItem(i.id, parts...)
	}
	return responses.MessageItem(i.id, status, parts...)
}

func (f *responseWriter) sendHostEvent(e map[string]any) { f.send("x_event", "x_event", e) }

// finalBody returns the complete response: incomplete if the answer was cut off by a limit.
func (f *responseWriter) finalBody(r *llm.Response, extra []any) *tree.Value {
	if r.StopReason != llm.StopLength && r.StopReason != llm.StopContext {
		return f.responseObject(responses.Completed, r.Usage, extra)
	}
	v := f.responseObject(responses.Incomplete, r.Usage, extra)
	v.Set("incomplete_details", tree.Obj("reason", tree.Str("max_output_tokens")))
	return v
}

// finish sends the end of a stream.
func (f *responseWriter) finish(r *llm.Response, extra []any) {
	v := f.finalBody(r, extra)
	f.send("response."+textOf(v, "status"), "response", v)
}

func (f *responseWriter) sendError(err error) {
	why := apiErrorOf(err)
	var param any
	if why.param != "" {
		param = why.param
	}
	f.send("error", "code", why.code, "message", why.message, "param", param)
	v := f.responseObject(responses.Failed, nil, nil)
	v.Set("error", tree.Obj("code", tree.Str(why.code), "message", tree.Str(why.message)))
	f.send("response.failed", "response", v)
}

// wholeAnswer implements answerWriter.
func (f *responseWriter) wholeAnswer(r *llm.Response, extra []any) *tree.Value {
	f.setItems(r)
	return f.finalBody(r, extra)
}

// setItems sets the items of an answer that is not streamed. It does nothing if they are set, or
// if the answer is streamed.
func (f *responseWriter) setItems(r *llm.Response) {
	if f.out != nil || len(f.items) > 0 {
		return
	}
	for i, p := range r.Parts {
		switch p.Type {
		case llm.TextPart:
			f.sendPiece(piece{kind: pieceText, part: i, text: p.Text})
		case llm.RefusalPart:
			f.sendPiece(piece{kind: pieceRefusal, part: i, text: p.Text})
		case llm.ThinkingPart:
			if p.Text != "" {
				f.sendPiece(piece{kind: pieceThinking, part: i, text: p.Text})
			}
		case llm.CallPart:
			f.sendPiece(piece{kind: pieceCall, part: i, id: p.ToolCall.ID, name: p.ToolCall.Name})
			f.sendPiece(piece{kind: pieceArguments, part: i, text: string(p.ToolCall.Args) + p.ToolCall.Malformed})
		}
	}
	f.sendPiece(piece{kind: pieceTurned})
}

// storeIfAsked stores the response if the request asks for it. If that fails, it logs the
// error, and the response says "store": false.
func (f *responseWriter) storeIfAsked(ctx context.Context, messages []llm.Message, r *llm.Response, extra []any) {
	if !f.q.response.store {
		return
	}
	f.setItems(r)
	if err := f.api.storeResponse(ctx, f, messages, f.finalBody(r, extra)); err != nil {
		f.api.cfg.Logf("a response could not be stored: %v", err)
		f.q.response.store = false
	}
}
