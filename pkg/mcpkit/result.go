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

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/callerror"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Image is one picture of a result.
type Image struct {
	Data []byte
	MIME string // image/png, …
}

// Result is a tool function's result. With an error it describes the work done
// before the error: its text follows the error's.
type Result struct {
	Text   string // header line first
	Images []Image
	Meta   any // counters for programs, sent as _meta["toolroom/result"]; fits Def.Output
	Rows   any // for --structured: a slice of Def.Row, or a func() any that makes it on demand

	// ExitStatus is the exit status of a command that the tool ran. A one-shot
	// call with --text ends with it.
	ExitStatus int
}

// CallResult is the outcome of one call, success or error, ready to be encoded.
type CallResult struct {
	Text       string          // what the model reads, within the budget
	Notes      string          // notes in a separate item if Text is data; else Text has them
	Images     []Image         // those that fit the message
	Details    json.RawMessage // an object for _meta["toolroom/result"], or nil: none
	Structured json.RawMessage // structuredContent: an object with the whole answer, or nil: none
	IsError    bool
	Code       toolerr.Code // "" unless IsError
	Rows       any          // as the tool returned them
	ExitStatus int          // as the tool returned it
	Err        error        // the cause of IsError, for logs; may wrap a *callerror.Panic

	rawResult          json.RawMessage // as another server sent it
	isStructuredAnswer bool            // Structured was made by structuredAnswer
}

// Limits of a result.
const (
	// DefaultMaxTokens is the result budget of a tool without MaxTokens.
	DefaultMaxTokens = 12_000
	// MaxMessage is the hard limit of a message in bytes, including images and
	// envelope.
	MaxMessage = 1 << 20
)

// envelopeSize is the part of MaxMessage reserved for the id, metadata and the
// rest of the JSON-RPC message around a result.
const envelopeSize = 4 << 10

// The _meta keys of a result. Programs read them; clients do not pass _meta to
// a model, so a model reads the text.
const (
	metaResult = "toolroom/result" // an object: counts, etag, exit code, …
	metaCode   = "toolroom/code"   // the stable code of an error
)

// JSON returns the members of a CallToolResult (content, structuredContent,
// isError, _meta) as one object on one line. To stay within MaxMessage with its
// envelope, it first omits images, with a line that says so, and then cuts the
// text.
func (r *CallResult) JSON() json.RawMessage {
	const room = MaxMessage - envelopeSize
	if r.rawResult != nil && len(r.rawResult) <= room {
		return r.rawResult
	}
	if r.size() <= room {
		if out := r.encode(); len(out) <= room {
			return out
		}
	}
	cut := *r
	cut.dropImages(room)
	cut.dropRows()
	out := cut.encode()
	for limit := len(cut.Text); len(out) > room && limit > 0; out = cut.encode() {
		limit = min(limit*3/4, room)
		cut.Text = cutText(cut.Text, limit)
		cut.dropRows()
	}
	if len(out) > room { // the data alone is too much
		cut.Structured, cut.Details = nil, nil
		out = cut.encode()
	}
	return out
}

// size returns a lower bound of the encoded result's size in bytes.
func (r *CallResult) size() int {
	size := len(r.Text) + len(r.Notes) + len(r.Structured) + len(r.Details) + 192
	for _, image := range r.Images {
		size += image.size()
	}
	return size
}

func (i Image) size() int { return base64.StdEncoding.EncodedLen(len(i.Data)) + len(i.MIME) + 64 }

// dropImages omits the last images until the rest fits, and adds a line for
// each to the text.
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
			r.Text += fmt.Sprintf("\n%d more images omitted", len(left)-most)
			break
		}
		r.Text += fmt.Sprintf("\nimage %d (%s, %d bytes) omitted: the message would exceed %d bytes",
			len(r.Images)+i+1, quotable(image.MIME), len(image.Data), MaxMessage)
	}
}

// dropRows reduces the structuredContent of a text tool to its text, without
// rows and metadata.
func (r *CallResult) dropRows() {
	if r.isStructuredAnswer {
		r.Rows = nil
		r.Structured = structuredAnswer(r, nil)
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
	return append(r.appendMeta(out), '}')
}

// appendMeta appends the member _meta, unless it would be empty.
func (r *CallResult) appendMeta(out []byte) []byte {
	if r.Code == "" && r.Details == nil {
		return out
	}
	out = append(out, `,"_meta":{`...)
	if r.Code != "" {
		out = jsonrpc.AppendString(append(out, `"`+metaCode+`":`...), string(r.Code))
	}
	if r.Details != nil {
		if r.Code != "" {
			out = append(out, ',')
		}
		out = append(append(out, `"`+metaResult+`":`...), r.Details...)
	}
	return append(out, '}')
}

// ErrorResult renders err as a result of t: its text in the content, its code
// and extra values in _meta.
func (t *Tool) ErrorResult(err error) *CallResult {
	res := errorResult(err)
	t.addData(res, nil, err)
	return res
}

// errorResult renders err as a result without a tool.
func errorResult(err error) *CallResult {
	res := &CallResult{IsError: true, Code: toolerr.CodeOf(err), Err: err}
	res.Text = strings.ToValidUTF8(err.Error(), "\uFFFD")
	if strings.TrimSpace(res.Text) == "" {
		res.Text = "failed with " + string(res.Code)
	}
	(&Tool{}).addData(res, nil, err)
	return res
}

// render makes a call's result from the return values of the tool's function.
func (t *Tool) render(ctx context.Context, r *Result, err error, said *notes) *CallResult {
	if err == nil && r == nil {
		err = toolerr.New(toolerr.Internal, "%s returned neither a result nor an error: this is a bug in the tool", t.Name())
	}
	budget := Budget(ctx)
	if err != nil {
		return t.renderError(budget, r, t.withTimeoutCode(ctx, err), said)
	}
	res := &CallResult{Images: r.Images, Rows: r.Rows, ExitStatus: r.ExitStatus, Text: strings.ToValidUTF8(r.Text, "\uFFFD")}
	if !t.data {
		res.Text = said.addTo(res.Text, budget)
		t.addData(res, r.Meta, nil)
		return res
	}
	res.Notes = said.text()
	members, misfit := t.fit(r.Meta, true)
	if misfit != nil {
		return t.renderError(budget, nil, &callerror.ValidationError{
			Type: callerror.ResultInvalid, Tool: t.Name(), Detail: misfit.Error(),
			Err: toolerr.New(toolerr.ResultInvalid, "the result of %s does not fit its outputSchema: %w", t.Name(), misfit),
		}, said)
	}
	res.Structured = objectOf(members).raw
	if size := max(len(res.Text), len(res.Structured)); size > budget {
		return t.renderError(budget, nil, toolerr.New(toolerr.TooLarge,
			"the result of %s has %d bytes, more than the limit of %d: ask for less at once", t.Name(), size, budget).
			With("bytes", size), said)
	}
	return res
}

func (t *Tool) renderError(budget int, r *Result, err error, said *notes) *CallResult {
	res := errorResult(err)
	var meta any
	if r != nil {
		meta, res.Rows, res.Images = r.Meta, r.Rows, r.Images
		if r.Text != "" {
			res.Text += "\n\n" + strings.ToValidUTF8(r.Text, "\uFFFD")
		}
	}
	res.Text = said.addTo(res.Text, budget)
	t.addData(res, meta, err)
	return res
}

// withTimeoutCode replaces an error of the context, or one without a code, by
// an error with a clear message.
func (t *Tool) withTimeoutCode(ctx context.Context, err error) error {
	var coded *toolerr.Error
	switch {
	case errors.As(err, &coded):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return &callerror.TimeoutError{Tool: t.Name(), After: t.def.Timeout, Cause: err}
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return toolerr.New(toolerr.Cancelled, "%s was cancelled before it finished: %w", t.Name(), err)
	case toolerr.CodeOf(err) == toolerr.ExecutionError:
		return &callerror.ExecutionError{Tool: t.Name(), Phase: "execute", Message: err.Error(), Cause: err}
	}
	return err
}

type notesKey struct{}

// notes collects the notes of one call.
type notes struct {
	mu    sync.Mutex
	first []string // above the text
	lines []string // below it
}

// maxNotes bounds the notes of a result, maxNote the bytes of each.
const (
	maxNotes = 20
	maxNote  = 500
)

// Notef adds a line "note: …" to the end of the result of ctx's call. Equal
// notes are shown once, and at most twenty in all. Outside a call it does
// nothing.
func Notef(ctx context.Context, format string, args ...any) {
	if said, ok := ctx.Value(notesKey{}).(*notes); ok {
		said.add(&said.lines, format, args...)
	}
}

// NoteFirstf is Notef for a line above the result: for facts that the reader
// needs first, such as an ignored argument or one taken for another.
func NoteFirstf(ctx context.Context, format string, args ...any) {
	if said, ok := ctx.Value(notesKey{}).(*notes); ok {
		said.add(&said.first, format, args...)
	}
}

func (n *notes) add(to *[]string, format string, args ...any) {
	line := strings.ToValidUTF8(fmt.Sprintf(format, args...), "\uFFFD")
	line = "note: " + strings.Join(strings.Fields(line), " ")
	if len(line) > maxNote {
		line = cutAtRune(line, maxNote) + "…"
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.first)+len(n.lines) < maxNotes && !slices.Contains(n.first, line) && !slices.Contains(n.lines, line) {
		*to = append(*to, line)
	}
}

func (n *notes) text() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(slices.Concat(n.first, n.lines), "\n")
}

// addTo adds the notes above and below text and cuts text to keep all within
// the budget; notes are not cut.
func (n *notes) addTo(text string, budget int) string {
	notes := n.text()
	if notes == "" {
		return cutText(text, budget)
	}
	text = cutText(text, max(budget-len(notes)-1, 0))
	if text == "" {
		return notes
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.lines) > 0 {
		text = strings.TrimSuffix(text, "\n") + "\n" + strings.Join(n.lines, "\n")
	}
	if len(n.first) > 0 {
		text = strings.Join(n.first, "\n") + "\n" + text
	}
	return text
}

// cutText cuts text to about limit bytes, as a last resort, and says so in a
// last line. It cuts at the end of a line, or of a character if the only line
// is too long.
func cutText(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const form = "[cut to the result limit: %d of %d bytes shown; ask for less, or for the next part]"
	room := max(limit-len(form)-20, 0)
	kept := cutAtRune(text, room)
	if i := strings.LastIndexByte(kept, '\n'); i > 0 {
		kept = kept[:i]
	}
	said := fmt.Sprintf(form, len(kept), len(text))
	if kept == "" {
		return said
	}
	return kept + "\n" + said
}

// cutAtRune returns at most n bytes of text, without splitting a character.
func cutAtRune(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && text[n]&0xC0 == 0x80 {
		n--
	}
	return text[:n]
}
