package mcpkit

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Image is one picture of a result.
type Image struct {
	Data []byte
	MIME string // image/png, …
}

// Result is what a tool's function returns. One that comes with an error
// tells what was done before it: its text follows the error's.
type Result struct {
	Text   string // header line first
	Images []Image
	Meta   any // small metadata for structuredContent; fits Def.Output
	Rows   any // for one-shot --structured: slice of objects, or a func() any that makes it when it is wanted
}

// CallResult is the outcome of one call, good or bad, ready for the wire.
type CallResult struct {
	Text       string          // what the model reads, within the budget
	Notes      string          // notes beside Text, where that is data; else Text has them
	Images     []Image         // those that fit the message
	Structured json.RawMessage // an object, or nil: none
	IsError    bool
	Code       toolerr.Code // "" unless IsError
	Rows       any          // as the tool returned them
	Err        error        // the cause of IsError, for logs; may wrap a *Panic

	raw json.RawMessage // as another server sent it
}

// MaxMessage is the hard bound of a message in bytes, images and envelope
// included.
const MaxMessage = 1 << 20

// envelope is what is left of MaxMessage for id, metadata and the rest of the
// JSON-RPC message around a result.
const envelope = 4 << 10

// JSON returns the members of a CallToolResult (content, structuredContent,
// isError) as one object in one line. With its envelope it stays within
// MaxMessage: images that do not fit are left out, and said so, then text is
// cut.
func (r *CallResult) JSON() json.RawMessage {
	const room = MaxMessage - envelope
	if r.raw != nil && len(r.raw) <= room {
		return r.raw
	}
	if r.size() <= room {
		if out := r.encode(); len(out) <= room {
			return out
		}
	}
	cut := *r
	cut.dropImages(room)
	out := cut.encode()
	for limit := len(cut.Text); len(out) > room && limit > 0; out = cut.encode() {
		limit = min(limit*3/4, room)
		cut.Text = cutText(cut.Text, limit)
	}
	if len(out) > room { // metadata alone is too much
		cut.Structured = nil
		out = cut.encode()
	}
	return out
}

// size is what the encoded result takes at least.
func (r *CallResult) size() int {
	size := len(r.Text) + len(r.Notes) + len(r.Structured) + 128
	for _, image := range r.Images {
		size += image.size()
	}
	return size
}

func (i Image) size() int { return base64.StdEncoding.EncodedLen(len(i.Data)) + len(i.MIME) + 64 }

// dropImages leaves out the last images until the rest fits, and says so.
func (r *CallResult) dropImages(room int) {
	const most = 20
	all := r.Images
	bare := *r
	bare.Images = nil
	// The text as it is on the wire, and what is added to it below.
	size := len(bare.encode()) + (most+1)*128
	for i, image := range all {
		if size += image.size(); size > room {
			r.Images = all[:i]
			break
		}
	}
	left := all[len(r.Images):]
	for i, image := range left {
		if i == most {
			r.Text += fmt.Sprintf("\n%d more images left out", len(left)-most)
			break
		}
		r.Text += fmt.Sprintf("\nimage %d (%s, %d bytes) left out: the message would be over %d bytes",
			len(r.Images)+i+1, shown(image.MIME), len(image.Data), MaxMessage)
	}
}

func (r *CallResult) encode() json.RawMessage {
	out := append(make([]byte, 0, r.size()), `{"content":[`...)
	comma := func() {
		if out[len(out)-1] != '[' {
			out = append(out, ',')
		}
	}
	for i, text := range []string{r.Text, r.Notes} {
		// Model APIs refuse an empty text, and clients an empty content.
		if text == "" && i == 0 && len(r.Images) == 0 {
			text = "(no output)"
		}
		if text != "" {
			comma()
			out = append(jsonrpc.AppendString(append(out, `{"type":"text","text":`...), text), '}')
		}
	}
	for _, image := range r.Images {
		comma()
		out = jsonrpc.AppendString(append(out, `{"type":"image","mimeType":`...), image.MIME)
		out = base64.StdEncoding.AppendEncode(append(out, `,"data":"`...), image.Data)
		out = append(out, `"}`...)
	}
	out = append(out, ']')
	if r.Structured != nil {
		out = append(append(out, `,"structuredContent":`...), r.Structured...)
	}
	if r.IsError {
		out = append(out, `,"isError":true`...)
	}
	return append(out, '}')
}

// ErrorResult renders err as a result of t: its text, and its code and extra
// values as structuredContent that fits the tool's outputSchema.
func (t *Tool) ErrorResult(err error) *CallResult {
	res := ErrorResult(err)
	res.Structured = t.structured(nil, err)
	return res
}

// ErrorResult renders err as a result of no tool in particular.
func ErrorResult(err error) *CallResult {
	res := &CallResult{IsError: true, Code: toolerr.CodeOf(err), Err: err}
	res.Text = strings.ToValidUTF8(err.Error(), "\uFFFD")
	if strings.TrimSpace(res.Text) == "" {
		res.Text = "failed with " + string(res.Code)
	}
	res.Structured = (&Tool{}).structured(nil, err)
	return res
}

// render makes the result of a call from what the tool's function returned.
func (t *Tool) render(ctx context.Context, r *Result, err error, said *notes) *CallResult {
	if err == nil && r == nil {
		err = toolerr.New(toolerr.Internal, "%s returned neither a result nor an error, which is a bug in it", t.Name())
	}
	budget := Budget(ctx)
	if err != nil {
		return t.renderError(budget, r, t.timed(ctx, err), said)
	}
	res := &CallResult{Images: r.Images, Rows: r.Rows, Text: strings.ToValidUTF8(r.Text, "\uFFFD")}
	if !t.data {
		res.Structured = t.structured(r.Meta, nil)
		res.Text = said.under(res.Text, budget)
		return res
	}
	res.Notes = said.text()
	var misfit error
	if res.Structured, misfit = t.fit(r.Meta, true); misfit != nil {
		return t.renderError(budget, nil, &ValidationError{
			Type: ResultInvalid, Tool: t.Name(), Detail: misfit.Error(),
			err: toolerr.New(toolerr.ResultInvalid, "%s answered what its own outputSchema does not allow: %w", t.Name(), misfit),
		}, said)
	}
	if size := max(len(res.Text), len(res.Structured)); size > budget {
		return t.renderError(budget, nil, toolerr.New(toolerr.TooLarge,
			"the result of %s is %d bytes, more than the %d that fit; ask for less at once", t.Name(), size, budget).
			With("bytes", size), said)
	}
	return res
}

func (t *Tool) renderError(budget int, r *Result, err error, said *notes) *CallResult {
	res := ErrorResult(err)
	var meta any
	if r != nil {
		meta, res.Rows, res.Images = r.Meta, r.Rows, r.Images
		if r.Text != "" {
			res.Text += "\n\n" + strings.ToValidUTF8(r.Text, "\uFFFD")
		}
	}
	res.Structured = t.structured(meta, err)
	res.Text = said.under(res.Text, budget)
	return res
}

// timed gives plain words to a context's error that a tool passed on as is.
func (t *Tool) timed(ctx context.Context, err error) error {
	var coded *toolerr.Error
	switch {
	case errors.As(err, &coded):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return &TimeoutError{Tool: t.Name(), After: t.def.Timeout, Cause: err}
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return toolerr.New(toolerr.Cancelled, "%s was cancelled before it finished: %w", t.Name(), err)
	case toolerr.CodeOf(err) == toolerr.ExecutionError:
		return &ExecutionError{Tool: t.Name(), Phase: "execute", Message: err.Error(), Cause: err}
	}
	return err
}

type notesKey struct{}

// notes collects the notes of one call.
type notes struct {
	mu    sync.Mutex
	lines []string
}

// maxNotes and maxNote bound what notes add to a result.
const (
	maxNotes = 20
	maxNote  = 500
)

// Notef adds a line "note: …" to the end of the result of the call that ctx
// belongs to. The same note is shown once, and only the first twenty. Outside
// a call it does nothing.
func Notef(ctx context.Context, format string, args ...any) {
	said, ok := ctx.Value(notesKey{}).(*notes)
	if !ok {
		return
	}
	line := strings.ToValidUTF8(fmt.Sprintf(format, args...), "\uFFFD")
	line = "note: " + strings.Join(strings.Fields(line), " ")
	if len(line) > maxNote {
		line = runeCut(line, maxNote) + "…"
	}
	said.mu.Lock()
	defer said.mu.Unlock()
	if len(said.lines) < maxNotes && !slices.Contains(said.lines, line) {
		said.lines = append(said.lines, line)
	}
}

func (n *notes) text() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.lines, "\n")
}

// under puts the notes under text and keeps both within the budget; the notes
// are kept whole.
func (n *notes) under(text string, budget int) string {
	notes := n.text()
	if notes == "" {
		return cutText(text, budget)
	}
	text = cutText(text, max(budget-len(notes)-1, 0))
	if text == "" {
		return notes
	}
	return strings.TrimSuffix(text, "\n") + "\n" + notes
}

// cutText is the last resort for text over the budget: it cuts at the end of
// a line, or of a character within an endless one, and says so.
func cutText(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const form = "[cut at the result budget: %d of %d bytes shown; ask for less, or for the next part]"
	room := max(limit-len(form)-20, 0)
	kept := runeCut(text, room)
	if i := strings.LastIndexByte(kept, '\n'); i > 0 {
		kept = kept[:i]
	}
	said := fmt.Sprintf(form, len(kept), len(text))
	if kept == "" {
		return said
	}
	return kept + "\n" + said
}

// runeCut returns at most n bytes of text, whole characters only.
func runeCut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && text[n]&0xC0 == 0x80 {
		n--
	}
	return text[:n]
}
