package main

import (
	"context"
	"fmt"
	"io"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// doctor tests and prints what this machine enforces, and returns the exit
// code: a failure if bash would refuse to run.
func (s *bashTool) doctor(ctx context.Context, out io.Writer) int {
	runner, err := s.runner()
	if err != nil {
		fmt.Fprintln(out, err)
		return mcpkit.ExitFail
	}
	report, failure := runner.SelfTest(ctx)
	fmt.Fprintf(out, "Landlock ABI: %d\n", report.Landlock)
	for _, tried := range append(report.Higher, report) {
		writeLevelReport(out, tried)
	}
	if failure != nil {
		fmt.Fprintf(out, "\nbash refuses to run: %v\n", failure)
		return mcpkit.ExitFail
	}
	fmt.Fprintf(out, "\nbash runs commands at %s, network %s\n", report.Level, s.config.Network)
	fmt.Fprintln(out, "not confined:")
	for _, gap := range report.Gaps() {
		fmt.Fprintf(out, "  %s\n", gap)
	}
	return mcpkit.ExitOK
}

// writeLevelReport prints the result of the self-test at one level.
func writeLevelReport(out io.Writer, r proc.Report) {
	verdict := "available"
	switch {
	case r.Level == proc.Off:
		verdict = "nothing is confined"
	case !r.Passed():
		verdict = "not available here"
	}
	fmt.Fprintf(out, "\n%s: %s\n", r.Level, verdict)
	if r.Failure != "" {
		fmt.Fprintf(out, "  %s\n", r.Failure)
	}
	for _, c := range r.Checks {
		result, detail := checkResult(c)
		if detail != "" {
			detail = " (" + detail + ")"
		}
		fmt.Fprintf(out, "  %-11s %s%s\n", result, c.Name, detail)
	}
}

// checkResult returns the result of a check, and a detail or "".
func checkResult(c proc.Check) (result, detail string) {
	switch {
	case c.State == proc.NotAvailable:
		return "not tested", c.Why
	case c.State == proc.Enforced && c.Allowed:
		return "allowed", ""
	case c.State == proc.Enforced:
		return "blocked", c.Why
	case c.Allowed:
		return "FAILED", "should be allowed: " + c.Why
	case c.Needed:
		return "FAILED", "should be blocked: " + c.Why
	}
	return "not blocked", ""
}
