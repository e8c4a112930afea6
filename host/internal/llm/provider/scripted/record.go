package scripted

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/toolroom-mcp/toolroom/host/internal/diagnose/record"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// recordingHeader is the first line of a recording.
type recordingHeader struct {
	Format int    `json:"toolroom_model"`
	Model  string `json:"model,omitempty"`
}

// exchange is each further line of a recording: a request and its response or error.
type exchange struct {
	Request  string        `json:"request"` // see fingerprint
	Last     string        `json:"last,omitempty"`
	Response *responseText `json:"response,omitempty"`
	Code     toolerr.Code  `json:"code,omitempty"`
	Error    string        `json:"error,omitempty"`
}

// fingerprint identifies a request by its conversation and the names of its tools.
func fingerprint(r *llm.Request) string {
	var names []string
	for _, t := range r.Tools {
		names = append(names, t.Name)
	}
	raw, err := json.Marshal([]any{llm.Normalize(r.Messages), names, r.Choice})
	if err != nil {
		return ""
	}
	if canonical, ok := jsonrpc.Canonical(nil, raw); ok {
		raw = canonical
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:16])
}

// A Recorder is a model that records its answers. It records no requests, only their
// fingerprints. Answers can contain secrets.
type Recorder struct {
	provider.Model

	mu  sync.Mutex
	out io.Writer
	err error
}

// Record returns a Recorder of m that writes to out.
func Record(m provider.Model, out io.Writer) *Recorder {
	r := &Recorder{Model: m, out: out}
	r.write(recordingHeader{Format: 1, Model: m.Info().Name})
	return r
}

// write writes a line of the recording. After the first error it does nothing.
func (r *Recorder) write(v any) {
	line, err := jsonrpc.Marshal(v)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil && err == nil {
		_, err = r.out.Write(append(line, '\n'))
	}
	if r.err == nil {
		r.err = err
	}
}

// Close returns the first error of writing; nil: the recording is complete.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Ask asks the recorded model and records the answer.
func (r *Recorder) Ask(ctx context.Context, req *llm.Request, on func(llm.Delta)) (*llm.Response, error) {
	res, err := r.Model.Ask(ctx, req, on)
	line := exchange{Request: fingerprint(req), Last: newTurn(req).String(), Code: toolerr.CodeOf(err)}
	if err != nil {
		line.Error = err.Error()
	}
	if raw, err := jsonrpc.Marshal(res); err == nil && res != nil {
		line.Response = (*responseText)(&raw)
	}
	r.write(line)
	return res, err
}

// isRecording reports whether a text is the recording of a model or of a session.
func isRecording(text []byte) bool {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	var head map[string]json.RawMessage
	if json.Unmarshal(line, &head) != nil {
		return false
	}
	return head["toolroom_model"] != nil || head["toolroom_session"] != nil
}

// maxRecording is the largest recording that is read, in bytes.
const maxRecording = 64 << 20

// openRecording reads a recording of a model or of a host's session, of at most
// maxRecording bytes.
func openRecording(name string) (recording, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(io.LimitReader(f, maxRecording+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxRecording:
		return nil, fmt.Errorf("%s: it is larger than %d MiB", name, maxRecording>>20)
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	var head recordingHeader
	if json.Unmarshal(line, &head) == nil && head.Format == 1 {
		return readModelRecording(name, text)
	}
	session, err := record.Read(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return newSessionCalls(session), nil
}

// modelRecording replays a recording of a Recorder. If a request was recorded several
// times, its answers are given in order, then the last one again.
type modelRecording struct {
	mu   sync.Mutex
	left map[string][]exchange
}

// readModelRecording reads the exchanges of a recorded model.
func readModelRecording(name string, text []byte) (*modelRecording, error) {
	p := &modelRecording{left: map[string][]exchange{}}
	for n, line := range bytes.Split(text, []byte("\n")) {
		if n == 0 || len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var one exchange
		if err := json.Unmarshal(line, &one); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", name, n+1, err)
		}
		if one.Response == nil && one.Code == "" {
			return nil, fmt.Errorf("%s: line %d: want a response or a code", name, n+1)
		}
		p.left[one.Request] = append(p.left[one.Request], one)
	}
	return p, nil
}

// answer returns the next recorded answer to a request, or the recorded error; the last
// one is repeated. It returns MODEL_ERROR for an unknown request.
func (p *modelRecording) answer(r *llm.Request) (*llm.Response, error) {
	key := fingerprint(r)
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.left[key]
	if len(list) == 0 {
		return nil, toolerr.New(toolerr.ModelError, "the recording has no answer to this request (%s): %s", key, newTurn(r))
	}
	if len(list) > 1 {
		p.left[key] = list[1:]
	}
	res, err := list[0].Response.decode()
	if one := list[0]; err == nil && one.Code != "" {
		err = toolerr.New(one.Code, "%s", one.Error)
	}
	return res, err
}

// responseText is the recorded JSON text of a response.
type responseText json.RawMessage

// decode returns a new response each time, which the caller may change.
func (w *responseText) decode() (*llm.Response, error) {
	if w == nil {
		return nil, nil //nolint:nilnil // none was written
	}
	res := &llm.Response{}
	return res, json.Unmarshal(*w, res)
}

// UnmarshalJSON keeps the JSON text.
func (w *responseText) UnmarshalJSON(data []byte) error {
	*w = bytes.Clone(data)
	return json.Unmarshal(data, &llm.Response{})
}

// MarshalJSON returns the JSON text.
func (w *responseText) MarshalJSON() ([]byte, error) { return *w, nil }

// sessionCalls replays the calls of a recorded session, one in each turn.
type sessionCalls []llm.ToolCall

// newSessionCalls returns the tool calls of a recorded session.
func newSessionCalls(f *record.Session) sessionCalls {
	var all sessionCalls
	for _, e := range f.Entries {
		m, bad := jsonrpc.Split(e.Message)
		if e.From != "client" || bad != nil || m.Method != "tools/call" {
			continue
		}
		var p struct {
			Name string          `json:"name"`
			Args json.RawMessage `json:"arguments"`
		}
		if json.Unmarshal(m.Params, &p) != nil || p.Name == "" {
			continue
		}
		if len(p.Args) == 0 || p.Args[0] != '{' {
			p.Args = json.RawMessage(`{}`)
		}
		all = append(all, llm.ToolCall{Name: p.Name, Args: p.Args})
	}
	return all
}

// answer returns the next call of the session, or the end of the answer after the last
// one.
func (c sessionCalls) answer(r *llm.Request) (*llm.Response, error) {
	turns := 0
	for _, m := range r.Messages {
		if m.Role == llm.AssistantRole {
			turns++
		}
	}
	if turns >= len(c) {
		return &llm.Response{
			StopReason: llm.StopEnd, Usage: &llm.Usage{},
			Parts: []llm.Part{{Type: llm.TextPart, Text: fmt.Sprintf("The recording ends here, after %d calls.", len(c))}},
		}, nil
	}
	next := c[turns]
	next.ID = provider.CallID(r.Messages, 0)
	return &llm.Response{StopReason: llm.StopCalls, Usage: &llm.Usage{}, Parts: []llm.Part{{Type: llm.CallPart, ToolCall: &next}}}, nil
}
