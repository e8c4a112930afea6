package chat

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/agent"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/chat/screen"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A jsonLine is a line of JSON output: an event of the agent loop with its type, a note
// of the chat, or print, the result of a command. It has only the members of its type.
type jsonLine struct {
	Type  string `json:"type"`
	Turn  int    `json:"turn,omitempty"`
	Model string `json:"model,omitempty"`

	Text string `json:"text,omitempty"` // of delta, answer, tool.progress, compacted, note, print
	Part string `json:"part,omitempty"` // of delta: text, thinking or refusal

	ID        string          `json:"id,omitempty"` // of the call
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Result    string          `json:"result,omitempty"`
	IsError   bool            `json:"isError,omitempty"`
	Millis    *int64          `json:"duration_ms,omitempty"`

	Code    toolerr.Code    `json:"code,omitempty"` // of error, ended
	Error   string          `json:"error,omitempty"`
	Why     agent.Ending    `json:"why,omitempty"` // of ended
	Usage   *llm.Usage      `json:"usage,omitempty"`
	Cost    float64         `json:"cost,omitempty"`
	Calls   map[string]int  `json:"calls,omitempty"`
	Pending []*call.Pending `json:"pending,omitempty"`
	Session string          `json:"session,omitempty"`
}

// jsonView shows the events of a chat as JSON lines.
type jsonView struct {
	mu      sync.Mutex
	out     io.Writer
	session func() string
}

// newJSONView returns a view that writes to out. session returns the id of the current
// session.
func newJSONView(out io.Writer, session func() string) *jsonView {
	return &jsonView{out: out, session: session}
}

// write writes one line, or an error line if it cannot be encoded.
func (v *jsonView) write(r jsonLine) {
	line, err := jsonrpc.Marshal(r)
	if err != nil {
		line, _ = jsonrpc.Marshal(jsonLine{Type: "error", Error: err.Error()}) //nolint:errcheck // it encodes
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.out.Write(append(screen.EscapeJSON(line), '\n')) //nolint:errcheck // a pipe that is gone ends the program
}

// showEvent writes a line for an event. It leaves out pieces of calls, pieces without text,
// and the end of a turn, which ended writes.
func (v *jsonView) showEvent(e agent.Event, _ provider.Info) {
	r := jsonLine{Type: string(e.Type), Turn: e.Turn, Model: e.Model, ID: e.ID, Text: e.Text}
	if c := e.Call; c != nil {
		r.Name = c.Name
		if r.Arguments = c.Args; e.Type != agent.CallEvent {
			r.Arguments = nil
		}
	}
	switch e.Type {
	case agent.DeltaEvent:
		if e.Delta.Text == "" || e.Delta.Type == llm.CallPart {
			return
		}
		r.Text, r.Part = e.Delta.Text, string(e.Delta.Type)
	case agent.AnswerEvent:
		if e.Response != nil {
			r.Text = messageText(e.Response.Message())
			r.Usage = e.Response.Usage
		}
	case agent.ResultEvent:
		ms := e.Took.Milliseconds()
		r.Millis = &ms
		if e.Result != nil {
			r.Result, r.IsError = resultText(e.Result), e.Result.IsError
		}
	case agent.ErrorEvent:
		if e.Err != nil {
			r.Code, r.Error = toolerr.CodeOf(e.Err), e.Err.Error()
		}
	case agent.EndEvent: // the method ended writes it
		return
	}
	v.write(r)
}

// showOutcome writes the outcome of a turn, with its cost, as a line of JSON.
func (v *jsonView) showOutcome(out *agent.Outcome, cost float64) {
	ms := out.Took.Milliseconds()
	r := jsonLine{Type: string(agent.EndEvent), Why: out.Ending, Turn: out.Turns, Usage: &out.Usage, Cost: cost, Calls: out.Calls, Pending: out.Pending, Millis: &ms, Session: v.session()}
	if out.Response != nil {
		r.Text = messageText(out.Response.Message())
	}
	if out.Err != nil {
		r.Code, r.Error = toolerr.CodeOf(out.Err), out.Err.Error()
	}
	v.write(r)
}

// showNote writes a note of the chat.
func (v *jsonView) showNote(format string, args ...any) {
	v.write(jsonLine{Type: "note", Text: fmt.Sprintf(format, args...)})
}

// print writes the result of a command.
func (v *jsonView) print(text string) { v.write(jsonLine{Type: "print", Text: text}) }

func (v *jsonView) tick(time.Time) {}
func (v *jsonView) idle()          {}
