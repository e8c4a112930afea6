package agent

import (
	"context"
	"encoding/json"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// The kinds of steps of a journal, in order.
const (
	stepBegin    = "begin"  // Messages: the conversation before the run
	stepUserText = "said"   // Messages: added by the user
	stepTurn     = "turn"   // Turn, Model: before the request to the model
	stepAnswer   = "answer" // Turn, Model, Response
	stepCall     = "call"   // Turn, ID, Repeat: before the call
	stepResult   = "result" // Turn, ID, Result (none: the caller makes the call), Pending
	stepCut      = "cut"    // Messages: the shortened history
	stepEnd      = "end"    // Why, Error, Milliseconds
)

// step is an entry of a journal.
type step struct {
	Step     string          `json:"step"`
	Turn     int             `json:"turn,omitempty"`
	Model    string          `json:"model,omitempty"`
	Messages []llm.Message   `json:"messages,omitempty"`
	Response *llm.Response   `json:"response,omitempty"`
	ID       string          `json:"id,omitempty"`
	Repeat   bool            `json:"repeat,omitempty"`
	Result   *llm.ToolResult `json:"result,omitempty"`
	Pending  *call.Pending   `json:"pending,omitempty"`
	Why      Ending          `json:"why,omitempty"`
	Error    string          `json:"error,omitempty"`
	Summed   bool            `json:"summed,omitempty"`

	Milliseconds int64 `json:"ms,omitempty"` // duration of the run so far
}

// journalTimeout limits writing a step. A step is also written after the run has been
// cancelled.
const journalTimeout = 30 * time.Second

// writeStep stores a step in the journal, and waits at most journalTimeout. Without a
// journal it does nothing. The error has the code of the journal's.
func (r *run) writeStep(s step) error {
	if r.cfg.Journal == nil {
		return nil
	}
	s.Milliseconds = r.duration().Milliseconds()
	raw, err := jsonrpc.Marshal(s)
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), journalTimeout)
		defer cancel()
		r.emitting.Lock()
		defer r.emitting.Unlock()
		err = r.cfg.Journal.Append(ctx, raw)
	}
	if err != nil {
		return toolerr.New(toolerr.CodeOf(err), "step %s of the run cannot be recorded: %w", s.Step, err)
	}
	return nil
}

// endStep returns the last step.
func (r *run) endStep() step {
	s := step{Step: stepEnd, Turn: r.out.Turns, Why: r.out.Ending, Summed: r.out.HasSummary}
	if r.out.Err != nil {
		s.Error = r.out.Err.Error()
	}
	return s
}

// readSteps reads a journal. It returns NOT_FOUND without a journal or if it does not begin
// with a run, and INVALID_INPUT for a malformed step.
func readSteps(ctx context.Context, j Journal) ([]step, error) {
	if j == nil {
		return nil, toolerr.New(toolerr.NotFound, "the run has no journal")
	}
	raw, err := j.Read(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]step, len(raw))
	for i, one := range raw {
		if err := json.Unmarshal(one, &all[i]); err != nil {
			return nil, toolerr.New(toolerr.InvalidInput, "entry %d of the journal is not a step: %w", i+1, err)
		}
		if all[i].Step == stepAnswer && all[i].Response == nil {
			return nil, toolerr.New(toolerr.InvalidInput, "entry %d of the journal is an answer without content", i+1)
		}
	}
	if len(all) == 0 || all[0].Step != stepBegin {
		return nil, toolerr.New(toolerr.NotFound, "the journal does not begin with the conversation of a run")
	}
	return all, nil
}
