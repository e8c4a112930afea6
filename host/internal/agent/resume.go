package agent

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Resume continues the run of the journal cfg.Journal. messages are further messages;
// if the run ended for the caller's tools, they begin with the results.
//
// A run that was killed continues where it stopped, within its original bounds. A run
// that waited for a decision repeats the waiting calls; Outcome.Messages then begins
// with their results, which replace the last message that the run had added. A run
// that had ended by itself (goal, refusal and so on) continues only if there are
// messages; otherwise its outcome is returned. Any other run continues with new
// bounds.
func Resume(ctx context.Context, cfg Config, messages []llm.Message) *Outcome {
	past, err := readSteps(ctx, cfg.Journal)
	if err != nil {
		return newRun(cfg, messages).endUnjournaled(err)
	}
	r := newRun(cfg, past[0].Messages)
	again := &journalReader{run: r, begun: map[string]step{}, results: map[string]step{}}
	for _, s := range past {
		again.applyStep(s)
	}
	ended := again.end
	if ended != nil && len(messages) == 0 && ended.Why.endedByItself() {
		again.addStoredResults()
		return r.outcomeOf(*ended)
	}
	r.earlierDuration = time.Duration(past[len(past)-1].Milliseconds) * time.Millisecond
	waits := ended != nil && ended.Why == EndPending
	if ended != nil {
		if !waits {
			again.addStoredResults()
		}
		begin := step{Step: stepBegin}
		if !waits {
			begin.Messages, messages = messages, nil
		}
		again.beginNewRun(begin)
		if err := r.writeStep(begin); err != nil {
			return r.endUnjournaled(err)
		}
	}
	return r.loop(ctx, func(ctx context.Context) (Ending, error) {
		if why, err := again.finishCalls(ctx); why != "" {
			return why, err
		}
		if len(messages) > 0 {
			return r.addToHistory(messages...)
		}
		if last := len(r.history) - 1; last >= 0 && r.history[last].Role == llm.AssistantRole {
			return r.addUserText("Go on.")
		}
		return "", nil
	})
}

// endedByItself reports whether a run ended by itself, and cannot be continued.
func (e Ending) endedByItself() bool {
	return slices.Contains([]Ending{EndGoal, EndCallerTools, EndRefused, EndLength, EndEmpty}, e)
}

// outcomeOf returns the outcome of a run that has ended.
func (r *run) outcomeOf(s step) *Outcome {
	o := r.out
	o.Ending, o.HasSummary, o.Took = s.Why, s.Summed, time.Duration(s.Milliseconds)*time.Millisecond
	if s.Error != "" {
		o.Err = errors.New(s.Error)
	}
	o.Messages = slices.Clone(r.history[r.messagesBefore:])
	if s.Why == EndCallerTools && o.Response != nil {
		known := answeredCalls(o.Messages)
		o.CallerCalls = slices.DeleteFunc(o.Response.Calls(), func(c *llm.ToolCall) bool { return known[c.ID] })
	}
	return o
}

// answeredCalls returns the ids of the calls with results; true for each.
func answeredCalls(messages []llm.Message) map[string]bool {
	ids := map[string]bool{}
	for _, m := range messages {
		for _, p := range m.Parts {
			if p.ToolResult != nil {
				ids[p.ToolResult.ID] = true
			}
		}
	}
	return ids
}

// answerOpenCalls adds results to calls of the last answer that have none in the history or
// in following.
func (r *run) answerOpenCalls(following []llm.Message) {
	for i, m := range slices.Backward(r.history) {
		if m.Role != llm.AssistantRole {
			continue
		}
		known := answeredCalls(slices.Concat(r.history[i:], following))
		var missing []llm.Part
		for _, p := range m.Parts {
			if p.ToolCall != nil && !known[p.ToolCall.ID] {
				missing = append(missing, llm.Part{Type: llm.ResultPart, ToolResult: errorResult(p.ToolCall, errCut, 0)})
			}
		}
		if len(missing) > 0 {
			r.history = append(r.history, llm.Message{Role: llm.ToolRole, Parts: missing})
		}
		return
	}
}

// journalReader restores a run from its journal.
type journalReader struct {
	*run
	open    *llm.Response   // an answer whose calls may not have been made; nil: none
	begun   map[string]step // steps by the ids of its calls
	results map[string]step
	end     *step // nil: the run has not ended
}

// applyStep applies one step of the journal to the state of the run. Results that were
// stored outside the journal are added before the first step that can follow them.
func (a *journalReader) applyStep(s step) {
	if s.Step != stepCall && s.Step != stepResult && s.Step != stepEnd && (s.Step != stepBegin || a.end == nil || a.end.Why != EndPending) {
		a.addStoredResults()
	}
	switch s.Step {
	case stepBegin:
		if a.end != nil {
			a.beginNewRun(s)
		}
	case stepUserText:
		a.history = append(a.history, s.Messages...)
	case stepTurn:
		a.out.Turns++
		a.model, a.modelReplaced = a.modelNamed(s.Model)
	case stepAnswer:
		a.open, a.begun, a.results = s.Response, map[string]step{}, map[string]step{}
		a.addAnswer(s.Response)
		for _, c := range s.Response.Calls() {
			a.ids.taken[c.ID] = true
		}
	case stepCall:
		a.begun[s.ID] = s
		delete(a.results, s.ID)
	case stepResult:
		a.results[s.ID] = s
	case stepCut:
		a.allowRepeats(s.Messages)
		a.history = slices.Clone(s.Messages)
	case stepEnd:
		a.end = &s
	}
}

// modelNamed returns the larger model with this name and true, or else the first model and
// false.
func (r *run) modelNamed(name string) (m provider.Model, changed bool) {
	for _, m := range r.cfg.Larger {
		if m.Info().Name == name && name != r.cfg.Model.Info().Name {
			return m, true
		}
	}
	return r.cfg.Model, false
}

// addStoredResults adds the stored results of the calls of the last answer. It is
// called when no further call of it is made.
func (a *journalReader) addStoredResults() {
	if a.open == nil {
		return
	}
	m := llm.Message{Role: llm.ToolRole}
	theirs := a.end != nil && a.end.Why == EndCallerTools
	for _, c := range a.open.Calls() {
		if !a.isCallerTool(c.Name) && c.Malformed == "" {
			a.identicalCalls[callKey(c)]++
		}
		s, known := a.results[c.ID]
		_, begun := a.begun[c.ID]
		if begun {
			a.out.Calls[c.Name]++
		}
		switch {
		case known && s.Result != nil:
			m.Parts = append(m.Parts, llm.Part{Type: llm.ResultPart, ToolResult: s.Result})
		case theirs:
		case begun && !known:
			m.Parts = append(m.Parts, llm.Part{Type: llm.ResultPart, ToolResult: errorResult(c, errUnknown, 0)})
		default:
			m.Parts = append(m.Parts, llm.Part{Type: llm.ResultPart, ToolResult: errorResult(c, errCut, 0)})
		}
	}
	if len(m.Parts) > 0 {
		a.history = append(a.history, m)
	}
	a.open = nil
}

// beginNewRun starts a new run after the end of an earlier one, with its conversation and
// the new messages.
func (a *journalReader) beginNewRun(s step) {
	a.out, a.identicalCalls, a.earlierDuration, a.emptyAnswers = &Outcome{Calls: map[string]int{}}, map[string]int{}, 0, 0
	if a.open == nil {
		a.answerOpenCalls(s.Messages)
	}
	a.history = append(a.history, s.Messages...)
	a.messagesBefore = len(a.history)
	a.end = nil
}

// finishCalls makes the calls of the last answer that were not made, and adds all results
// to the history. It returns the reason to end the run; "": none.
func (a *journalReader) finishCalls(ctx context.Context) (Ending, error) {
	if a.open == nil {
		return "", nil
	}
	calls := a.open.Calls()
	a.out.Response = a.open
	if len(calls) == 0 {
		return a.handleAnswer(ctx, a.open, nil, nil)
	}
	tools, choice := []llm.Tool(nil), a.cfg.Request.Choice
	if a.cfg.Tools != nil {
		var err error
		if tools, choice, err = a.cfg.Tools.List(ctx, choice); err != nil {
			return EndDenied, err
		}
	}
	all := a.planCalls(calls, a.addCallerTools(tools), choice)
	for _, p := range all {
		s, known := a.results[p.call.ID]
		b, begun := a.begun[p.call.ID]
		switch {
		case known && s.Result == nil:
			p.isStored, p.byCaller, p.refuse = true, true, nil
		case known && s.Pending == nil:
			p.isStored, p.result, p.refuse, p.byCaller = true, s.Result, nil, false
			a.out.Calls[p.call.Name]++
		case begun && !known:
			p.begun, p.repeat = true, p.repeat || b.Repeat
		}
	}
	a.open = nil
	return a.makeCalls(ctx, all)
}

// errUnknown is the result of a call that may have been made.
var errUnknown = toolerr.New(toolerr.ExecutionError, "the outcome of this call is unknown: the run was killed during it, so it may have taken effect; check before you repeat it")
