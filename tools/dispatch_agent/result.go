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
	used, m := a.currentUsage(), meta{AgentID: a.id, Running: !a.hasEnded()}
	if !m.Running {
		used = a.outcome.usage
		m.Ending, m.Summary, m.Model = a.outcome.ending, a.outcome.isSummary, a.outcome.model
	}
	m.Turns, m.InputTokens, m.OutputTokens, m.Cost = used.turns, used.tokens.Input, used.tokens.Output, used.cost
	m.DurationMS, m.Calls = used.duration.Milliseconds(), used.calls
	return m
}

// runningResult returns the result for an agent that is still running.
func (a *agent) runningResult() *mcpkit.Result {
	line, _ := a.progressLine()
	m := a.meta()
	text := fmt.Sprintf("agent %s is still running after %s: %s\nTo wait for its report: dispatch_agent {\"agent_id\":%q}\n", a.id, textfmt.ShortDuration(a.runTime()), line, a.id)
	return &mcpkit.Result{Text: text, Meta: m}
}

// footer returns the last line of a report: the agent's id, ending and usage.
func (a *agent) footer() string {
	parts := []string{"agent " + a.id, a.outcome.ending}
	if a.outcome.isSummary {
		parts[1] += ", summed up"
	}
	return strings.Join(append(parts, a.outcome.usage.footerParts()...), " · ") + "\n"
}

// endedResult returns the result of an agent that has ended. The error, which
// comes with a result, is RESULT_INVALID if the report does not match
// output_schema, or the code of an ending that is an error.
func (d *dispatcher) endedResult(ctx context.Context, a *agent) (*mcpkit.Result, error) {
	m, foot := a.meta(), a.footer()
	o := a.outcome
	report := o.report
	if room := mcpkit.Budget(ctx) - len(foot) - noteBytes; len(report) > room {
		m.Truncated = true
		file, err := d.writeReportFile(ctx, a)
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
	switch code, early := errorEndings()[o.ending]; {
	case o.misfit != "":
		return result, toolerr.New(toolerr.ResultInvalid, "the report does not fit output_schema, even after a second attempt: %s. To ask again, use agent_id and a prompt. The report:", o.misfit)
	case early && o.fault != nil:
		return result, toolerr.New(knownCode(o.fault.Code), "%s", o.fault.Message)
	case early:
		return result, toolerr.New(code, "the agent ended early: %s", o.ending)
	case o.fault != nil: // the footer stays the last line
		result.Text = fmt.Sprintf("%s[%s: %s]\n\n%s", report, o.ending, shorten(escapeLine(o.fault.Message), noteBytes/2), foot)
	}
	return result, nil
}

// errorEndings returns the endings that are errors, with the code to use if the
// outcome has no error.
func errorEndings() map[string]toolerr.Code {
	return map[string]toolerr.Code{
		endingModelError: toolerr.ModelError, endingCancelled: toolerr.Cancelled, endingPending: toolerr.PendingApproval,
		endingRejected: toolerr.InvalidParams, endingLost: toolerr.ExecutionError, endingHung: toolerr.Timeout,
	}
}

// knownCode returns the code with a name sent by another process; ExecutionError
// if it is unknown.
func knownCode(name string) toolerr.Code {
	if code := toolerr.Code(name); slices.Contains(toolerr.Codes(), code) {
		return code
	}
	return toolerr.ExecutionError
}

// writeReportFile writes a report that is too long for a result into a file
// that view and grep can read, and returns its name.
func (d *dispatcher) writeReportFile(ctx context.Context, a *agent) (string, error) {
	fsys, err := d.box.FS(ctx)
	if err != nil {
		return "", err
	}
	dir, err := d.store.MakeOutputDir(fsys.Paths())
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "agent-"+a.id+".md")
	return name, os.WriteFile(name, []byte(a.outcome.report), 0o600)
}

// cancelledResult returns the answer to a cancelled call, whose agent has been
// stopped unless other calls wait for it. why is the error of waitForEnd. The error is
// never nil: CANCELLED if the server ends, else why or the error of endedResult.
func (d *dispatcher) cancelledResult(ctx context.Context, a *agent, why error) (*mcpkit.Result, error) {
	if errors.Is(why, mcpkit.ErrStopped) {
		return nil, toolerr.New(toolerr.Cancelled, "the server is ending")
	}
	if errors.Is(why, errStillAwaited) {
		return nil, why
	}
	result, err := d.endedResult(ctx, a)
	if err == nil {
		err = why
	}
	return result, err
}

// formatCost returns a cost, in the currency of the prices, with three significant digits.
func formatCost(cost float64) string { return strconv.FormatFloat(cost, 'g', 3, 64) }

// escapeLine returns text from other processes as a single line with control
// characters escaped.
func escapeLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		return r
	}, text)
	return pathname.Escape(text)
}
