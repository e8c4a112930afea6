package httpapi

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/agent"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// An answerWriter writes a completion in a vendor's format.
type answerWriter interface {
	turnSeparator() string // separator between the texts of two turns
	keepAlive() []byte     // the text of a stream that clients ignore

	// stream begins a streamed answer to out. Then sendPiece and sendHostEvent are called
	// in order, and at the end finish or sendError.
	stream(out *eventWriter)
	sendPiece(p piece)
	sendHostEvent(e map[string]any) // of x_events
	finish(r *llm.Response, extra []any)
	sendError(err error)

	// wholeAnswer returns an answer that is not streamed. extra holds names and values of
	// further members.
	wholeAnswer(r *llm.Response, extra []any) *tree.Value
}

// A pieceKind says which fields of a piece are set.
type pieceKind int

const (
	pieceText      pieceKind = iota // text
	pieceThinking                   // text
	pieceSigned                     // text: the signature of thinking
	pieceRedacted                   // text
	pieceRefusal                    // text
	pieceCall                       // id, name
	pieceArguments                  // text: more of the arguments of a call
	pieceTurned                     // the model's turn has ended
)

// A piece is an addition to an answer. part distinguishes the parts of a turn.
type piece struct {
	kind pieceKind
	part int
	text string
	id   string
	name string
}

// answerStream sends a client the events of a run: the model's texts, and the calls of
// the client's tools.
type answerStream struct {
	c       *completion
	form    answerWriter
	streams bool

	said   strings.Builder // all text, as the client gets it
	parts  []llm.Part      // parts of the answer, with the ids of calls as the client gets them
	events []map[string]any

	// State of the current turn.
	pieces bool         // pieces were sent
	spoken bool         // some of them are text
	calls  map[int]bool // parts that are calls of the client's tools
	told   []string     // the ids of these calls
}

// handleEvent adds an event of the agent loop to the answer, and sends it if the answer is
// streamed.
func (t *answerStream) handleEvent(e agent.Event) {
	switch e.Type {
	case agent.TurnEvent:
		t.pieces, t.spoken, t.calls, t.told = false, false, map[int]bool{}, nil
	case agent.DeltaEvent:
		if t.streams {
			t.sendDelta(e.Delta)
		}
	case agent.AnswerEvent:
		if t.streams && !t.pieces {
			for _, d := range e.Response.Deltas() {
				t.sendDelta(d)
			}
		}
		t.endTurn(e.Response)
	case agent.CallEvent, agent.ResultEvent, agent.ErrorEvent:
		t.sendHostCall(e)
	}
}

// sendDelta sends the parts of a delta that are for the client: texts, thinking, and calls of
// the client's tools.
func (t *answerStream) sendDelta(d llm.Delta) {
	t.pieces = true
	switch d.Type {
	case llm.TextPart:
		if d.Text != "" {
			t.form.sendPiece(piece{kind: pieceText, part: d.Index, text: t.separated(d.Text)})
		}
	case llm.RefusalPart:
		if d.Text != "" {
			t.form.sendPiece(piece{kind: pieceRefusal, part: d.Index, text: d.Text})
		}
	case llm.ThinkingPart:
		if d.Text != "" {
			t.form.sendPiece(piece{kind: pieceThinking, part: d.Index, text: d.Text})
		}
		if d.Signature != nil {
			t.form.sendPiece(piece{kind: pieceSigned, part: d.Index, text: d.Signature.Value})
		}
	case llm.RedactedPart:
		if d.Signature != nil {
			t.form.sendPiece(piece{kind: pieceRedacted, part: d.Index, text: d.Signature.Value})
		}
	case llm.CallPart:
		t.sendCall(d)
	}
}

// separated adds a text to t.said and returns it, after the separator if it is the first text
// of a later turn.
func (t *answerStream) separated(text string) string {
	if !t.spoken && t.said.Len() > 0 {
		text = t.form.turnSeparator() + text
	}
	t.spoken = true
	t.said.WriteString(text)
	return text
}

// sendCall sends a delta of a call of the client's tools, with a new id. It does not send calls
// of the host's tools.
func (t *answerStream) sendCall(d llm.Delta) {
	if !t.calls[d.Index] {
		if d.Name == "" || !t.c.isClientTool(d.Name) {
			return
		}
		id := t.c.newID()
		t.calls[d.Index], t.told = true, append(t.told, id)
		t.form.sendPiece(piece{kind: pieceCall, part: d.Index, id: id, name: d.Name})
	}
	if d.Args != "" {
		t.form.sendPiece(piece{kind: pieceArguments, part: d.Index, text: d.Args})
	}
}

// endTurn adds the complete answer of a turn to t.parts, with the ids of the calls that the
// client gets.
func (t *answerStream) endTurn(r *llm.Response) {
	t.c.assignIDs(r, t.told)
	if t.streams {
		t.sendUnsentCalls(r)
	}
	for _, p := range r.Parts {
		switch {
		case p.ToolCall != nil:
			id := t.c.ids[p.ToolCall.ID]
			if id == "" {
				continue
			}
			named := *p.ToolCall
			named.ID = id
			p.ToolCall = &named
		case p.Type == llm.TextPart && !t.streams:
			p.Text = t.separated(p.Text)
		}
		t.parts = append(t.parts, p)
	}
	if t.streams {
		t.form.sendPiece(piece{kind: pieceTurned})
	}
}

// sendUnsentCalls sends calls of the client's tools that were in no piece.
func (t *answerStream) sendUnsentCalls(r *llm.Response) {
	for i, one := range t.c.clientCalls(r.Calls()) {
		if i < len(t.told) {
			continue
		}
		part := len(r.Parts) + i
		t.form.sendPiece(piece{kind: pieceCall, part: part, id: t.c.ids[one.ID], name: one.Name})
		t.form.sendPiece(piece{kind: pieceArguments, part: part, text: string(one.Args) + one.Malformed})
	}
}

// sendHostCall sends an event about a call of the host's tools, if the client wants that.
func (t *answerStream) sendHostCall(e agent.Event) {
	if !t.c.q.events {
		return
	}
	told := map[string]any{"id": "evt_" + randomText(), "type": string(e.Type)}
	if e.ID != "" {
		told["call_id"] = e.ID
	}
	switch {
	case e.Type == agent.CallEvent:
		told["name"], told["arguments"] = e.Call.Name, e.Call.Args
		if e.Call.Malformed != "" {
			told["arguments"] = e.Call.Malformed
		}
	case e.Type == agent.ResultEvent:
		if e.Call != nil {
			told["name"] = e.Call.Name
		}
		told["duration_ms"] = e.Took.Milliseconds()
		if e.Result != nil {
			told["is_error"], told["content"] = e.Result.IsError, contentOf(e.Result)
		}
	case e.Err != nil:
		f := apiErrorOf(e.Err)
		told["message"], told["code"] = f.message, f.code
	}
	if t.streams {
		t.form.sendHostEvent(told)
		return
	}
	t.events = append(t.events, told)
}

// contentOf returns a tool's result as content blocks of MCP; empty, not nil, without any.
func contentOf(r *llm.ToolResult) []any {
	blocks := []any{}
	for _, p := range r.Content {
		switch {
		case p.Type == llm.TextPart:
			blocks = append(blocks, map[string]any{"type": "text", "text": p.Text})
		case p.Media != nil:
			blocks = append(blocks, map[string]any{"type": "image", "mimeType": p.Media.Type(), "data": p.Media.Data})
		case p.Raw != nil:
			blocks = append(blocks, p.Raw)
		}
	}
	return blocks
}

// storeOutcome stores the result of a run, and adds the messages of pending calls to the
// answer. It returns the error of the run, or of storing a session's messages; the client gets it
// instead of the end.
func (t *answerStream) storeOutcome(ctx context.Context, o *agent.Outcome) error {
	if err := outcomeError(ctx, o); err != nil {
		if f := apiErrorOf(err); t.c.q.response != nil && f.param == "messages" {
			named := *f
			named.param = "input"
			return &named
		}
		return err
	}
	if o.Ending == agent.EndPending {
		t.spoken = false
		for _, p := range o.Pending {
			text := t.separated(p.Tool + ": " + p.Message)
			t.parts = append(t.parts, llm.Part{Type: llm.TextPart, Text: text})
			if t.streams {
				t.form.sendPiece(piece{kind: pieceText, part: -1, text: text})
				t.form.sendPiece(piece{kind: pieceTurned})
			}
			t.spoken = false
		}
	}
	err := t.c.storeMessages(ctx, o, t.said.String())
	if err != nil && t.c.q.session == "" { // the client has the messages of the turn itself
		t.c.api.cfg.Logf("the parts of an answer that the client does not receive could not be stored: %v", err)
		err = nil
	}
	if f, ok := t.form.(*responseWriter); ok && err == nil {
		f.storeIfAsked(ctx, t.c.withClientIDs(o.Messages), t.finalResponse(o), t.extraMembers(o))
	}
	return err
}

// finalResponse returns the answer of a run, with all parts that the client gets.
func (t *answerStream) finalResponse(o *agent.Outcome) *llm.Response {
	r := &llm.Response{Parts: t.parts, StopReason: stopReason(o), Usage: &o.Usage}
	for _, p := range r.Parts {
		if p.ToolCall != nil { // also if the run ended for another reason: they were sent
			r.StopReason = llm.StopCalls
		}
	}
	if o.Response != nil && r.StopReason == llm.StopSequence {
		r.MatchedStop = o.Response.MatchedStop
	}
	return r
}

// extraMembers returns the names and values, in turn, of the members of an answer that the
// vendors' formats do not have.
func (t *answerStream) extraMembers(o *agent.Outcome) []any {
	var extra []any
	if why := endingText(o); why != "" {
		extra = append(extra, "x_ending", why)
	}
	if len(o.Pending) > 0 {
		extra = append(extra, "x_pending", o.Pending)
	}
	if t.c.q.events && !t.streams {
		extra = append(extra, "x_events", append([]map[string]any{}, t.events...))
	}
	return extra
}

// serveCompletion runs a completion and sends its answer, or an error, in the format of the writer that
// as returns. A client that disconnects ends the run.
func (a *API) serveCompletion(w http.ResponseWriter, r *http.Request, q *requestOptions, as func(*completion) answerWriter) {
	ctx, give := context.WithCancelCause(r.Context())
	defer give(nil)
	c, done, err := a.newCompletion(ctx, q)
	if err != nil {
		writeError(w, r, err)
		return
	}
	defer done()
	if len(q.ignored) > 0 {
		w.Header().Set("X-Toolroom-Ignored", strings.Join(q.ignored, ", "))
	}
	t := &answerStream{c: c, form: as(c), streams: q.Request.Stream}
	if !t.streams {
		c.cfg.Retries = 2
		o := c.run(ctx, t.handleEvent)
		if err := t.storeOutcome(ctx, o); err != nil {
			writeError(w, r, err)
			return
		}
		writeJSON(w, http.StatusOK, t.form.wholeAnswer(t.finalResponse(o), t.extraMembers(o)).JSON())
		return
	}
	out := newEvents(w, give, t.form.keepAlive(), a.cfg.KeepAlive)
	defer out.close()
	t.form.stream(out)
	o := c.run(ctx, t.handleEvent)
	err = t.storeOutcome(ctx, o)
	if err == nil {
		t.form.finish(t.finalResponse(o), t.extraMembers(o))
		return
	}
	out.close()
	if out.started() {
		t.form.sendError(err)
		return
	}
	writeError(w, r, err)
}

// randomText returns 26 random lower-case letters and digits for ids.
func randomText() string { return strings.ToLower(rand.Text()) }

// jsonTree returns v as a JSON tree; null if v cannot be encoded.
func jsonTree(v any) *tree.Value {
	text, err := jsonrpc.Marshal(v)
	if err != nil {
		return &tree.Value{}
	}
	return tree.Raw(text)
}

// readObject reads a body that must be a JSON object. It returns the errors of readBody, or
// INVALID_INPUT.
func readObject(w http.ResponseWriter, r *http.Request) (*tree.Value, error) {
	text, err := readBody(w, r)
	if err != nil {
		return nil, err
	}
	v, err := tree.Parse(text)
	if err != nil {
		return nil, toolerr.New(toolerr.InvalidInput, "the body is not JSON: %w", err)
	}
	if !v.Is(tree.Object) {
		return nil, toolerr.New(toolerr.InvalidInput, "the body is not a JSON object")
	}
	return v, nil
}
