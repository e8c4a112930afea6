package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/contextbudget"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// requestTurn requests a turn from the model and adds its answer to the history. If it
// returns neither an answer nor an ending, the caller repeats the request. The error
// explains the ending.
func (r *run) requestTurn(ctx context.Context, tools []llm.Tool, choice *llm.Choice) (*llm.Response, Ending, error) {
	req, err := r.fitRequest(tools, choice)
	if err != nil {
		return nil, EndContext, err
	}
	r.out.Turns++
	if err := r.writeStep(step{Step: stepTurn, Turn: r.out.Turns, Model: r.model.Info().Name}); err != nil {
		return nil, EndJournalError, err
	}
	r.emit(Event{Type: TurnEvent, Turn: r.out.Turns, Model: r.model.Info().Name})
	answer, err := r.askModel(ctx, req)
	if err == nil {
		why, err := r.recordAnswer(answer)
		return answer, why, err
	}
	if ctx.Err() != nil {
		return nil, interrupted, r.addPartialAnswer(answer)
	}
	r.addUsage(answer)
	r.emit(Event{Type: ErrorEvent, Turn: r.out.Turns, Err: err})
	switch code := toolerr.CodeOf(err); {
	case code == toolerr.LimitReached:
		why, fault := r.shrinkContext(nil)
		if why == EndContext {
			fault = err
		}
		return nil, why, fault
	case r.retries < r.cfg.Retries && r.receivedPart && (code == toolerr.TransportError || code == toolerr.ModelError || code == toolerr.Timeout):
		r.retries++
		return nil, "", nil
	}
	return nil, EndModelError, err
}

// recordAnswer adds an answer to the journal and the history, and reports it as an event.
// It returns "" and nil, or EndJournalError and the error.
func (r *run) recordAnswer(answer *llm.Response) (Ending, error) {
	if err := r.writeStep(step{Step: stepAnswer, Turn: r.out.Turns, Model: r.model.Info().Name, Response: answer}); err != nil {
		return EndJournalError, err
	}
	r.addAnswer(answer)
	r.emit(Event{Type: AnswerEvent, Turn: r.out.Turns, Response: answer})
	return "", nil
}

// addAnswer adds an answer to the history and its usage to that of the run.
func (r *run) addAnswer(answer *llm.Response) {
	r.out.Response = answer
	r.addUsage(answer)
	if len(answer.Parts) > 0 {
		r.history = append(r.history, answer.Message())
	}
}

// addUsage adds the usage of an answer. An answer that is dropped counts, too; nil does
// not.
func (r *run) addUsage(answer *llm.Response) {
	if answer == nil || answer.Usage == nil {
		return
	}
	u, all := answer.Usage, &r.out.Usage
	all.Input, all.Output, all.Reasoning = all.Input+u.Input, all.Output+u.Output, all.Reasoning+u.Reasoning
	all.CacheRead, all.CacheWrite = all.CacheRead+u.CacheRead, all.CacheWrite+u.CacheWrite
	r.out.Cost += r.model.Info().Price.Cost(*u)
}

// addPartialAnswer keeps the texts of an interrupted answer, if it has any. It returns the
// error of the journal.
func (r *run) addPartialAnswer(answer *llm.Response) error {
	if answer == nil {
		return nil
	}
	answer.Parts = slices.DeleteFunc(answer.Parts, func(p llm.Part) bool { return p.Type != llm.TextPart })
	if len(answer.Parts) == 0 {
		r.addUsage(answer)
		return nil
	}
	_, err := r.recordAnswer(answer)
	return err
}

// askModel requests an answer, forwards its deltas, and returns it in a form that the
// history can contain. It always has a usage, estimated if the model reports none. With
// an error, it returns the part of the answer that arrived, or nil. A panic of the
// provider becomes an error INTERNAL.
func (r *run) askModel(ctx context.Context, req *llm.Request) (answer *llm.Response, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			answer, err = nil, toolerr.New(toolerr.Internal, "the model's provider failed: %v\n%s", fault, debug.Stack())
		}
	}()
	own := map[int]string{}
	r.receivedPart = false
	answer, err = r.model.Ask(ctx, req, func(d llm.Delta) {
		r.receivedPart = true
		if d.Type == llm.CallPart && d.ID != "" {
			if own[d.Index] == "" {
				own[d.Index] = r.ids.assign(d.ID)
			}
			d.ID = own[d.Index]
		}
		r.emit(Event{Type: DeltaEvent, Turn: r.out.Turns, Delta: d})
	})
	if answer == nil {
		if err == nil {
			err = toolerr.New(toolerr.ModelError, "the model %s returned an empty answer", r.model.Info().Name)
		}
		return nil, err
	}
	r.receivedPart = r.receivedPart || len(answer.Parts) > 0
	kept := *answer
	kept.Parts = r.cleanParts(answer.Parts, own, answer.StopReason != llm.StopRefusal)
	kept.Usage = plausibleUsage(kept.Usage, r.estimate(req, &kept))
	return &kept, err
}

// A reported usage is accepted if it is at least a part of the estimate, or if the
// estimate is too small to matter.
const (
	minReportedPart = 4
	smallEstimate   = 2000 // tokens
)

// plausibleUsage returns the usage that a model reports, or the estimate if it reports none
// or an impossible one: otherwise the bounds of tokens and cost would not work for
// models that count nothing.
func plausibleUsage(reported, estimate *llm.Usage) *llm.Usage {
	if reported == nil {
		return clampUsage(*estimate)
	}
	u := clampUsage(*reported)
	for _, n := range []struct {
		reported *int
		estimate int
	}{{&u.Input, estimate.Input}, {&u.Output, estimate.Output}} {
		if *n.reported == 0 || *n.reported < n.estimate/minReportedPart-smallEstimate {
			*n.reported = n.estimate
		}
	}
	return u
}

// maxPlausibleTokens is more than the context of any model.
const maxPlausibleTokens = 1 << 30

// clampUsage returns a copy of a usage, limited to possible values, so that the limits of a
// run always work.
func clampUsage(u llm.Usage) *llm.Usage {
	for _, n := range []*int{&u.Input, &u.Output, &u.Reasoning, &u.CacheRead, &u.CacheWrite} {
		*n = min(max(*n, 0), maxPlausibleTokens)
	}
	u.CacheRead = min(u.CacheRead, u.Input) // they are a part of Input
	u.CacheWrite = min(u.CacheWrite, u.Input-u.CacheRead)
	return &u
}

// cleanParts returns the parts of an answer that have content, with ids that are unique in
// the conversation and arguments that can be parsed. It returns nil if no part but thinking is
// left, and drops thinking at the end. own maps the index of a call in parts to the id that
// events have used for it. If calls is false, all calls are dropped.
func (r *run) cleanParts(parts []llm.Part, own map[int]string, calls bool) []llm.Part {
	var kept []llm.Part
	says := false
	for i, p := range parts {
		p.Text = strings.ToValidUTF8(p.Text, "\uFFFD")
		switch p.Type {
		case llm.TextPart, llm.RefusalPart:
			if strings.TrimSpace(p.Text) == "" {
				if p.Signature == nil {
					continue
				}
				p.Text = "" // Anthropic refuses texts that are only white space
			}
			says = says || p.Text != ""
		case llm.CallPart:
			if p.ToolCall == nil || !calls {
				continue
			}
			c := normalizeCall(*p.ToolCall)
			if c.ID = own[i]; c.ID == "" {
				c.ID = r.ids.assign(p.ToolCall.ID)
			}
			p.ToolCall, says = &c, true
		case llm.ImagePart, llm.OpaquePart:
			if p.Media == nil && p.Raw == nil {
				continue
			}
			says = true
		case llm.ThinkingPart, llm.RedactedPart:
		default: // types that a model does not return
			continue
		}
		kept = append(kept, p)
	}
	if !says {
		return nil
	}
	// No vendor accepts thinking at the end of an answer in a later request.
	end := len(kept)
	for end > 0 && (isThought(kept[end-1]) || kept[end-1].Text == "" && (kept[end-1].Type == llm.TextPart || kept[end-1].Type == llm.RefusalPart)) {
		end--
	}
	return append(kept[:end:end], slices.DeleteFunc(kept[end:], isThought)...)
}

// isThought reports whether a part is the model's thinking, readable or encrypted.
func isThought(p llm.Part) bool {
	return p.Type == llm.ThinkingPart || p.Type == llm.RedactedPart
}

// unnamedCall replaces a missing tool name, because vendors require one.
const unnamedCall = "unnamed"

// normalizeCall returns a call with a name, whose arguments are an object or marked as
// malformed.
func normalizeCall(c llm.ToolCall) llm.ToolCall {
	c.Name = cmp.Or(strings.ToValidUTF8(c.Name, "\uFFFD"), unnamedCall)
	if c.Malformed != "" {
		c.Args, c.Malformed = nil, strings.ToValidUTF8(c.Malformed, "\uFFFD")
		return c
	}
	if len(c.Args) == 0 {
		c.Args = json.RawMessage(`{}`)
		return c
	}
	if v, err := tree.Parse(c.Args); err != nil || !v.Is(tree.Object) {
		c.Args, c.Malformed = nil, strings.ToValidUTF8(string(c.Args), "\uFFFD")
	}
	return c
}

// estimate returns an estimate of the usage of a request and its answer, by the run's token
// counter.
func (r *run) estimate(req *llm.Request, answer *llm.Response) *llm.Usage {
	u := &llm.Usage{
		Input:  contextbudget.MessageTokens(r.cfg.Counter, req.Messages),
		Output: contextbudget.MessageTokens(r.cfg.Counter, []llm.Message{answer.Message()}),
	}
	for _, t := range req.Tools {
		u.Input += r.cfg.Counter.Count(t.Name) + r.cfg.Counter.Count(t.Description) + r.cfg.Counter.Count(string(t.Input))
	}
	return u
}

// summaryPrompt is the message to the model when a limit is reached.
const summaryPrompt = `This is the last turn: the run has reached its limit (%s). Tools can no longer be called. Summarize now: your findings with their locations, your changes, and what is unfinished or uncertain.`

// addSummary requests a last answer without tool calls, within Bounds.Grace, and adds its
// texts to the history. The error says why there is no summary.
func (r *run) addSummary(ctx context.Context, why Ending) error {
	grace := r.cfg.Bounds.Grace
	if grace > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, grace)
		defer cancel()
	}
	if _, err := r.addUserText(fmt.Sprintf(summaryPrompt, why)); err != nil {
		return err
	}
	var tools []llm.Tool
	none := &llm.Choice{Mode: llm.ChoiceNone}
	if r.cfg.Tools != nil {
		tools, _, _ = r.cfg.Tools.List(ctx, none) //nolint:errcheck // on an error there are no tools
	}
	tools = r.addCallerTools(tools)
	var failed error
	for range 2 { // a second time if it did not fit
		req, err := r.fitRequest(tools, none)
		if err != nil {
			return err
		}
		if len(tools) == 0 {
			req.Choice = nil
		}
		began := time.Now()
		r.out.Turns++
		if err := r.writeStep(step{Step: stepTurn, Turn: r.out.Turns, Model: r.model.Info().Name}); err != nil {
			return err
		}
		r.emit(Event{Type: TurnEvent, Turn: r.out.Turns, Model: r.model.Info().Name})
		answer, err := r.askModel(ctx, req)
		if err == nil {
			return r.addSummaryTexts(answer)
		}
		r.addUsage(answer)
		r.emit(Event{Type: ErrorEvent, Turn: r.out.Turns, Err: err, Took: time.Since(began)})
		failed = fmt.Errorf("no summary: %w", err)
		if toolerr.CodeOf(err) != toolerr.LimitReached || ctx.Err() != nil {
			break
		}
		if why, _ := r.shrinkContext(nil); why != "" {
			break
		}
	}
	return failed
}

// addSummaryTexts adds the texts of a summary and ignores calls. It returns MODEL_ERROR if
// there is no text, and the error of the journal.
func (r *run) addSummaryTexts(answer *llm.Response) error {
	called := len(answer.Calls()) > 0
	answer.Parts = slices.DeleteFunc(answer.Parts, func(p llm.Part) bool {
		return p.Type == llm.CallPart || called && isThought(p)
	})
	if partsText(answer.Parts) == "" {
		r.addUsage(answer)
		return toolerr.New(toolerr.ModelError, "no summary: the model returned no text")
	}
	r.out.HasSummary = true
	_, err := r.recordAnswer(answer)
	return err
}

// partsText returns the texts of parts, separated by empty lines; "" if none exists.
func partsText(parts []llm.Part) string {
	var all []string
	for _, p := range parts {
		if (p.Type == llm.TextPart || p.Type == llm.RefusalPart) && strings.TrimSpace(p.Text) != "" {
			all = append(all, strings.TrimSpace(p.Text))
		}
	}
	return strings.Join(all, "\n\n")
}

// Text returns the text of the last answer or, without one, the texts of all turns.
func (o *Outcome) Text() string {
	if o.Response != nil {
		if said := partsText(o.Response.Parts); said != "" {
			return said
		}
	}
	var all []string
	for _, m := range o.Messages {
		if m.Role == llm.AssistantRole {
			if said := partsText(m.Parts); said != "" {
				all = append(all, said)
			}
		}
	}
	return strings.Join(all, "\n\n")
}

// callKey returns a key that is equal for identical calls.
func callKey(c *llm.ToolCall) string { return c.Name + "\x00" + canonicalArguments(c) }

// canonicalArguments returns a call's arguments in a form that is equal for equal values.
func canonicalArguments(c *llm.ToolCall) string {
	if c.Malformed != "" {
		return c.Malformed
	}
	if form, ok := jsonrpc.Canonical(nil, c.Args); ok {
		return string(form)
	}
	return string(c.Args)
}
