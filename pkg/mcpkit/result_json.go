package mcpkit

import (
	"encoding/base64"
	"encoding/json"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// The _meta keys of a result. Programs read them; clients do not pass _meta to
// a model, so a model reads the text.
const (
	metaKeyDetails = "toolroom/result" // an object: counts, etag, exit code, …
	metaKeyCode    = "toolroom/code"   // the error's code
)

// JSON returns the result as a CallToolResult (content, structuredContent,
// isError, _meta) on one line. To stay within MaxMessage with its envelope, it
// first omits images, with a line that says so, and then cuts the text.
func (r *CallResult) JSON() json.RawMessage {
	const maxResult = MaxMessage - envelopeSize
	if r.rawResult != nil && len(r.rawResult) <= maxResult {
		return r.rawResult
	}
	if r.minEncodedSize() <= maxResult {
		if out := r.encode(); len(out) <= maxResult {
			return out
		}
	}
	cut := *r
	cut.dropImagesOver(maxResult)
	cut.dropStructuredRows()
	out := cut.encode()
	for limit := len(cut.Text); len(out) > maxResult && limit > 0; out = cut.encode() {
		limit = min(limit*3/4, maxResult)
		cut.Text = cutToLimit(cut.Text, limit)
		cut.dropStructuredRows()
	}
	if len(out) > maxResult { // the data alone is too much
		cut.Structured, cut.Details = nil, nil
		out = cut.encode()
	}
	return out
}

// encode returns the result as one JSON object, of any size. "(no output)" stands for an
// empty text without images.
func (r *CallResult) encode() json.RawMessage {
	out := append(make([]byte, 0, r.minEncodedSize()), `{"content":[`...)
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
		out = jsonrpc.AppendString(append(out, `"`+metaKeyCode+`":`...), string(r.Code))
	}
	if r.Details != nil {
		if r.Code != "" {
			out = append(out, ',')
		}
		out = append(append(out, `"`+metaKeyDetails+`":`...), r.Details...)
	}
	return append(out, '}')
}
