package scripted

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/toolroom-mcp/toolroom/host/internal/diagnose/record"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// isRecording reports whether a text is a recorded session.
func isRecording(text []byte) bool {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	var head map[string]json.RawMessage
	return json.Unmarshal(line, &head) == nil && head["toolroom_session"] != nil
}

// maxRecording is the largest recording that is read, in bytes.
const maxRecording = 64 << 20

// readRecording reads the calls of a recorded session, of at most maxRecording bytes. It
// returns an error for a longer or malformed file.
func readRecording(name string) (sessionCalls, error) {
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
	session, err := record.Read(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return newSessionCalls(session), nil
}

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
func (c sessionCalls) answer(r *llm.Request) *llm.Response {
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
		}
	}
	next := c[turns]
	next.ID = provider.CallID(r.Messages, 0)
	return &llm.Response{StopReason: llm.StopCalls, Usage: &llm.Usage{}, Parts: []llm.Part{{Type: llm.CallPart, ToolCall: &next}}}
}
