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

// heading is the first line of a recording of a model.
type heading struct {
	Format int    `json:"toolroom_model"`
	Model  string `json:"model,omitempty"`
}

// asked is every further line: what a request came to.
type asked struct {
	Request  string       `json:"request"` // see fingerprint
	Last     string       `json:"last,omitempty"`
	Response *written     `json:"response,omitempty"`
	Code     toolerr.Code `json:"code,omitempty"`
	Error    string       `json:"error,omitempty"`
}

// fingerprint tells requests apart: by the conversation and the names of the tools.
func fingerprint(r *llm.Request) string {
	var names []string
	for _, t := range r.Tools {
		names = append(names, t.Name)
	}
	raw, err := json.Marshal([]any{llm.Canonical(r.Messages), names, r.Choice})
	if err != nil {
		return ""
	}
	if canonical, ok := jsonrpc.Canonical(nil, raw); ok {
		raw = canonical
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:16])
}

// A Recorder is a model whose answers are written down. Questions are not: each
// answer is kept with the fingerprint of its request. Answers hold what the model
// said, which may be anything.
type Recorder struct {
	provider.Model

	mu  sync.Mutex
	out io.Writer
	err error
}

// Record begins a recording.
func Record(m provider.Model, out io.Writer) *Recorder {
	r := &Recorder{Model: m, out: out}
	r.write(heading{Format: 1, Model: m.Info().Name})
	return r
}

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

// Close returns why the recording is not whole; nil: it is.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Ask asks the model.
func (r *Recorder) Ask(ctx context.Context, req *llm.Request, on func(llm.Delta)) (*llm.Response, error) {
	res, err := r.Model.Ask(ctx, req, on)
	line := asked{Request: fingerprint(req), Last: sceneOf(req).String(), Code: toolerr.CodeOf(err)}
	if err != nil {
		line.Error = err.Error()
	}
	if raw, err := jsonrpc.Marshal(res); err == nil && res != nil {
		line.Response = (*written)(&raw)
	}
	r.write(line)
	return res, err
}

// recorded reports whether a text is a recording, of either kind.
func recorded(text []byte) bool {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	var head map[string]json.RawMessage
	if json.Unmarshal(line, &head) != nil {
		return false
	}
	return head["toolroom_model"] != nil || head["toolroom_session"] != nil
}

// maxRecording bounds what is read.
const maxRecording = 64 << 20

func openRecording(name string) (player, error) {
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
	var head heading
	if json.Unmarshal(line, &head) == nil && head.Format == 1 {
		return readAnswers(name, text)
	}
	session, err := record.Read(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return callsOf(session), nil
}

// answers replays the output of a Recorder: for each request its answer, several ones
// in order, then the last one again.
type answers struct {
	mu   sync.Mutex
	left map[string][]asked
}

func readAnswers(name string, text []byte) (*answers, error) {
	p := &answers{left: map[string][]asked{}}
	for n, line := range bytes.Split(text, []byte("\n")) {
		if n == 0 || len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var one asked
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

func (p *answers) answer(r *llm.Request) (*llm.Response, error) {
	key := fingerprint(r)
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.left[key]
	if len(list) == 0 {
		return nil, toolerr.New(toolerr.ModelError, "the recording has no answer to this request (%s): %s", key, sceneOf(r))
	}
	if len(list) > 1 {
		p.left[key] = list[1:]
	}
	res, err := list[0].Response.copied()
	if one := list[0]; err == nil && one.Code != "" {
		err = toolerr.New(one.Code, "%s", one.Error)
	}
	return res, err
}

// written is a response as it was written down.
type written json.RawMessage

// copied returns the response, which is the caller's.
func (w *written) copied() (*llm.Response, error) {
	if w == nil {
		return nil, nil //nolint:nilnil // none was written
	}
	res := &llm.Response{}
	return res, json.Unmarshal(*w, res)
}

// UnmarshalJSON keeps the text.
func (w *written) UnmarshalJSON(data []byte) error {
	*w = bytes.Clone(data)
	return json.Unmarshal(data, &llm.Response{})
}

// MarshalJSON is the text.
func (w *written) MarshalJSON() ([]byte, error) { return *w, nil }

// calls plays the calls of a recorded session, one a turn.
type calls []llm.ToolCall

func callsOf(f *record.File) calls {
	var all calls
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

func (c calls) answer(r *llm.Request) (*llm.Response, error) {
	turns := 0
	for _, m := range r.Messages {
		if m.Role == llm.Assistant {
			turns++
		}
	}
	if turns >= len(c) {
		return &llm.Response{
			Stop: llm.StopEnd, Usage: &llm.Usage{},
			Parts: []llm.Part{{Type: llm.Text, Text: fmt.Sprintf("The recording ends here, after %d calls.", len(c))}},
		}, nil
	}
	next := c[turns]
	next.ID = provider.CallID(r.Messages, 0)
	return &llm.Response{Stop: llm.StopCalls, Usage: &llm.Usage{}, Parts: []llm.Part{{Type: llm.Call, ToolCall: &next}}}, nil
}
