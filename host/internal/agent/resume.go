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
	past, err := steps(ctx, cfg.Journal)
	if err != nil {
		return newRun(cfg, messages).unkept(err)
	}
	r := newRun(cfg, past[0].Messages)
	again := &journalReader{run: r, begun: map[string]step{}, results: map[string]step{}}
	for _, s := range past {
		again.read(s)
	}
	ended := again.end
	if ended != nil && len(messages) == 0 && ended.Why.endedByItself() {
		again.settle()
		return r.ended(*ended)
	}
	r.earlier = time.Duration(past[len(past)-1].Milliseconds) * time.Millisecond
	waits := ended != nil && ended.Why == Waiting
	if ended != nil {
		if !waits {
			again.settle()
		}
		begin := step{Step: stepBegin}
		if !waits {
			begin.Messages, messages = messages, nil
		}
		again.begin(begin)
		if err := r.writeStep(begin); err != nil {
			return r.unkept(err)
		}
	}
	return r.loop(ctx, func(ctx context.Context) (Ending, error) {
		if why, err := again.finish(ctx); why != "" {
			return why, err
		}
		if len(messages) > 0 {
			return r.add(messages...)
		}
		if last := len(r.history) - 1; last >= 0 && r.history[last].Role == llm.AssistantRole {
			return r.emitText("Go on.")
		}
		return "", nil
	})
}

// endedByItself reports whether a run ended by itself, so that there is nothing to continue.
func (e Ending) endedByItself() bool {
	return slices.Contains([]Ending{Goal, Theirs, Refused, Length, Empty}, e)
}

// ended is the outcome of a run that has ended.
func (r *run) ended(s step) *Outcome {
	o := r.out
	o.Why, o.Summed, o.Took = s.Why, s.Summed, time.Duration(s.Milliseconds)*time.Millisecond
	if s.Error != "" {
		o.Err = errors.New(s.Error)
	}
	o.Messages = slices.Clone(r.history[r.given:])
	if s.Why == Theirs && o.Response != nil {
		known := answers(o.Messages)
		o.Theirs = slices.DeleteFunc(o.Response.Calls(), func(c *llm.ToolCall) bool { return known[c.ID] })
	}
	return o
}

// answers are the ids of the calls that have results.
func answers(messages []llm.Message) map[string]bool {
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
		known := answers(slices.Concat(r.history[i:], following))
		var missing []llm.Part
		for _, p := range m.Parts {
			if p.ToolCall != nil && !known[p.ToolCall.ID] {
				missing = append(missing, llm.Part{Type: llm.ResultPart, ToolResult: told(p.ToolCall, errCut, 0)})
			}
		}
		if len(missing) > 0 {
			r.history = append(r.history, llm.Message{Role: llm.ToolRole, Parts: missing})
		}
		return
	}
}

// journalReader is a run as far as its journal has been read.
type journalReader struct {
	*run
	open    *llm.Response   // whose calls may not have been made; nil: none
	begun   map[string]step // steps by the ids of open's calls
	results map[string]step
	end     *step // nil: it has not ended
}

func (a *journalReader) read(s step) {
	if s.Step != stepCall && s.Step != stepResult && s.Step != stepEnd && (s.Step != stepBegin || a.end == nil || a.end.Why != Waiting) {
		a.settle()
	}
	switch s.Step {
	case stepBegin:
		if a.end != nil {
			a.begin(s)
		}
	case stepSaid:
		a.history = append(a.history, s.Messages...)
	case stepTurn:
		a.out.Turns++
		a.model, a.changed = a.modelNamed(s.Model)
	case stepAnswer:
		a.open, a.begun, a.results = s.Response, map[string]step{}, map[string]step{}
		a.admitAnswer(s.Response)
		for _, c := range s.Response.Calls() {
			a.ids.taken[c.ID] = true
		}
	case stepCall:
		a.begun[s.ID] = s
		delete(a.results, s.ID)
	case stepResult:
		a.results[s.ID] = s
	case stepCut:
		a.permitRepeats(s.Messages)
		a.history = slices.Clone(s.Messages)
	case stepEnd:
		a.end = &s
	}
}

// modelNamed returns the model with a name if it had taken over, else the first one.
func (r *run) modelNamed(name string) (m provider.Model, changed bool) {
	for _, m := range r.cfg.Larger {
		if m.Info().Name == name && name != r.cfg.Model.Info().Name {
			return m, true
		}
	}
	return r.cfg.Model, false
}

// settle takes in the results of the calls of the last answer. It is called once it
// is known that none of them is made any more.
func (a *journalReader) settle() {
	if a.open == nil {
		return
	}
	m := llm.Message{Role: llm.ToolRole}
	theirs := a.end != nil && a.end.Why == Theirs
	for _, c := range a.open.Calls() {
		if !a.isCallerTool(c.Name) && c.Malformed == "" {
			a.same[callKey(c)]++
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
			m.Parts = append(m.Parts, llm.Part{Type: llm.ResultPart, ToolResult: told(c, errUnknown, 0)})
		default:
			m.Parts = append(m.Parts, llm.Part{Type: llm.ResultPart, ToolResult: told(c, errCut, 0)})
		}
	}
	if len(m.Parts) > 0 {
		a.history = append(a.history, m)
	}
	a.open = nil
}

// begin starts a new run after the end of an earlier one, with its conversation and
// the new messages.
func (a *journalReader) begin(s step) {
	a.out, a.same, a.earlier, a.empty = &Outcome{Calls: map[string]int{}}, map[string]int{}, 0, 0
	if a.open == nil {
		a.answerOpenCalls(s.Messages)
	}
	a.history = append(a.history, s.Messages...)
	a.given = len(a.history)
	a.end = nil
}

// finish makes the calls of the last answer that were not made.
func (a *journalReader) finish(ctx context.Context) (Ending, error) {
	if a.open == nil {
		return "", nil
	}
	calls := a.open.Calls()
	a.out.Response = a.open
	if len(calls) == 0 {
		return a.act(ctx, a.open, nil, nil)
	}
	tools, choice := []llm.Tool(nil), a.cfg.Request.Choice
	if a.cfg.Tools != nil {
		var err error
		if tools, choice, err = a.cfg.Tools.List(ctx, choice); err != nil {
			return Denied, err
		}
	}
	all := a.planCalls(calls, a.addCallerTools(tools), choice)
	for _, p := range all {
		s, known := a.results[p.call.ID]
		b, begun := a.begun[p.call.ID]
		switch {
		case known && s.Result == nil:
			p.known, p.theirs, p.refuse = true, true, nil
		case known && s.Pending == nil:
			p.known, p.result, p.refuse, p.theirs = true, s.Result, nil, false
			a.out.Calls[p.call.Name]++
		case begun && !known:
			p.begun, p.repeat = true, p.repeat || b.Repeat
		}
	}
	a.open = nil
	return a.makeCalls(ctx, all)
}

// errUnknown is the result of a call that may or may not have been made.
var errUnknown = toolerr.New(toolerr.ExecutionError, "the outcome of this call is unknown: the run was killed during it, so it may have taken effect; check before you repeat it")
