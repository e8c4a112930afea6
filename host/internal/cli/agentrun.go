package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/agent"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/chat/screen"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// maxTurnRetries is the number of times that a turn is repeated after its answer broke off.
const maxTurnRetries = 2

// runAgent runs a task with a new host, or with the tools of the host that the task names,
// and waits for its end. rest is the standard input after the task; its end ends an
// attached agent. The error has an exit status of the command agent.
func (p *program) runAgent(ctx context.Context, t agentTask, rest io.Reader, output agentOutput) error {
	change := func(cfg config.Config) config.Config {
		if t.Host != nil {
			return core.JoinedConfig(cfg, t.Host.Socket, t.Host.Token)
		}
		return cfg
	}
	return p.withChangedHost(ctx, change, func(ctx context.Context, a *core.App) error {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		if t.Attached {
			go func() { // ends with the input or with the program
				io.Copy(io.Discard, rest) //nolint:errcheck // only its end matters
				cancel(errParentGone)
			}()
		}
		return p.runAgentOn(ctx, a, t, output, cancel)
	})
}

// runAgentOn runs the agent with the tools of a, and reports its events and outcome. It
// calls cancel if nobody reads the events. It returns an error unless the agent reached its
// goal.
func (p *program) runAgentOn(ctx context.Context, a *core.App, t agentTask, output agentOutput, cancel context.CancelCauseFunc) error {
	t, ceilings, err := p.resumedTask(ctx, a, t)
	if err != nil {
		return err
	}
	kind, err := t.selectKind(a.Config)
	if err != nil {
		return err
	}
	told := &agentReport{program: p, how: output, id: t.Resume, resumed: t.Resume != "", cancel: cancel}
	if told.id == "" {
		told.id = core.NewAgentID()
	}
	cfg := agent.Config{
		System: kind.Instructions, Bounds: t.bounds(kind), Retries: maxTurnRetries, On: told.event,
		Request: llm.Request{MaxTokens: t.MaxOutput, Temperature: t.Temperature},
	}
	err = p.agentModel(ctx, a, t, kind, &cfg)
	if err == nil && t.Host != nil {
		err = connectAll(ctx, a)
	}
	if err != nil {
		told.printOutcome(&agent.Outcome{Ending: agent.EndModelError, Err: err}, nil) //nolint:errcheck // the run has failed already
		return withStatus(exitConnect, told.unreportedError(err))
	}
	if t.Host == nil {
		p.openControlSocket(a, "agent")
		release, err := a.ClaimAgent(ctx, told.id)
		if err != nil {
			return withStatus(exitFailed, err)
		}
		defer release()
		if cfg.Journal, err = p.agentJournal(ctx, a, t, told.id); err != nil {
			return err
		}
	}
	for _, name := range a.UnmatchedPatterns(ctx, t.Tools) {
		p.logf("no tool %s for the agent; run mcp-host tools for the list", printable(name))
	}
	set := a.Toolset(call.Caller{EntryPoint: "cli"}, nil, append(ceilings, core.Ceiling{Only: kind.Tools})...)
	cfg.Tools = set
	messages := slices.Clone(t.Conversation)
	if strings.TrimSpace(t.Prompt) != "" {
		messages = append(messages, llm.Message{Role: llm.UserRole, Parts: []llm.Part{{Type: llm.TextPart, Text: t.Prompt}}})
	}
	told.reportBegin(cfg.Model.Info().Name, cfg.Journal != nil)
	var o *agent.Outcome
	if t.Resume != "" {
		o = agent.Resume(ctx, cfg, messages)
	} else {
		o = agent.Run(ctx, cfg, messages)
	}
	if err := set.End(); err != nil && o.Ending == agent.EndGoal {
		o.Ending, o.Err = agent.EndDenied, err
	}
	if err := told.printOutcome(o, append(messages, o.Messages...)); err != nil {
		return err
	}
	if status := exitStatusOf(o); status != exitDone {
		return withStatus(status, errPrinted)
	}
	return nil
}

// connectAll starts the servers, and returns the first error: without their tools, an agent
// would report things that it cannot know.
func connectAll(ctx context.Context, a *core.App) error {
	for _, s := range a.Servers() {
		if _, err := s.Tools(ctx); err != nil {
			return err
		}
	}
	return nil
}

// resumedTask returns a task with the ceilings of its tools. If it resumes an agent, the
// start parameters of that agent apply unless the task replaces them, and its ceilings
// apply, too. It returns an error with exit status 1 for an unknown agent.
func (p *program) resumedTask(ctx context.Context, a *core.App, t agentTask) (agentTask, []core.Ceiling, error) {
	ceilings := []core.Ceiling{{Only: t.Tools, Except: t.Except}}
	if t.Resume == "" {
		return t, ceilings, nil
	}
	kept, err := a.AgentStart(ctx, t.Resume)
	switch {
	case toolerr.Is(err, toolerr.NotFound):
		return t, nil, withStatus(exitFailed, noAgentError(t.Resume))
	case err != nil:
		return t, nil, withStatus(exitFailed, err)
	}
	var first agentTask
	if err := json.Unmarshal(kept, &first); err != nil {
		return t, nil, withStatus(exitFailed, fmt.Errorf("the start of agent %s cannot be read: %w", t.Resume, err))
	}
	was, err := first.selectKind(a.Config)
	if err != nil {
		return t, nil, err
	}
	ceilings = append(ceilings, core.Ceiling{Only: first.Tools, Except: first.Except}, core.Ceiling{Only: was.Tools})
	first.applyFlags(t)
	first.Prompt = t.Prompt
	return first, ceilings, nil
}

// noAgentError returns the error for an id that no agent in the state directory has.
func noAgentError(id string) error {
	return fmt.Errorf("no agent %q to resume in this state directory: give the id from the last line of the run (agent ID), or the --state of that run", id)
}

// agentJournal returns the agent's journal, and stores the start parameters of a new agent. It
// returns nil and says so if the agent cannot be resumed later, and an exit error if the agent to
// resume has no journal.
func (p *program) agentJournal(ctx context.Context, a *core.App, t agentTask, id string) (agent.Journal, error) {
	j, err := a.Journal(id)
	if err == nil {
		var steps []json.RawMessage
		if steps, err = j.Read(ctx); err == nil && t.Resume != "" && len(steps) == 0 {
			return nil, withStatus(exitFailed, noAgentError(id))
		}
	}
	switch {
	case err != nil && t.Resume != "":
		return nil, withStatus(exitFailed, err)
	case err != nil:
		p.logf("the agent cannot be resumed: %v", err)
		return nil, nil
	}
	if t.Resume != "" {
		return j, nil
	}
	t.Prompt, t.Conversation = "", nil
	how, err := jsonrpc.Marshal(t)
	if err == nil {
		err = a.SaveAgentStart(ctx, id, how)
	}
	if err != nil {
		p.logf("the agent cannot be resumed: %v", err)
		return nil, nil
	}
	return j, nil
}

// agentModel sets the model of cfg, and the larger models of its provider that may replace
// it. It returns NO_MODEL for an unknown model, or if only the model command is available.
func (p *program) agentModel(ctx context.Context, a *core.App, t agentTask, kind agent.Kind, cfg *agent.Config) error {
	name := t.Model
	if name == "" {
		name = kind.Model
	}
	models := a.Models()
	m, err := models.Get(ctx, name)
	if err != nil {
		return err
	}
	info := m.Info()
	if name == "" {
		if models.DefaultNotice(ctx) != "" && info.Provider == "command" {
			return toolerr.New(toolerr.NoModel, "%s, or see docs/models.md (with --model command, the task is a tool call)", models.WhyNoModel(ctx))
		}
	}
	cfg.Model = m
	if info.Window > 0 {
		cfg.Larger = largerModels(ctx, a, info)
	}
	return nil
}

// listModelsTimeout limits the time in which providers list their models.
const listModelsTimeout = 3 * time.Second

// largerModels returns the models of the same provider with a larger window; it waits at
// most listModelsTimeout. Other providers must not get the conversation.
func largerModels(ctx context.Context, a *core.App, than provider.Info) []provider.Model {
	var all []provider.Model
	ctx, cancel := context.WithTimeout(ctx, listModelsTimeout)
	defer cancel()
	for _, info := range a.Models().List(ctx) {
		if info.Provider == than.Provider && info.Window > than.Window {
			if m, err := a.Models().Get(ctx, info.Name); err == nil {
				all = append(all, m)
			}
		}
	}
	return all
}

// agentReport reports a run, as JSON or as text.
type agentReport struct {
	*program
	how   agentOutput
	id    string
	model string

	resumed bool
	cancel  context.CancelCauseFunc // called when the output is not read any more
}

// agentEvent is a line of agent --json.
type agentEvent struct {
	Type      string          `json:"type"`
	Agent     string          `json:"agent,omitempty"`
	Resumable bool            `json:"resumable,omitempty"`
	Turn      int             `json:"turn,omitempty"`
	Model     string          `json:"model,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Malformed string          `json:"malformed,omitempty"`
	Text      string          `json:"text,omitempty"`
	Delta     *llm.Delta      `json:"delta,omitempty"`
	Usage     *agentUsage     `json:"usage,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
	TookMS    *int64          `json:"duration_ms,omitempty"`
	Error     *agentFault     `json:"error,omitempty"`
}

// agentFault is an error in the JSON output.
type agentFault struct {
	Code    toolerr.Code `json:"code"`
	Message string       `json:"message"`
}

// agentUsage is a number of tokens in the JSON output.
type agentUsage struct {
	Input     int `json:"input"`
	Output    int `json:"output"`
	CacheRead int `json:"cache_read,omitempty"`
}

// endLine is the last line of agent --json.
type endLine struct {
	Type   string          `json:"type"`
	Agent  string          `json:"agent"`
	Why    agent.Ending    `json:"why"`
	Summed bool            `json:"summed"`
	Error  *agentFault     `json:"error,omitempty"`
	Text   string          `json:"text"`
	Model  string          `json:"model,omitempty"`
	Turns  int             `json:"turns"`
	Usage  agentUsage      `json:"usage"`
	Cost   float64         `json:"cost,omitempty"`
	Calls  map[string]int  `json:"calls"`
	Asked  []*call.Pending `json:"pending,omitempty"`
	Theirs []*llm.ToolCall `json:"theirs,omitempty"`
	TookMS int64           `json:"duration_ms"`
	Whole  []llm.Message   `json:"conversation,omitempty"`
}

// reportBegin records the model, and with --json writes the first event of a run.
func (t *agentReport) reportBegin(model string, resumable bool) {
	t.model = model
	if t.how.json {
		t.writeLine(agentEvent{Type: "begun", Agent: t.id, Model: model, Resumable: resumable})
	}
}

// maxEventResult bounds the part of a result in an event, in bytes.
const maxEventResult = 4 << 10

// event reports an event of the run: with --json as a line, otherwise it is not shown.
func (t *agentReport) event(e agent.Event) {
	if e.Type == agent.TurnEvent {
		t.model = e.Model
	}
	if !t.how.json || e.Type == agent.EndEvent || e.Type == agent.DeltaEvent && !t.how.deltas {
		return
	}
	line := agentEvent{Type: string(e.Type), Turn: e.Turn, Model: e.Model, ID: e.ID, Text: e.Text, Error: faultOf(e.Err)}
	took := e.Took.Milliseconds()
	switch e.Type {
	case agent.DeltaEvent:
		line.Delta = &e.Delta
	case agent.AnswerEvent:
		line.Text = provider.TextOf(e.Response.Parts)
		if u := e.Response.Usage; u != nil {
			line.Usage = &agentUsage{u.Input, u.Output, u.CacheRead}
		}
	case agent.CallEvent:
		line.Name, line.Arguments, line.Malformed = e.Call.Name, e.Call.Args, e.Call.Malformed
	case agent.ResultEvent:
		text := provider.ResultText(e.Result)
		line.Name, line.Text, line.IsError, line.TookMS = e.Call.Name, strings.ToValidUTF8(text[:min(len(text), maxEventResult)], ""), e.Result.IsError, &took
	}
	t.writeLine(line)
}

// writeLine writes v as a line of JSON, and ends the agent if that fails.
func (t *agentReport) writeLine(v any) {
	if err := t.printJSON(v); err != nil {
		t.cancel(errParentGone)
	}
}

// faultOf returns an error for the JSON output, nil for nil.
func faultOf(err error) *agentFault {
	if err == nil {
		return nil
	}
	return &agentFault{toolerr.CodeOf(err), err.Error()}
}

// unreportedError returns err, or errPrinted if the JSON events have reported it.
func (t *agentReport) unreportedError(err error) error {
	if t.how.json {
		return errPrinted
	}
	return err
}

// maxConversation bounds the conversation in the last line, in bytes.
const maxConversation = 12 << 20

// printOutcome prints the report and the outcome, as text or as the last JSON line. whole is the
// conversation, nil if the run did not begin; the JSON output omits a conversation that is
// too long or incomplete. It returns an error only if it cannot print.
func (t *agentReport) printOutcome(o *agent.Outcome, messages []llm.Message) error {
	if t.how.json {
		// For a resumed agent the conversation is not complete: the rest is in its
		// journal.
		if raw, err := json.Marshal(messages); t.resumed || err != nil || len(raw) > maxConversation {
			messages = nil
		}
		return t.printJSON(endLine{
			Type: "ended", Agent: t.id, Why: o.Ending, Summed: o.HasSummary, Error: faultOf(o.Err), Text: o.Text(), Model: t.model,
			Turns: o.Turns, Usage: agentUsage{o.Usage.Input, o.Usage.Output, o.Usage.CacheRead}, Cost: o.Cost, Calls: o.Calls,
			Asked: o.Pending, Theirs: o.CallerCalls, TookMS: o.Took.Milliseconds(), Whole: messages,
		})
	}
	if o.Turns == 0 && o.Err != nil && messages == nil { // the run did not begin
		return nil
	}
	if text := o.Text(); text != "" {
		if err := t.printf("%s\n\n", screen.Clean(text)); err != nil {
			return err
		}
	}
	if o.Err != nil {
		t.logf("%s", printable(o.Err.Error()))
	}
	for _, w := range o.Pending {
		t.logf("%s needs approval (%s): %s; afterwards, run mcp-host agent --resume %s", printable(w.Tool), printable(w.ID), printable(w.Reason), t.id)
	}
	return t.printf("%s\n", printable(closingLine(t.id, o)))
}

// closingLine says how a run came to its end:
//
//	agent a3 · goal reached · 9 turns · 41k in / 2.1k out · 48s · grep×6 view×11
func closingLine(id string, o *agent.Outcome) string {
	parts := []string{
		"agent " + id, string(o.Ending), textfmt.Count(o.Turns, "turn"),
		textfmt.Thousands(int64(o.Usage.Input)) + " in / " + textfmt.Thousands(int64(o.Usage.Output)) + " out", textfmt.ShortDuration(o.Took),
	}
	if o.Cost > 0 {
		parts = append(parts, fmt.Sprintf("cost %.3g", o.Cost))
	}
	var calls []string
	for name, n := range o.Calls {
		calls = append(calls, fmt.Sprintf("%s×%d", name, n))
	}
	if slices.Sort(calls); len(calls) > 0 {
		parts = append(parts, strings.Join(calls, " "))
	}
	return strings.Join(parts, " · ")
}
