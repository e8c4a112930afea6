package agent

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/contextbudget"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// keptResults is the number of latest results that are shortened last.
const keptResults = 4

// Assumptions for a model without known limits: a window that models of all vendors
// have, and the largest number of tools that OpenAI's API and compatible ones accept.
// A request that exceeds the window is sent nevertheless: the model returns an error
// if it is too long.
const (
	assumedWindow   = 128_000
	assumedMaxTools = 128
)

// fitRequest returns the request of a turn, made to fit the model; see package
// contextbudget. Shortened parts of the history stay shortened. It may also leave out tools
// or switch to a model with a larger window for the rest of the run; each is announced by
// an event. It returns an error if the request cannot be made to fit.
func (r *run) fitRequest(tools []llm.Tool, choice *llm.Choice) (*llm.Request, error) {
	req := r.cfg.Request
	req.Choice, req.Tools = choice, tools
	if len(tools) == 0 {
		req.Choice, req.Parallel = nil, nil
	}
	if r.modelReplaced {
		req.Model = ""
	}
	req.Messages = r.conversation()
	info := r.model.Info()
	said, keep := info.Window > 0, r.keptResults
	if !said && info.Vendor == "" { // an unknown model, or none: it accepts what it is sent
		return &req, nil
	}
	if !said {
		info.Window = assumedWindow
	}
	plan, err := r.fitWithFewerResults(info, req, tools)
	if err != nil && !said {
		r.keptResults, info.Window = keep, math.MaxInt32
		plan, err = r.fitWithFewerResults(info, req, tools)
	}
	if err != nil {
		return nil, err
	}
	system := len(req.Messages) - len(r.history)
	if plan.Compacted > 0 {
		if err := r.replaceHistory(plan.Messages[system:], fmt.Sprintf("%d old tool results were shortened", plan.Compacted)); err != nil {
			return nil, err
		}
	}
	if plan.Model.Name != info.Name {
		r.switchModel(plan.Model.Name)
		req.Model = ""
	}
	if len(plan.LeftOut) > r.toolsLeftOut {
		r.emit(Event{Type: CompactedEvent, Turn: r.out.Turns, Text: fmt.Sprintf("%d tools were omitted: %.400v", len(plan.LeftOut), plan.LeftOut)})
	}
	r.toolsLeftOut = len(plan.LeftOut)
	req.Messages, req.Tools = r.conversation(), plan.Tools
	return &req, nil
}

// conversation returns the messages for the model.
func (r *run) conversation() []llm.Message {
	if r.cfg.System == "" {
		return slices.Clone(r.history)
	}
	system := llm.Message{Role: llm.SystemRole, Parts: []llm.Part{{Type: llm.TextPart, Text: r.cfg.System}}}
	return append([]llm.Message{system}, r.history...)
}

// fitWithFewerResults calls Fit, and repeats it with ever fewer results that are not
// shortened until the request fits. It returns Fit's error if it does not fit even then.
func (r *run) fitWithFewerResults(info provider.Info, req llm.Request, tools []llm.Tool) (contextbudget.Plan, error) {
	cfg := contextbudget.Config{Counter: r.cfg.Counter}
	said := r.model.Info().Window > 0
	if !said || info.Vendor == llm.OpenAI {
		cfg.MaxTools = assumedMaxTools
	}
	for _, m := range r.cfg.Larger {
		if i := m.Info(); said && i.Window > 0 && i.Name != "" {
			cfg.Models = append(cfg.Models, contextbudget.Model{Name: i.Name, Window: i.Window, MaxOutput: i.MaxOutput})
		}
	}
	ask := contextbudget.Input{Request: req}
	for _, t := range tools {
		ask.Tools = append(ask.Tools, contextbudget.Tool{Tool: t, Pinned: r.isCallerTool(t.Name)})
	}
	model := contextbudget.Model{Name: info.Name, Window: info.Window, MaxOutput: info.MaxOutput}
	compacted := 0
	for {
		cfg.KeepResults = max(1, r.keptResults)
		plan, err := contextbudget.Fit(cfg, model, ask)
		plan.Compacted += compacted
		if err == nil || r.keptResults == 0 {
			return plan, err
		}
		r.keptResults--
		messages, n := contextbudget.Compact(cfg.Counter, ask.Request.Messages, r.keptResults)
		ask.Request.Messages = messages
		compacted += n
	}
}

// replaceHistory replaces the history by a shorter one, in the journal too, and reports
// that with text. It returns an error if the journal cannot be written.
func (r *run) replaceHistory(messages []llm.Message, text string) error {
	r.allowRepeats(messages)
	r.history = slices.Clone(messages)
	if err := r.writeStep(step{Step: stepCut, Turn: r.out.Turns, Messages: r.history}); err != nil {
		return err
	}
	r.emit(Event{Type: CompactedEvent, Turn: r.out.Turns, Text: text})
	return nil
}

// allowRepeats permits repeated calls whose results are shortened in messages and not
// yet in the history, because a message tells the model to repeat them if it needs the
// results.
func (r *run) allowRepeats(messages []llm.Message) {
	whole := map[string]bool{}
	for _, m := range r.history {
		for _, p := range m.Parts {
			if p.ToolResult != nil && !contextbudget.IsCompacted(p.ToolResult) {
				whole[p.ToolResult.ID] = true
			}
		}
	}
	cut := map[string]bool{}
	for _, m := range messages {
		for _, p := range m.Parts {
			if p.ToolResult != nil && contextbudget.IsCompacted(p.ToolResult) && whole[p.ToolResult.ID] {
				cut[p.ToolResult.ID] = true
			}
		}
	}
	most := r.cfg.Bounds.Identical
	for _, m := range messages {
		for _, p := range m.Parts {
			if p.ToolCall != nil && cut[p.ToolCall.ID] {
				key := callKey(p.ToolCall)
				r.identicalCalls[key] = min(r.identicalCalls[key], max(most-1, 0))
			}
		}
	}
}

// switchModel replaces the model by the larger one with this name, for the rest of the run,
// and reports that as an event. Without such a model it does nothing.
func (r *run) switchModel(name string) {
	for _, m := range r.cfg.Larger {
		if m.Info().Name == name {
			r.model, r.modelReplaced = m, true
			r.emit(Event{Type: CompactedEvent, Turn: r.out.Turns, Model: name, Text: "the conversation no longer fits the model; " + name + " takes over"})
			return
		}
	}
}

// shrinkContext makes space after the model rejected a request as too long: it shortens
// results, then switches to a larger model, and lets the model continue. answer is the
// model's partial answer, or nil. It returns EndContext and LIMIT_REACHED if no more space
// can be made, and "" otherwise.
func (r *run) shrinkContext(answer *llm.Response) (Ending, error) {
	for r.keptResults > 0 {
		r.keptResults--
		messages, n := contextbudget.Compact(r.cfg.Counter, r.history, r.keptResults)
		if n == 0 {
			continue
		}
		if err := r.replaceHistory(messages, fmt.Sprintf("%d tool results were shortened", n)); err != nil {
			return EndJournalError, err
		}
		return r.continueAnswer(answer)
	}
	larger := slices.Clone(r.cfg.Larger)
	slices.SortStableFunc(larger, func(a, b provider.Model) int { return cmp.Compare(a.Info().Window, b.Info().Window) })
	for _, m := range larger {
		if m.Info().Window > r.model.Info().Window {
			r.switchModel(m.Info().Name)
			return r.continueAnswer(answer)
		}
	}
	return EndContext, toolerr.New(toolerr.LimitReached, "the conversation does not fit into the context of %s", r.model.Info().Name)
}

// continueAnswer asks the model to continue after its partial answer, if there is one. It
// returns "" unless the journal cannot be written.
func (r *run) continueAnswer(answer *llm.Response) (Ending, error) {
	if answer == nil {
		return "", nil
	}
	return r.addUserText("Your answer was cut because the context was full. Old content was removed: continue.")
}
