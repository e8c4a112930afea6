package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/toolroom-mcp/toolroom/host/internal/agent"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// maxTask bounds a task with its conversation, in bytes.
const maxTask = 64 << 20

// agentTask is the task of an agent, as flags or as JSON on standard input.
type agentTask struct {
	Prompt       string        `json:"prompt"`
	Agent        string        `json:"agent"`        // name of a kind; "": explore, or none if System is set
	System       string        `json:"system"`       // replaces the kind's instructions
	Model        string        `json:"model"`        // "": that of the kind, or else the default
	Tools        []string      `json:"tools"`        // patterns; null: those of the kind
	Except       []string      `json:"except"`       // patterns of excluded tools
	Conversation []llm.Message `json:"conversation"` // conversation to continue, from an outcome
	Resume       string        `json:"resume"`       // id of the agent to continue

	MaxTurns    int      `json:"max_turns"`
	MaxTokens   int      `json:"max_tokens"`
	MaxCost     float64  `json:"max_cost"`
	TimeoutMS   int64    `json:"timeout_ms"`
	GraceMS     int64    `json:"grace_ms"`
	MaxOutput   int      `json:"max_output"` // tokens of an answer
	Temperature *float64 `json:"temperature"`

	Host     *agentHost `json:"host"`     // the agent uses only this host's tools
	Attached bool       `json:"attached"` // the end of the input ends the agent
}

// agentHost is the connection to the host for whose call the agent works.
type agentHost struct {
	Socket string `json:"socket"`
	Token  string `json:"token"`
}

func (p *program) agentCommand() *cobra.Command {
	var t agentTask
	var how agentOutput
	var timeout, grace time.Duration
	var temperature float64
	cmd := &cobra.Command{
		Use:   "agent [PROMPT…]",
		Short: "Run an agent on a task and print its report",
		Long: `agent asks a model and makes its tool calls until the task is done or a limit is
reached, and prints the report and a line on how the run ended. Policy, limits and
audit apply to its calls as to all others. A call that needs approval ends the run;
once it is approved, --resume continues it.

Without a PROMPT the task is read from standard input: text, or one JSON object
with prompt, agent, system, model, tools, except, conversation, resume, max_turns,
max_tokens, max_cost, timeout_ms, grace_ms, max_output, temperature, host ({socket,
token} of another host whose tools replace this host's) and attached (the agent ends
at the end of the input). Flags override these members.

With --json it writes one event per line: begun, turn, answer, tool.call,
tool.progress, tool.response, compacted, error, and finally ended, with why, text
(the report), turns, usage, cost, calls, pending, and the conversation to continue.

Exit status: 0 the goal was reached, 1 it ended otherwise, 2 usage error, 3 no model
is configured or it could not be reached.`,
		Example: "  mcp-host agent 'Where is the retry delay set?'\n  mcp-host agent --agent general --tools 'ls,glob,grep,view,edit' 'Rename Foo to Bar in pkg/x'",
		RunE: func(cmd *cobra.Command, args []string) error {
			if how.list {
				return p.withHost(cmd.Context(), func(_ context.Context, a *core.App) error { return p.listKinds(a, how.json) })
			}
			flags := cmd.Flags()
			if t.TimeoutMS, t.GraceMS = timeout.Milliseconds(), grace.Milliseconds(); flags.Changed("temperature") {
				t.Temperature = &temperature
			}
			if flags.Changed("tools") {
				t.Tools = append([]string{}, t.Tools...)
			}
			task, rest, err := p.readTask(t, args)
			if err != nil {
				return err
			}
			return p.runAgent(cmd.Context(), task, rest, how)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&how.json, "json", false, "print events as JSON, one per line")
	f.BoolVar(&how.deltas, "deltas", false, "with --json: also print partial answers as they arrive")
	f.BoolVar(&how.list, "list", false, "list the kinds of agents")
	f.StringVar(&t.Agent, "agent", "", "the `KIND` of agent: explore (default), general, or a configured one")
	f.StringVar(&t.Model, "model", "", "the `MODEL` to use")
	f.StringSliceVar(&t.Tools, "tools", nil, "allow only the tools `NAMES` of those that the kind allows; * matches any text")
	f.StringSliceVar(&t.Except, "except", nil, "disallow the tools `NAMES`; * matches any text")
	f.StringVar(&t.Resume, "resume", "", "resume the agent with that `ID`")
	f.IntVar(&t.MaxTurns, "max-turns", 0, "at most `N` model turns (default 25)")
	f.IntVar(&t.MaxTokens, "max-tokens", 0, "at most `N` tokens, input and output of all turns")
	f.Float64Var(&t.MaxCost, "max-cost", 0, "at most `COST`, if the model has prices")
	f.DurationVar(&timeout, "timeout", 0, "at most `TIME` (default 10m)")
	f.DurationVar(&grace, "grace", 0, "additional `TIME` after the timeout for a summary (default 1m)")
	f.Float64Var(&temperature, "temperature", 0, "sampling temperature `T`")
	return cmd
}

// agentOutput holds the output options of a run.
type agentOutput struct{ json, deltas, list bool }

// readTask returns the task of the arguments, or of standard input, with the flags applied,
// and a reader of the standard input after it. A task that is incomplete is a usage error.
func (p *program) readTask(flags agentTask, args []string) (agentTask, io.Reader, error) {
	if len(args) > 0 {
		flags.Prompt = strings.Join(args, " ")
		return flags, strings.NewReader(""), flags.validate()
	}
	if flags.Resume != "" {
		return flags, strings.NewReader(""), flags.validate()
	}
	in := bufio.NewReader(io.LimitReader(p.in, maxTask+1))
	if !startsObject(in) {
		text, err := io.ReadAll(in)
		if err != nil {
			return flags, nil, withStatus(exitUsage, fmt.Errorf("reading standard input: %w", err))
		}
		flags.Prompt = strings.TrimSpace(string(text))
		return flags, strings.NewReader(""), flags.validate()
	}
	var t agentTask
	var object json.RawMessage
	decoder := json.NewDecoder(in)
	err := decoder.Decode(&object)
	if err == nil {
		if err := checkMembers("the task", object, t); err != nil {
			return flags, nil, withStatus(exitUsage, err)
		}
		err = json.Unmarshal(object, &t)
	}
	if err != nil {
		return flags, nil, usageError("the task on standard input is not one JSON object of at most %d bytes: %v", maxTask, err)
	}
	t.applyFlags(flags)
	return t, io.MultiReader(decoder.Buffered(), in, p.in), t.validate()
}

// checkMembers returns an error for an object with members that the struct of does not have,
// because an unread limit or set of tools would have no effect. what names the object.
func checkMembers(what string, object json.RawMessage, of any) error {
	found, err := jsonrpc.Members(object)
	if err != nil {
		return err
	}
	fields := map[string]reflect.Type{}
	for i, t := 0, reflect.TypeOf(of); i < t.NumField(); i++ {
		fields[t.Field(i).Tag.Get("json")] = t.Field(i).Type
	}
	names := slices.Sorted(maps.Keys(fields))
	for _, m := range found {
		field, known := fields[m.Name]
		if !known {
			return fmt.Errorf("%s has no member %.60q%s (known: %s)", what, m.Name, dialect.Nearest(m.Name, names), strings.Join(names, ", "))
		}
		if field == reflect.TypeFor[*agentHost]() && string(m.Value) != "null" {
			if err := checkMembers(m.Name, m.Value, agentHost{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// startsObject reports whether the first character that is not white space begins an
// object. It consumes nothing. It returns false if the input ends before, or if the first
// 4096 bytes are white space.
func startsObject(in *bufio.Reader) bool {
	for n := 1; n <= 4096; n++ {
		head, err := in.Peek(n)
		if len(head) == n && !bytes.ContainsRune([]byte(" \t\r\n"), rune(head[n-1])) {
			return head[n-1] == '{'
		}
		if err != nil {
			return false
		}
	}
	return false
}

// applyFlags replaces the values of the task by those flags that are set. Excluded tools are
// added to those of the task.
func (t *agentTask) applyFlags(f agentTask) {
	for _, text := range []struct{ into, of *string }{{&t.Agent, &f.Agent}, {&t.Model, &f.Model}, {&t.System, &f.System}, {&t.Resume, &f.Resume}} {
		if *text.of != "" {
			*text.into = *text.of
		}
	}
	for _, number := range []struct{ into, of *int }{{&t.MaxTurns, &f.MaxTurns}, {&t.MaxTokens, &f.MaxTokens}, {&t.MaxOutput, &f.MaxOutput}} {
		if *number.of != 0 {
			*number.into = *number.of
		}
	}
	for _, number := range []struct{ into, of *int64 }{{&t.TimeoutMS, &f.TimeoutMS}, {&t.GraceMS, &f.GraceMS}} {
		if *number.of != 0 {
			*number.into = *number.of
		}
	}
	if f.MaxCost != 0 {
		t.MaxCost = f.MaxCost
	}
	if f.Temperature != nil {
		t.Temperature = f.Temperature
	}
	if f.Tools != nil {
		t.Tools = f.Tools
	}
	t.Except = slices.Concat(t.Except, f.Except)
}

// validate returns a usage error if the task is incomplete or contradicts itself.
func (t agentTask) validate() error {
	switch {
	case strings.TrimSpace(t.Prompt) == "" && t.Resume == "":
		return usageError("no task: give a PROMPT, or text or JSON on standard input")
	case t.Resume != "" && !core.IsAgentID(t.Resume):
		return usageError("%q is not a valid agent id", t.Resume)
	case t.Resume != "" && t.Host != nil:
		return usageError("an agent with the tools of another host cannot be resumed; give its conversation instead")
	case t.Resume != "" && len(t.Conversation) > 0:
		return usageError("a resumed agent already has its conversation; leave conversation out of the task")
	case t.MaxTurns < 0 || t.MaxTokens < 0 || t.TimeoutMS < 0 || t.GraceMS < 0 || t.MaxOutput < 0 || !(t.MaxCost >= 0):
		return usageError("a limit is negative")
	case t.Host != nil && (t.Host.Socket == "" || t.Host.Token == ""):
		return usageError("host: want socket and token")
	}
	for i, m := range t.Conversation {
		if err := m.Validate(); err != nil {
			return usageError("conversation: message %d: %v", i, err)
		}
	}
	return nil
}

// selectKind returns the agent's kind with the task's instructions, if it has any. An unknown kind
// is a usage error.
func (t agentTask) selectKind(cfg config.Config) (agent.Kind, error) {
	name := t.Agent
	if name == "" && t.System != "" {
		return agent.Kind{Instructions: t.System}, nil
	}
	if name == "" {
		name = agent.Explore
	}
	var names []string
	for _, k := range agent.Kinds(cfg.Agents) {
		if k.Name == name {
			if t.System != "" {
				k.Instructions = t.System
			} else {
				k.Instructions += agent.ReportWords
			}
			return k, nil
		}
		names = append(names, k.Name)
	}
	return agent.Kind{}, usageError("no kind of agent %q; available: %s", name, strings.Join(names, ", "))
}

// bounds returns the limits of the task; those that it does not set come from its
// kind. A task of another program (attached) cannot exceed the limits of its kind.
func (t agentTask) bounds(k agent.Kind) agent.Bounds {
	b := k.Bounds
	b.Turns = effectiveLimit(t.MaxTurns, b.Turns, t.Attached)
	b.Tokens = effectiveLimit(t.MaxTokens, b.Tokens, t.Attached)
	b.Cost = effectiveLimit(t.MaxCost, b.Cost, t.Attached)
	b.Time = effectiveLimit(time.Duration(t.TimeoutMS)*time.Millisecond, b.Time, t.Attached)
	b.Grace = effectiveLimit(time.Duration(t.GraceMS)*time.Millisecond, b.Grace, t.Attached)
	return b
}

// effectiveLimit returns the limit of a task, or that of its kind if the task has none, or the
// smaller one if both apply.
func effectiveLimit[N int | float64 | time.Duration](task, kind N, useSmaller bool) N {
	if task <= 0 || useSmaller && kind > 0 && kind < task {
		return kind
	}
	return task
}

// listKinds prints the kinds of agents, as lines or as JSON.
func (p *program) listKinds(a *core.App, asJSON bool) error {
	type listed struct {
		Name        string   `json:"name"`
		Description string   `json:"description,omitempty"`
		Model       string   `json:"model,omitempty"`
		Tools       []string `json:"tools"` // null: all tools
	}
	all := []listed{}
	for _, k := range agent.Kinds(a.Config.Agents) {
		all = append(all, listed{k.Name, k.Description, k.Model, k.Tools})
	}
	if asJSON {
		return p.printJSON(all)
	}
	for _, k := range all {
		if err := p.printf("%s\t%s\n", k.Name, printable(k.Description)); err != nil {
			return err
		}
	}
	return nil
}

// exitStatusOf returns the exit status for an outcome: exitConnect if the model could not be reached.
func exitStatusOf(o *agent.Outcome) int {
	switch code := toolerr.CodeOf(o.Err); {
	case o.Ending == agent.EndGoal:
		return exitDone
	case o.Ending == agent.EndModelError && (code == toolerr.TransportError || code == toolerr.AuthFailed || code == toolerr.NoModel):
		return exitConnect
	}
	return exitFailed
}

// errParentGone is the cause for ending an agent whose reader is gone.
var errParentGone = errors.New("the process that started this agent has ended")
