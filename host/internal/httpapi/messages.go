package httpapi

import (
	"net/http"
	"slices"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/contextbudget"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/tokens"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/anthropic"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// serveMessages answers POST /v1/messages: it runs the completion, with calls of the host's
// tools.
func (a *API) serveMessages(w http.ResponseWriter, r *http.Request) {
	q, err := readMessages(w, r)
	if err != nil {
		writeError(w, r, err)
		return
	}
	a.serveCompletion(w, r, q, func(c *completion) answerWriter { return newMessageWriter(c) })
}

// countTokens answers with an estimate of the tokens of a request, including the
// host's tools.
func (a *API) countTokens(w http.ResponseWriter, r *http.Request) {
	q, err := readMessages(w, r)
	if err != nil {
		writeError(w, r, err)
		return
	}
	c, done, err := a.newCompletion(r.Context(), q)
	if err != nil {
		writeError(w, r, err)
		return
	}
	defer done()
	defer c.end() //nolint:errcheck // no call was made
	all := q.Tools
	if c.cfg.Tools != nil {
		ours, _, err := c.cfg.Tools.List(r.Context(), q.Choice)
		if err != nil {
			writeError(w, r, err)
			return
		}
		all = slices.Concat(ours, all)
	}
	n := contextbudget.MessageTokens(tokens.Estimator{}, c.history)
	for _, t := range all {
		definition, _ := anthropic.EncodeTools([]llm.Tool{t}, anthropic.Options{})
		n += tokens.EstimateJSON(definition.JSON())
	}
	writeAnswer(w, http.StatusOK, map[string]int{"input_tokens": n})
}

// readMessages reads the body of POST /v1/messages. Its errors name the wrong parameter.
func readMessages(w http.ResponseWriter, r *http.Request) (*requestOptions, error) {
	v, err := readObject(w, r)
	if err != nil {
		return nil, err
	}
	q := &requestOptions{prefix: anthropicPrefix}
	only, err := q.takeExtensions(v, r)
	if err != nil {
		return nil, err
	}
	if err := checkMessages(v); err != nil {
		return nil, err
	}
	q.caller = callerOf(r, v.Get("metadata").Get("user_id").Str())
	request, losses, err := anthropic.DecodeRequest(v.JSON(), anthropic.Options{})
	if err != nil {
		return nil, toolerr.New(toolerr.InvalidInput, "%w", err)
	}
	if err := q.setRequest(request, losses); err != nil {
		return nil, err
	}
	return q, q.readModelAndTools(only)
}

// checkMessages returns INVALID_PARAMS for the first malformed member, or option that the host
// does not support.
func checkMessages(v *tree.Value) error {
	if err := messageRule().check(v, "", ""); err != nil {
		return err
	}
	for name, most := range map[string]float64{"temperature": 1, "top_p": 1} {
		if err := checkRange(v, name, most); err != nil {
			return err
		}
	}
	for _, name := range []string{"max_tokens", "top_k"} {
		if err := checkPositive(v, name); err != nil {
			return err
		}
	}
	if choice := v.Get("tool_choice"); !isAbsent(choice) && !slices.ContainsFunc([]string{"auto", "any", "none", "tool"}, func(kind string) bool { return isString(choice.Get("type"), kind) }) {
		return invalid("tool_choice", "the type of tool_choice must be auto, any, none or tool")
	}
	for i, t := range v.Get("tools").PeekItems() {
		kind := t.Get("type")
		if !hasName(t) || !isAbsent(kind) && !isString(kind, "custom") {
			return invalid(llm.AppendIndex("tools", i), "a tool must have a name and be of type custom; tools that the vendor executes are not supported")
		}
	}
	for _, name := range []string{"mcp_servers", "container"} {
		if m := v.Get(name); !isAbsent(m) && len(m.PeekItems()) > 0 {
			return invalid(name, "%s is not supported", name)
		}
	}
	if !isAbsent(v.Get("output_format")) || !isAbsent(v.Get("output_config").Get("format")) {
		return invalid("output_format", "a schema for the answer is not supported; declare a tool with this schema as its arguments")
	}
	for i, b := range v.Get("system").PeekItems() {
		if !isString(b.Get("type"), "text") || !b.Get("text").Is(tree.String) {
			return invalid("system", "block %d of system must be a text block", i)
		}
	}
	list := v.Get("messages")
	if !list.Is(tree.Array) || len(list.Items) == 0 {
		return invalid("messages", "messages must be a list of at least one message")
	}
	for i, m := range list.Items {
		if err := checkMessage(m, i, llm.AppendIndex("messages", i)); err != nil {
			return err
		}
	}
	return nil
}

// checkMessage returns an error if message i of an Anthropic request is malformed. at
// names it in the error.
func checkMessage(m *tree.Value, i int, at string) error {
	if !slices.ContainsFunc([]string{"user", "assistant", "system"}, func(role string) bool { return isString(m.Get("role"), role) }) {
		return invalid(at, "the role of message %d must be user or assistant", i)
	}
	content := m.Get("content")
	if !content.Is(tree.String) && !content.Is(tree.Array) {
		return invalid(at, "the content of message %d must be text or a list of blocks", i)
	}
	for _, b := range content.PeekItems() {
		if err := checkBlock(b, i, at); err != nil {
			return err
		}
	}
	return nil
}

// checkBlock returns an error if a content block of message i is malformed.
func checkBlock(b *tree.Value, i int, at string) error {
	texts := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return !b.Get(name).Is(tree.String) })
	}
	kind := b.Get("type")
	switch {
	case !kind.Is(tree.String):
		return invalid(at, "message %d has a block without a type", i)
	case kind.Text == "tool_use" && !(texts("id", "name") && b.Get("input").Is(tree.Object)),
		kind.Text == "tool_result" && !texts("tool_use_id"),
		kind.Text == "thinking" && !texts("thinking"),
		kind.Text == "redacted_thinking" && !texts("data"),
		kind.Text == "image" && lacksImage(b),
		kind.Text == "text" && !texts("text"):
		return invalid(at, "message %d has an incomplete block of type %s", i, kind.Text)
	case !slices.Contains([]string{"text", "image", "tool_use", "tool_result", "thinking", "redacted_thinking"}, kind.Text):
		return invalid(at, "message %d has a block of type %.40s, which is not supported", i, kind.Text)
	}
	if kind.Text != "tool_result" {
		return nil
	}
	for _, inner := range b.Get("content").PeekItems() {
		if !inner.Get("type").Is(tree.String) || isString(inner.Get("type"), "text") && !inner.Get("text").Is(tree.String) || isString(inner.Get("type"), "image") && lacksImage(inner) {
			return invalid(at, "message %d has a tool result with an incomplete block", i)
		}
	}
	return nil
}

// messageWriter writes a completion in Anthropic's format: in blocks, one after the
// other.
type messageWriter struct {
	*completion
	id   string
	out  *eventWriter
	head bool // the beginning was sent

	index int // of the next block
	now   *block
	held  map[int][]piece // pieces that arrive while a call is being sent, by part
	order []int           // the parts in held
}

// block is the content block that is being sent.
type block struct {
	kind pieceKind
	part int
}

// newMessageWriter returns a writer that answers in Anthropic's format.
func newMessageWriter(c *completion) *messageWriter {
	return &messageWriter{completion: c, id: "msg_" + randomText(), held: map[int][]piece{}}
}

// turnSeparator implements answerWriter. Each text has its own content block, so it needs no
// separator.
func (f *messageWriter) turnSeparator() string { return "" }

func (f *messageWriter) stream(out *eventWriter) { f.out = out }

func (f *messageWriter) keepAlive() []byte {
	return []byte("event: ping\ndata: {\"type\":\"ping\"}\n\n")
}

// send sends an event of a type, after message_start if it is the first. members holds names and
// values of its members.
func (f *messageWriter) send(kind string, members ...any) {
	if !f.head {
		f.head = true
		start := f.encode(&llm.Response{Usage: &llm.Usage{}})
		f.send("message_start", "message", start)
	}
	body := map[string]any{"type": kind}
	for i := 0; i+1 < len(members); i += 2 {
		body[members[i].(string)] = members[i+1]
	}
	f.out.send(kind, body)
}

// encode returns an answer in Anthropic's format. It sets the answer's id and model.
func (f *messageWriter) encode(r *llm.Response) *tree.Value {
	r.ID, r.Model = f.id, f.model
	v, _ := anthropic.EncodeResponse(r, anthropic.Options{})
	return v
}

// sendPiece sends a piece, or holds it back: the block of a call ends with the model's
// turn, because more of the call can arrive until then.
func (f *messageWriter) sendPiece(p piece) {
	if p.kind == pieceTurned {
		f.closeBlock()
		for _, part := range f.order {
			for _, held := range f.held[part] {
				f.sendInBlock(held)
			}
			f.closeBlock()
		}
		clear(f.held)
		f.order = nil
		return
	}
	if f.now != nil && f.now.kind == pieceCall && f.now.part != p.part {
		if f.held[p.part] == nil {
			f.order = append(f.order, p.part)
		}
		f.held[p.part] = append(f.held[p.part], p)
		return
	}
	f.sendInBlock(p)
}

// sendInBlock sends a piece in its block, which it opens if necessary. It drops thinking of other
// vendors' models, whose signatures clients could not return.
func (f *messageWriter) sendInBlock(p piece) {
	ours := f.cfg.Model.Info().Vendor == llm.Anthropic // clients may return signatures of this vendor
	switch p.kind {
	case pieceText, pieceRefusal:
		f.openBlock(pieceText, p.part, tree.Obj("type", tree.Str("text"), "text", tree.Str(""), "citations", &tree.Value{}))
		f.sendMore("text_delta", "text", p.text)
	case pieceThinking, pieceSigned:
		if !ours {
			return
		}
		f.openBlock(pieceThinking, p.part, tree.Obj("type", tree.Str("thinking"), "thinking", tree.Str(""), "signature", tree.Str("")))
		if p.kind == pieceSigned {
			f.sendMore("signature_delta", "signature", p.text)
			return
		}
		f.sendMore("thinking_delta", "thinking", p.text)
	case pieceRedacted:
		if ours {
			f.openBlock(pieceRedacted, p.part, tree.Obj("type", tree.Str("redacted_thinking"), "data", tree.Str(p.text)))
		}
	case pieceCall:
		f.openBlock(pieceCall, p.part, tree.Obj("type", tree.Str("tool_use"), "id", tree.Str(p.id), "name", tree.Str(p.name), "input", tree.Obj(),
			"caller", tree.Obj("type", tree.Str("direct"))))
	case pieceArguments:
		f.sendMore("input_json_delta", "partial_json", p.text)
	}
}

// openBlock ends the current block and starts another, unless the current one is of this kind
// and part.
func (f *messageWriter) openBlock(kind pieceKind, part int, start *tree.Value) {
	if f.now != nil && f.now.kind == kind && f.now.part == part {
		return
	}
	f.closeBlock()
	f.now = &block{kind, part}
	f.send("content_block_start", "index", f.index, "content_block", start)
}

// sendMore sends more text of the open block; kind and member name the type of the delta
// and its text.
func (f *messageWriter) sendMore(kind, member, text string) {
	f.send("content_block_delta", "index", f.index, "delta", map[string]any{"type": kind, member: text})
}

// closeBlock ends the current block.
func (f *messageWriter) closeBlock() {
	if f.now == nil {
		return
	}
	f.now = nil
	f.send("content_block_stop", "index", f.index)
	f.index++
}

func (f *messageWriter) sendHostEvent(e map[string]any) { f.send("x_event", "x_event", e) }

// finish sends the end of a stream.
func (f *messageWriter) finish(r *llm.Response, extra []any) {
	last := f.encode(&llm.Response{StopReason: r.StopReason, MatchedStop: r.MatchedStop, Usage: r.Usage})
	members := append([]any{"delta", tree.Obj("stop_reason", last.Get("stop_reason"), "stop_sequence", last.Get("stop_sequence")), "usage", last.Get("usage")}, extra...)
	f.send("message_delta", members...)
	f.send("message_stop")
}

func (f *messageWriter) sendError(err error) { f.out.send("error", apiErrorOf(err).bodyForAnthropic()) }

// wholeAnswer implements answerWriter.
func (f *messageWriter) wholeAnswer(r *llm.Response, extra []any) *tree.Value {
	v := f.encode(r)
	for i := 0; i+1 < len(extra); i += 2 {
		v.Set(extra[i].(string), jsonTree(extra[i+1]))
	}
	return v
}
