package agent

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/tokens"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Run continues a conversation until the run ends. It does not modify messages. When
// ctx ends, the run ends, and the outcome contains its results so far.
func Run(ctx context.Context, cfg Config, messages []llm.Message) *Outcome {
	r := newRun(cfg, messages)
	if err := r.writeStep(step{Step: stepBegin, Messages: messages}); err != nil {
		return r.endUnjournaled(err)
	}
	return r.loop(ctx, r.runTurn)
}

// withDefaults returns the limits with defaults; 0 then means no limit.
func (b Bounds) withDefaults() Bounds {
	b.Turns = max(0, cmp.Or(b.Turns, 25))
	b.Tokens = max(0, b.Tokens)
	b.Cost = max(0, b.Cost)
	b.Time = max(0, cmp.Or(b.Time, 600*time.Second))
	b.Grace = max(0, cmp.Or(b.Grace, 60*time.Second))
	b.Identical = max(0, cmp.Or(b.Identical, 3))
	b.Parallel = max(1, cmp.Or(b.Parallel, 10))
	return b
}

// run is the state of a run.
type run struct {
	cfg              Config
	model            provider.Model
	messagesBefore   int // number of messages before the run
	messagesReported int // number of messages that OnMessages has got
	history          []llm.Message
	ids              callIDs
	identicalCalls   map[string]int // number of calls by tool and arguments
	out              *Outcome
	earlierDuration  time.Duration // duration of the run before it was resumed
	retries          int           // number of repeated turns
	receivedPart     bool          // a part of the last answer was received
	emptyAnswers     int           // number of successive empty answers
	modelReplaced    bool          // the model was replaced
	toolsLeftOut     int           // number of tools that did not fit into the last request
	keptResults      int           // number of old results that are not shortened when the context is full

	measured func() time.Duration // time since the run began or was resumed; nil: not begun

	emitting sync.Mutex // held while On is called and while a step is stored
}

// newRun returns a run that continues after messages, with defaults for the bounds and
// the token counter that cfg does not set.
func newRun(cfg Config, messages []llm.Message) *run {
	cfg.Bounds = cfg.Bounds.withDefaults()
	if cfg.Counter == nil {
		cfg.Counter = tokens.Estimator{}
	}
	return &run{
		cfg: cfg, model: cfg.Model, messagesBefore: len(messages), messagesReported: len(messages), history: slices.Clone(messages), ids: newCallIDs(messages),
		identicalCalls: map[string]int{}, out: &Outcome{Calls: map[string]int{}}, keptResults: keptResults,
	}
}

// loop calls first, and then requests turns and makes their calls until the run ends: with
// the conversation, a limit, or ctx. It returns the outcome.
func (r *run) loop(ctx context.Context, first func(context.Context) (Ending, error)) *Outcome {
	var work context.Context
	cancel := func() {}
	work, r.measured = call.MeasureTime(ctx)
	if most := r.cfg.Bounds.Time; most > 0 {
		work, cancel = call.WithTimeout(work, max(0, most-r.earlierDuration), errTime)
	}
	defer cancel()
	why, err := first(work)
	for why == "" {
		r.reportMessages()
		why, err = r.runTurn(work)
	}
	return r.finish(ctx, why, err)
}

// errTime is the cause of the end of a run's context after Bounds.Time.
var errTime = errors.New("the run has timed out")

// duration returns the duration of the run without the time of questions to the user.
func (r *run) duration() time.Duration {
	if r.measured == nil {
		return r.earlierDuration
	}
	return r.earlierDuration + r.measured()
}

// reportMessages calls OnMessages with the messages since the last call.
func (r *run) reportMessages() {
	if r.cfg.OnMessages == nil || r.messagesReported >= len(r.history) {
		return
	}
	r.cfg.OnMessages(slices.Clone(r.history[r.messagesReported:]))
	r.messagesReported = len(r.history)
}

// finish ends a run for a reason, with a summary by the model if a limit was reached. It
// records and reports the end, and returns the outcome.
func (r *run) finish(ctx context.Context, why Ending, err error) *Outcome {
	switch ended := ctx.Err(); {
	case why == interrupted && errors.Is(ended, context.DeadlineExceeded):
		why, err = EndTime, ended
	case why == interrupted && ended != nil:
		why, err = EndCancelled, context.Cause(ctx)
	case why == interrupted:
		why, err = EndTime, nil
	}
	if why.isLimit() && ctx.Err() == nil {
		if failed := r.addSummary(ctx, why); failed != nil {
			err = errors.Join(err, failed)
		}
	}
	r.out.Ending, r.out.Err = why, err
	r.out.Messages = slices.Clone(r.history[r.messagesBefore:])
	r.out.Took = r.duration()
	if fault := r.writeStep(r.endStep()); fault != nil {
		r.out.Err = errors.Join(r.out.Err, fault)
	}
	r.emit(Event{Type: EndEvent, Text: string(why), Err: err, Turn: r.out.Turns, Took: r.out.Took})
	return r.out
}

// endUnjournaled ends the run because the journal cannot be written: its outcome has the reason
// EndJournalError.
func (r *run) endUnjournaled(err error) *Outcome {
	r.out.Ending, r.out.Err = EndJournalError, err
	r.out.Messages = slices.Clone(r.history[r.messagesBefore:])
	r.out.Took = r.duration()
	r.emit(Event{Type: EndEvent, Text: string(EndJournalError), Err: err, Turn: r.out.Turns, Took: r.out.Took})
	return r.out
}

// interrupted is a preliminary ending; close determines its cause.
const interrupted Ending = "interrupted"

// isLimit reports whether a limit ended the run, so that the model is asked for a
// summary.
func (e Ending) isLimit() bool {
	return slices.Contains([]Ending{EndTurns, EndTokens, EndCost, EndTime, EndIdentical, EndContext}, e)
}

// boundReached returns the limit that is reached; "": none.
func (r *run) boundReached() Ending {
	b, o := r.cfg.Bounds, r.out
	switch {
	case b.Turns > 0 && o.Turns >= b.Turns:
		return EndTurns
	case b.Tokens > 0 && o.Usage.Input+o.Usage.Output >= b.Tokens:
		return EndTokens
	case b.Cost > 0 && o.Cost >= b.Cost:
		return EndCost
	}
	return ""
}

// runTurn requests an answer and makes its calls. It returns the reason to end the run; "":
// none. The error explains the reason and can be nil.
func (r *run) runTurn(ctx context.Context) (Ending, error) {
	if ctx.Err() != nil {
		return interrupted, nil
	}
	if why := r.boundReached(); why != "" {
		return why, nil
	}
	var tools []llm.Tool
	choice := r.cfg.Request.Choice
	if r.cfg.Tools != nil {
		if err := r.cfg.Tools.Begin(); err != nil {
			return EndTurns, err
		}
		var err error
		if tools, choice, err = r.cfg.Tools.List(ctx, choice); err != nil {
			if ctx.Err() != nil {
				return interrupted, nil
			}
			return EndDenied, err
		}
	}
	tools = r.addCallerTools(tools)
	choice, err := limitChoice(choice, tools)
	if err != nil {
		return EndDenied, err
	}
	answer, why, err := r.requestTurn(ctx, tools, choice)
	if why != "" || answer == nil {
		return why, err
	}
	return r.handleAnswer(ctx, answer, tools, choice)
}

// limitChoice limits a tool choice to the offered tools, because vendors refuse a
// choice of others.
func limitChoice(choice *llm.Choice, tools []llm.Tool) (*llm.Choice, error) {
	if choice == nil || len(choice.ToolNames) == 0 || choice.Mode == llm.ChoiceNone {
		return choice, nil
	}
	there := slices.DeleteFunc(slices.Clone(choice.ToolNames), func(name string) bool {
		return !slices.ContainsFunc(tools, func(t llm.Tool) bool { return t.Name == name })
	})
	switch {
	case len(there) > 0:
		return &llm.Choice{Mode: choice.Mode, ToolNames: there}, nil
	case choice.Mode == llm.ChoiceRequired:
		return nil, toolerr.New(toolerr.ToolNotFound, "%s must be called, but is not an allowed tool", strings.Join(choice.ToolNames, ", "))
	}
	return &llm.Choice{Mode: llm.ChoiceNone}, nil
}

// addCallerTools adds the caller's tools. A caller's tool replaces one of ours with the
// same name.
func (r *run) addCallerTools(tools []llm.Tool) []llm.Tool {
	if len(r.cfg.CallerTools) == 0 {
		return tools
	}
	ours := slices.DeleteFunc(slices.Clone(tools), func(t llm.Tool) bool { return r.isCallerTool(t.Name) })
	return append(ours, r.cfg.CallerTools...)
}

// isCallerTool reports whether the caller declared the tool and runs it itself.
func (r *run) isCallerTool(name string) bool {
	return slices.ContainsFunc(r.cfg.CallerTools, func(t llm.Tool) bool { return t.Name == name })
}

// handleAnswer makes the calls of an answer, or ends the run. An empty Ending means
// that the run continues with another turn.
func (r *run) handleAnswer(ctx context.Context, answer *llm.Response, tools []llm.Tool, choice *llm.Choice) (Ending, error) {
	calls := answer.Calls()
	switch {
	case answer.StopReason == llm.StopRefusal:
		return EndRefused, nil
	case len(calls) > 0:
		r.emptyAnswers = 0
		return r.makeCalls(ctx, r.planCalls(calls, tools, choice))
	case answer.StopReason == llm.StopFault || len(answer.Parts) == 0 && answer.StopReason != llm.StopLength:
		return r.handleEmptyAnswer(answer)
	}
	r.emptyAnswers = 0
	switch answer.StopReason {
	case llm.StopPause:
		return "", nil
	case llm.StopLength:
		return EndLength, nil
	case llm.StopContext:
		return r.shrinkContext(answer)
	}
	return EndGoal, nil
}

// handleEmptyAnswer lets the model answer again after an empty or unreadable answer; after
// the second one in a row it returns EndEmpty, or EndModelError with MODEL_ERROR.
func (r *run) handleEmptyAnswer(answer *llm.Response) (Ending, error) {
	r.emptyAnswers++
	fault := answer.StopReason == llm.StopFault
	switch {
	case r.emptyAnswers > 1 && fault:
		return EndModelError, toolerr.New(toolerr.ModelError, "the model sent two unreadable answers (%s)", cmp.Or(answer.VendorStop, string(answer.StopReason)))
	case r.emptyAnswers > 1:
		return EndEmpty, nil
	case fault:
		return r.addUserText("Your last answer could not be read, and none of it was executed. Send it again, with tool calls in the required format.")
	}
	return r.addUserText("Your last answer was empty. Continue the task, or answer with what you have.")
}

// addUserText adds a message of the user to the history; see addToHistory.
func (r *run) addUserText(text string) (Ending, error) {
	return r.addToHistory(llm.Message{Role: llm.UserRole, Parts: []llm.Part{{Type: llm.TextPart, Text: text}}})
}

// addToHistory adds messages to the history and the journal. It returns "" and nil, or
// EndJournalError and the error if the journal cannot be written.
func (r *run) addToHistory(messages ...llm.Message) (Ending, error) {
	r.history = append(r.history, messages...)
	if err := r.writeStep(step{Step: stepUserText, Messages: messages}); err != nil {
		return EndJournalError, err
	}
	return "", nil
}

// emit reports an event to Config.On, one at a time, and waits for it.
func (r *run) emit(e Event) {
	if r.cfg.On == nil {
		return
	}
	r.emitting.Lock()
	defer r.emitting.Unlock()
	r.cfg.On(e)
}
