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
// ctx ends, it stops, and the outcome contains what exists.
func Run(ctx context.Context, cfg Config, messages []llm.Message) *Outcome {
	r := newRun(cfg, messages)
	if err := r.writeStep(step{Step: stepBegin, Messages: messages}); err != nil {
		return r.unkept(err)
	}
	return r.loop(ctx, r.turn)
}

// withDefaults are the bounds with their defaults; 0 is no bound in them.
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

// run is one run under way.
type run struct {
	cfg     Config
	model   provider.Model
	given   int // messages of the conversation before the run
	kept    int // messages that Config.Whole need not be told of any more
	history []llm.Message
	ids     callIDs
	same    map[string]int // calls by tool and arguments
	out     *Outcome
	earlier time.Duration // that the run took before it was resumed
	again   int           // turns that were asked for anew
	heard   bool          // whether something came of the last answer
	empty   int           // answers with nothing in them, one after the other
	changed bool          // whether another model has taken over
	left    int           // tools that did not fit into the last request
	keep    int           // old results that stay whole when the context is full

	measured func() time.Duration // since the run began or was resumed; nil: not yet

	telling sync.Mutex // held while On is called, and while a step is written down
}

func newRun(cfg Config, messages []llm.Message) *run {
	cfg.Bounds = cfg.Bounds.withDefaults()
	if cfg.Counter == nil {
		cfg.Counter = tokens.Estimator{}
	}
	return &run{
		cfg: cfg, model: cfg.Model, given: len(messages), kept: len(messages), history: slices.Clone(messages), ids: newIdents(messages),
		same: map[string]int{}, out: &Outcome{Calls: map[string]int{}}, keep: keptResults,
	}
}

// loop runs first, then asks the model and makes its calls until there is an ending.
func (r *run) loop(ctx context.Context, first func(context.Context) (Ending, error)) *Outcome {
	var work context.Context
	cancel := func() {}
	work, r.measured = call.MeasureTime(ctx)
	if most := r.cfg.Bounds.Time; most > 0 {
		work, cancel = call.WithTimeout(work, max(0, most-r.earlier), errTime)
	}
	defer cancel()
	why, err := first(work)
	for why == "" {
		r.whole()
		why, err = r.turn(work)
	}
	return r.close(ctx, why, err)
}

// errTime is the cause of the end of a run's context after Bounds.Time.
var errTime = errors.New("the run has timed out")

// duration returns the duration of the run without the time in which a person was asked.
func (r *run) duration() time.Duration {
	if r.measured == nil {
		return r.earlier
	}
	return r.earlier + r.measured()
}

// whole tells what was added since it was told last.
func (r *run) whole() {
	if r.cfg.Whole == nil || r.kept >= len(r.history) {
		return
	}
	r.cfg.Whole(slices.Clone(r.history[r.kept:]))
	r.kept = len(r.history)
}

// close ends a run, with a summary if it was a bound that ended it.
func (r *run) close(ctx context.Context, why Ending, err error) *Outcome {
	switch ended := ctx.Err(); {
	case why == interrupted && errors.Is(ended, context.DeadlineExceeded):
		why, err = Time, ended
	case why == interrupted && ended != nil:
		why, err = Cancelled, context.Cause(ctx)
	case why == interrupted:
		why, err = Time, nil
	}
	if why.bound() && ctx.Err() == nil {
		if failed := r.addSummary(ctx, why); failed != nil {
			err = errors.Join(err, failed)
		}
	}
	r.out.Why, r.out.Err = why, err
	r.out.Messages = slices.Clone(r.history[r.given:])
	r.out.Took = r.duration()
	if fault := r.writeStep(r.ending()); fault != nil {
		r.out.Err = errors.Join(r.out.Err, fault)
	}
	r.emit(Event{Type: Ended, Text: string(why), Err: err, Turn: r.out.Turns, Took: r.out.Took})
	return r.out
}

func (r *run) unkept(err error) *Outcome {
	r.out.Why, r.out.Err = Unkept, err
	r.out.Messages = slices.Clone(r.history[r.given:])
	r.out.Took = r.duration()
	r.emit(Event{Type: Ended, Text: string(Unkept), Err: err, Turn: r.out.Turns, Took: r.out.Took})
	return r.out
}

// interrupted is a preliminary ending; close determines its cause.
const interrupted Ending = "interrupted"

// bound reports whether it is a bound that ended a run, so that the model is asked to
// sum up.
func (e Ending) bound() bool {
	return slices.Contains([]Ending{Rounds, Tokens, Cost, Time, Identical, Context}, e)
}

// boundReached says which bound has been reached; "": none.
func (r *run) boundReached() Ending {
	b, o := r.cfg.Bounds, r.out
	switch {
	case b.Turns > 0 && o.Turns >= b.Turns:
		return Rounds
	case b.Tokens > 0 && o.Usage.Input+o.Usage.Output >= b.Tokens:
		return Tokens
	case b.Cost > 0 && o.Cost >= b.Cost:
		return Cost
	}
	return ""
}

// turn asks the model once and makes the calls that it answers with. It returns why
// the run is to end; "": it is to go on.
func (r *run) turn(ctx context.Context) (Ending, error) {
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
			return Rounds, err
		}
		var err error
		if tools, choice, err = r.cfg.Tools.List(ctx, choice); err != nil {
			if ctx.Err() != nil {
				return interrupted, nil
			}
			return Denied, err
		}
	}
	tools = r.addCallerTools(tools)
	choice, err := offered(choice, tools)
	if err != nil {
		return Denied, err
	}
	answer, why, err := r.requestTurn(ctx, tools, choice)
	if why != "" || answer == nil {
		return why, err
	}
	return r.act(ctx, answer, tools, choice)
}

// offered is a choice among tools: vendors refuse one of others.
func offered(choice *llm.Choice, tools []llm.Tool) (*llm.Choice, error) {
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
	if len(r.cfg.Theirs) == 0 {
		return tools
	}
	ours := slices.DeleteFunc(slices.Clone(tools), func(t llm.Tool) bool { return r.isCallerTool(t.Name) })
	return append(ours, r.cfg.Theirs...)
}

func (r *run) isCallerTool(name string) bool {
	return slices.ContainsFunc(r.cfg.Theirs, func(t llm.Tool) bool { return t.Name == name })
}

// act does what an answer asks for.
func (r *run) act(ctx context.Context, answer *llm.Response, tools []llm.Tool, choice *llm.Choice) (Ending, error) {
	calls := answer.Calls()
	switch {
	case answer.StopReason == llm.StopRefusal:
		return Refused, nil
	case len(calls) > 0:
		r.empty = 0
		return r.makeCalls(ctx, r.planCalls(calls, tools, choice))
	case answer.StopReason == llm.StopFault || len(answer.Parts) == 0 && answer.StopReason != llm.StopLength:
		return r.nothing(answer)
	}
	r.empty = 0
	switch answer.StopReason {
	case llm.StopPause:
		return "", nil
	case llm.StopLength:
		return Length, nil
	case llm.StopContext:
		return r.makeSpace(answer)
	}
	return Goal, nil
}

// nothing asks again after an answer with nothing in it, once.
func (r *run) nothing(answer *llm.Response) (Ending, error) {
	r.empty++
	fault := answer.StopReason == llm.StopFault
	switch {
	case r.empty > 1 && fault:
		return Failed, toolerr.New(toolerr.ModelError, "the model sent two unreadable answers (%s)", cmp.Or(answer.VendorStop, string(answer.StopReason)))
	case r.empty > 1:
		return Empty, nil
	case fault:
		return r.emitText("Your last answer could not be read, and none of it was executed. Send it again, with tool calls in the required format.")
	}
	return r.emitText("Your last answer was empty. Continue the task, or answer with what you have.")
}

// emitText adds a message of the user's.
func (r *run) emitText(text string) (Ending, error) {
	return r.add(llm.Message{Role: llm.UserRole, Parts: []llm.Part{{Type: llm.TextPart, Text: text}}})
}

// add adds messages.
func (r *run) add(messages ...llm.Message) (Ending, error) {
	r.history = append(r.history, messages...)
	if err := r.writeStep(step{Step: stepSaid, Messages: messages}); err != nil {
		return Unkept, err
	}
	return "", nil
}

// emit tells of an event.
func (r *run) emit(e Event) {
	if r.cfg.On == nil {
		return
	}
	r.telling.Lock()
	defer r.telling.Unlock()
	r.cfg.On(e)
}
