package http

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/host/call"
	"github.com/toolroom-mcp/toolroom/host/executor"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// maxSaid is how much of what a service says of a failure is told.
const maxSaid = 2 << 10

// result makes the tool's result of an answer.
func (e *client) result(tool string, resp *http.Response, body []byte) (*call.Result, error) {
	kind, parameters, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		kind, parameters = "", nil
	}
	if encoding := resp.Header.Get("Content-Encoding"); encoding != "" && !resp.Uncompressed && encoding != "identity" {
		return nil, &call.ExecutionError{Tool: tool, Phase: call.PhaseExecute, Message: e.Method + " " + e.shown() + " failed",
			Cause: toolerr.New(toolerr.ProtocolError, "the answer is packed in a way that was not asked for")}
	}
	if resp.StatusCode < 200 || resp.StatusCode >= 300 {
		said := e.said(kind, parameters["charset"], body)
		if err := e.refusal(tool, resp, said); err != nil {
			return nil, err
		}
		return executor.Failed(fmt.Sprintf("HTTP %d %s%s", resp.StatusCode, http.StatusText(resp.StatusCode), said)), nil
	}
	switch {
	case strings.HasPrefix(kind, "image/") && kind != "image/svg+xml":
		return media("image", kind, body), nil
	case strings.HasPrefix(kind, "audio/"):
		return media("audio", kind, body), nil
	case isJSON(kind, body):
		return e.json(tool, body)
	case len(body) > 0 && binary(kind, parameters["charset"], body):
		return e.blob(kind, body), nil
	}
	text := textOf(parameters["charset"], body)
	if e.shape.Declared && !e.shape.Wrapped { // as PromptKit gives it
		return e.shape.Result(tool, append(jsonrpc.AppendString([]byte(`{"result":`), text), '}'))
	}
	return e.shape.Text(tool, text)
}

func (e *client) json(tool string, body []byte) (*call.Result, error) {
	value, err := redact(body, e.Redact)
	if err != nil {
		return nil, executor.Invalid(tool, "the answer is not JSON, though it says so: %v", err)
	}
	if e.response != nil {
		if value, err = search(e.response, json.RawMessage(value), tool, toolerr.ResultInvalid, "http.response.body_mapping"); err != nil {
			return nil, err
		}
	}
	return e.shape.Result(tool, value)
}

// isJSON goes by what the answer says of itself, and where it says nothing of
// use by its look.
func isJSON(kind string, body []byte) bool {
	switch {
	case kind == "application/json" || strings.HasSuffix(kind, "+json"):
		return len(bytes.TrimSpace(body)) > 0
	case kind == "" || kind == "text/plain" || kind == "application/octet-stream" || kind == "text/json" || kind == "text/javascript":
		return jsonrpc.Valid(bytes.TrimSpace(body)) == nil
	}
	return false
}

func binary(kind, charset string, body []byte) bool {
	return charset == "" && !utf8.Valid(body) && !strings.HasPrefix(kind, "text/") || bytes.IndexByte(body, 0) >= 0 && !strings.HasPrefix(strings.ToLower(charset), "utf-16")
}

// textOf is a body as text; what is not of its character set is replaced.
func textOf(charset string, body []byte) string {
	switch strings.ToLower(charset) {
	case "iso-8859-1", "latin1", "windows-1252":
		runes := make([]rune, len(body))
		for i, b := range body {
			runes[i] = rune(b)
		}
		return string(runes)
	}
	return strings.ToValidUTF8(string(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))), "\ufffd")
}

func media(of, kind string, body []byte) *call.Result {
	raw := append([]byte(`{"content":[{"type":"`), of...)
	raw = jsonrpc.AppendString(append(raw, `","mimeType":`...), kind)
	raw = append(raw, `,"data":"`...)
	raw = base64.StdEncoding.AppendEncode(raw, body)
	return &call.Result{Raw: append(raw, `"}]}`...)}
}

// blob is what is neither text nor a picture.
func (e *client) blob(kind string, body []byte) *call.Result {
	if kind == "" {
		kind = "application/octet-stream"
	}
	raw := jsonrpc.AppendString([]byte(`{"content":[{"type":"resource","resource":{"uri":`), origin(e.target.base)+"/")
	raw = jsonrpc.AppendString(append(raw, `,"mimeType":`...), kind)
	raw = append(raw, `,"blob":"`...)
	raw = base64.StdEncoding.AppendEncode(raw, body)
	return &call.Result{Raw: append(raw, `"}}]}`...)}
}

// said is what a service says of a failure, to follow the status.
func (e *client) said(kind, charset string, body []byte) string {
	if isJSON(kind, body) {
		value, err := redact(body, e.Redact)
		if err != nil {
			return ""
		}
		body = value
	} else if binary(kind, charset, body) {
		return ""
	}
	text := strings.TrimSpace(textOf(charset, body))
	if len(text) > maxSaid {
		text = strings.ToValidUTF8(text[:maxSaid], "") + "…"
	}
	if text == "" {
		return ""
	}
	return ": " + text
}

// Redacted stands in the place of a value that is not shown.
const Redacted = "[REDACTED]"

// maxDepth bounds how deep an answer is nested.
const maxDepth = 1000

// redact returns JSON with the values of members of such names replaced, at
// any depth, whatever their case.
func redact(body []byte, names []string) ([]byte, error) {
	body = bytes.TrimSpace(body)
	if err := jsonrpc.Valid(body); err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return body, nil
	}
	r := redactor{in: json.NewDecoder(bytes.NewReader(body)), names: names}
	r.in.UseNumber()
	if err := r.value(0); err != nil && err != io.EOF { //nolint:errorlint // the decoder's own
		return nil, err
	}
	return r.out, nil
}

type redactor struct {
	in    *json.Decoder
	out   []byte
	names []string
}

func (r *redactor) hides(name string) bool {
	return slices.ContainsFunc(r.names, func(hidden string) bool { return strings.EqualFold(hidden, name) })
}

func (r *redactor) value(depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("it is nested more than %d deep", maxDepth)
	}
	token, err := r.in.Token()
	if err != nil {
		return err
	}
	switch token := token.(type) {
	case json.Delim:
		r.out = append(r.out, byte(token))
		for first := true; r.in.More(); first = false {
			if !first {
				r.out = append(r.out, ',')
			}
			if err := r.item(token == '{', depth); err != nil {
				return err
			}
		}
		end, err := r.in.Token()
		if err != nil {
			return err
		}
		r.out = append(r.out, byte(end.(json.Delim))) //nolint:forcetypeassert,errcheck // More said so
	case string:
		r.out = jsonrpc.AppendString(r.out, token)
	case json.Number:
		r.out = append(r.out, token...)
	case nil:
		r.out = append(r.out, "null"...)
	default:
		r.out = fmt.Append(r.out, token)
	}
	return nil
}

func (r *redactor) item(named bool, depth int) error {
	if !named {
		return r.value(depth + 1)
	}
	name, err := r.in.Token()
	if err != nil {
		return err
	}
	text, _ := name.(string) //nolint:errcheck // the decoder gives nothing else here
	r.out = append(jsonrpc.AppendString(r.out, text), ':')
	if !r.hides(text) {
		return r.value(depth + 1)
	}
	start := len(r.out)
	if err := r.value(depth + 1); err != nil {
		return err
	}
	r.out = jsonrpc.AppendString(r.out[:start], Redacted)
	return nil
}
