package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// meta returns the metadata of the result, for running and ended agents.
func (a *agent) meta() meta {
	a.mu.Lock()
	defer a.mu.Unlock()
	used, m := a.usedNow(), meta{AgentID: a.id, Running: !a.over()}
	if !m.Running {
		used = a.outcome.used
		m.Ending, m.Summary, m.Model = a.outcome.why, a.outcome.summed, a.outcome.model
	}
	m.Turns, m.InputTokens, m.OutputTokens, m.Cost = used.turns, used.usage.Input, used.usage.Output, used.cost
	m.DurationMS, m.Calls = used.took.Milliseconds(), used.calls
	return m
}

// handBack returns the result for an agent that is still running.
func (a *agent) handBack() *mcpkit.Result {
	line, _ := a.doing()
	m := a.meta()
	text := fmt.Sprintf("agent %s is still running after %s: %s\nTo wait for its report: dispatch_agent {\"agent_id\":%q}\n", a.id, textfmt.Lasted(a.took()), line, a.id)
	return &mcpkit.Result{Text: text, Meta: m}
}

// footer returns the last line of a report.
func (a *agent) footer() string {
	parts := []string{"agent " + a.id, a.outcome.why}
	if a.outcome.summed {
		parts[1] += ", summed up"
	}
	return strings.Join(append(parts, a.outcome.used.words()...), " · ") + "\n"
}

// answer returns the result of an agent that has ended.
func (d *dispatcher) answer(ctx context.Context, a *agent) (*mcpkit.Result, error) {
	m, foot := a.meta(), a.footer()
	o := a.outcome
	report := o.report
	if room := mcpkit.Budget(ctx) - len(foot) - noteRoom; len(report) > room {
		m.Truncated = true
		file, err := d.spill(ctx, a)
		where := "the rest is not available: ask the agent for a shorter report, with agent_id and a prompt"
		if err == nil {
			m.File = file
			where = "the whole report is in " + file + " (use view)"
		}
		cut := fmt.Sprintf("[cut: first %d of %d bytes; %s]", max(0, room-300), len(report), where)
		report = shorten(report, max(0, room-300)) + "\n" + cut
	}
	if report != "" {
		report = strings.TrimRight(report, "\n") + "\n\n"
	}
	result := &mcpkit.Result{Text: report + foot, Meta: m}
	switch code, early := early()[o.why]; {
	case o.misfit != "":
		return result, toolerr.New(toolerr.ResultInvalid, "the report does not fit output_schema, even after a second attempt: %s. To ask again, use agent_id and a prompt. The report:", o.misfit)
	case early && o.fault != nil:
		return result, toolerr.New(codeOf(o.fault.Code), "%s", o.fault.Message)
	case early:
		return result, toolerr.New(code, "the agent ended early: %s", o.why)
	case o.fault != nil: // the footer stays the last line
		result.Text = fmt.Sprintf("%s[%s: %s]\n\n%s", report, o.why, shorten(visible(o.fault.Message), noteRoom/2), foot)
	}
	return result, nil
}

// early returns the endings that are errors, with the code to use if the ending
// has no code.
func early() map[string]toolerr.Code {
	return map[string]toolerr.Code{
		failed: toolerr.ModelError, cancelled: toolerr.Cancelled, pending: toolerr.PendingApproval,
		unbegun: toolerr.InvalidParams, lost: toolerr.ExecutionError, overdue: toolerr.Timeout,
	}
}

// codeOf returns the code with a name sent by another process; ExecutionError
// if it is unknown.
func codeOf(name string) toolerr.Code {
	if code := toolerr.Code(name); slices.Contains(toolerr.Codes(), code) {
		return code
	}
	return toolerr.ExecutionError
}

// spill writes a report that is too long for a result into a file that view and
// grep can read, and returns its name.
func (d *dispatcher) spill(ctx context.Context, a *agent) (string, error) {
	fsys, err := d.box.FS(ctx)
	if err != nil {
		return "", err
	}
	dir, err := d.store.SpillFor(fsys.Paths())
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "agent-"+a.id+".md")
	return name, os.WriteFile(name, []byte(a.outcome.report), 0o600)
}

// abandoned returns the answer to a cancelled call, whose agent has been
// stopped unless other calls wait for it.
func (d *dispatcher) abandoned(ctx context.Context, a *agent, why error) (*mcpkit.Result, error) {
	if errors.Is(why, mcpkit.ErrStopped) {
		return nil, toolerr.New(toolerr.Cancelled, "the server is ending")
	}
	if errors.Is(why, errLeft) {
		return nil, why
	}
	result, err := d.answer(ctx, a)
	if err == nil {
		err = why
	}
	return result, err
}

func shortCost(cost float64) string { return strconv.FormatFloat(cost, 'g', 3, 64) }

// visible returns text from other processes as a single line with control
// characters escaped.
func visible(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		return r
	}, text)
	return pathname.Escape(text)
}
