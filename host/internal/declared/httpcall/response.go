package httpcall

import (
	"bytes"
	"encoding/base64"
	endian "encoding/binary"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/htmlindex"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/executor"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// maxQuoted bounds the quoted error text of a service, in bytes.
const maxQuoted = 2 << 10

// toolResult converts an answer into the tool's result. A status other than 2xx is a result
// with isError, or an error as errorOfStatus says. It returns PROTOCOL_ERROR for an
// unsupported content encoding.
func (e *client) toolResult(tool string, resp *http.Response, body []byte) (*call.Result, error) {
	kind, parameters, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		kind, parameters = "", nil
	}
	charset := parameters["charset"]
	if encoding := resp.Header.Get("Content-Encoding"); encoding != "" && !resp.Uncompressed && encoding != "identity" {
		return nil, &call.ExecutionError{Tool: tool, Phase: call.PhaseExecute, Message: e.Method + " " + e.shownURL() + " failed",
			Cause: toolerr.New(toolerr.ProtocolError, "the answer has an unsupported content encoding")}
	}
	if decoded, set := toUTF8(charset, body); contentType(kind) == "" || e.isJSON(kind, decoded) {
		body, charset = decoded, set
	}
	if resp.StatusCode < 200 || resp.StatusCode >= 300 {
		said := e.errorText(kind, charset, body)
		if err := e.errorOfStatus(tool, resp, said); err != nil {
			return nil, err
		}
		return executor.Failed(fmt.Sprintf("HTTP %d %s%s", resp.StatusCode, http.StatusText(resp.StatusCode), said)), nil
	}
	if e.isJSON(kind, body) {
		return e.jsonResult(tool, body)
	}
	pictured := contentType(kind) != "" && (e.redactedText == nil || bytes.IndexByte(body, 0) >= 0)
	text, hid := "", false
	if !pictured {
		text, hid = e.redactText(textOf(charset, body))
	}
	switch {
	case contentType(kind) != "" && !hid:
		return mediaResult(contentType(kind), kind, body), nil
	case len(body) > 0 && !hid && isBinary(kind, charset, body):
		return e.blobResult(kind, body), nil
	}
	if e.shape.Declared && !e.shape.Wrapped { // as PromptKit returns it
		return e.shape.Result(tool, append(jsonrpc.AppendString([]byte(`{"result":`), text), '}'))
	}
	return e.shape.Text(tool, text)
}

// jsonResult returns the result for a JSON answer, after redaction and mapping. It returns
// RESULT_INVALID if the answer is not JSON or cannot be mapped.
func (e *client) jsonResult(tool string, body []byte) (*call.Result, error) {
	value, err := e.redact(body)
	if err != nil {
		return nil, executor.Invalid(tool, "the answer is declared as JSON but is not: %v", err)
	}
	if e.response != nil {
		if value, err = e.response.apply(value); err != nil {
			return nil, toolerr.New(toolerr.ResultInvalid, "%s: http.response.body_mapping cannot be applied: %w", tool, err)
		}
	}
	return e.shape.Result(tool, value)
}

// isJSON reports whether a body is JSON, by the content type or, without a usable one, by
// the content. With redaction or a mapping, it looks at the content whatever the content
// type is.
func (e *client) isJSON(kind string, body []byte) bool {
	switch {
	case kind == "application/json" || strings.HasSuffix(kind, "+json"):
		return len(bytes.TrimSpace(body)) > 0
	case kind == "" || kind == "text/plain" || kind == "application/octet-stream" || kind == "text/json" || kind == "text/javascript",
		e.redactedText != nil || e.response != nil:
		return jsonrpc.Valid(bytes.TrimSpace(body)) == nil
	}
	return false
}

// contentType returns the MCP content type for a media type, "" if it has none.
func contentType(kind string) string {
	switch {
	case strings.HasPrefix(kind, "image/") && kind != "image/svg+xml":
		return "image"
	case strings.HasPrefix(kind, "audio/"):
		return "audio"
	}
	return ""
}

// isBinary reports whether a body is binary: it contains a NUL byte, or it is not UTF-8
// and neither its charset is known nor its media type, kind, is text.
func isBinary(kind, charset string, body []byte) bool {
	return charset == "" && !utf8.Valid(body) && !strings.HasPrefix(kind, "text/") || bytes.IndexByte(body, 0) >= 0
}

// toUTF8 converts a body in a Unicode encoding to UTF-8 without a byte order mark, and
// returns the new character set; other bodies are returned unchanged.
func toUTF8(charset string, body []byte) ([]byte, string) {
	var order endian.ByteOrder
	switch name := strings.ToLower(charset); {
	case bytes.HasPrefix(body, []byte("\xef\xbb\xbf")):
		return body[3:], charset
	case bytes.HasPrefix(body, []byte("\xff\xfe")):
		order, body = endian.LittleEndian, body[2:]
	case bytes.HasPrefix(body, []byte("\xfe\xff")):
		order, body = endian.BigEndian, body[2:]
	case name == "utf-16le":
		order = endian.LittleEndian
	case name == "utf-16" || name == "utf-16be":
		order = endian.BigEndian
	default:
		return body, charset
	}
	units := make([]uint16, len(body)/2)
	for i := range units {
		units[i] = order.Uint16(body[2*i:])
	}
	return []byte(string(utf16.Decode(units))), "utf-8"
}

// textOf returns a body as text; bytes that are invalid in its character set are
// replaced. Names of character sets are those of the WHATWG Encoding Standard, where
// iso-8859-1 is windows-1252; bodies in other sets are read as UTF-8.
func textOf(charset string, body []byte) string {
	if encoding, err := htmlindex.Get(charset); err == nil {
		if text, err := encoding.NewDecoder().Bytes(body); err == nil {
			body = text
		}
	}
	return strings.ToValidUTF8(string(body), "\ufffd")
}

// mediaResult returns a result with one image or audio part; of is the part's type and kind
// the media type.
func mediaResult(of, kind string, body []byte) *call.Result {
	raw := append([]byte(`{"content":[{"type":"`), of...)
	raw = jsonrpc.AppendString(append(raw, `","mimeType":`...), kind)
	raw = append(raw, `,"data":"`...)
	raw = base64.StdEncoding.AppendEncode(raw, body)
	return &call.Result{Raw: append(raw, `"}]}`...)}
}

// blobResult returns a result with content that is neither text nor an image.
func (e *client) blobResult(kind string, body []byte) *call.Result {
	if kind == "" {
		kind = "application/octet-stream"
	}
	raw := jsonrpc.AppendString([]byte(`{"content":[{"type":"resource","resource":{"uri":`), origin(e.target.base)+"/")
	raw = jsonrpc.AppendString(append(raw, `,"mimeType":`...), kind)
	raw = append(raw, `,"blob":"`...)
	raw = base64.StdEncoding.AppendEncode(raw, body)
	return &call.Result{Raw: append(raw, `"}}]}`...)}
}

// errorText returns the service's error text, which follows the status in a message.
func (e *client) errorText(kind, charset string, body []byte) string {
	var text string
	switch {
	case e.isJSON(kind, body):
		value, err := e.redact(body)
		if err != nil {
			return ""
		}
		text = string(value)
	case isBinary(kind, charset, body):
		return ""
	default:
		text, _ = e.redactText(strings.TrimSpace(textOf(charset, body)))
	}
	if len(text) > maxQuoted {
		text = strings.ToValidUTF8(text[:maxQuoted], "") + "…"
	}
	if text == "" {
		return ""
	}
	return ": " + text
}
