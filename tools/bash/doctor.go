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
func (s *shell) doctor(ctx context.Context, out io.Writer) int {
	runner, err := s.runner()
	if err != nil {
		fmt.Fprintln(out, err)
		return mcpkit.ExitFail
	}
	report, failure := runner.SelfTest(ctx)
	fmt.Fprintf(out, "Landlock version %d\n", report.Landlock)
	for _, tried := range append(report.Higher, report) {
		writeLevelReport(out, tried)
	}
	if failure != nil {
		fmt.Fprintf(out, "\nbash refuses to run: %v\n", failure)
		return mcpkit.ExitFail
	}
	fmt.Fprintf(out, "\nbash runs commands at %s, network %s\n", report.Level, s.config.Network)
	for _, gap := range report.Gaps() {
		fmt.Fprintf(out, "  open: %s\n", gap)
	}
	return mcpkit.ExitOK
}

// writeLevelReport prints the result of the self-test at one level.
func writeLevelReport(out io.Writer, r proc.Report) {
	verdict := "every promise is kept"
	switch {
	case r.Level == proc.Off:
		verdict = "nothing is confined"
	case !r.Passed():
		verdict = "not usable here"
	}
	fmt.Fprintf(out, "\n%s: %s\n", r.Level, verdict)
	if r.Failure != "" {
		fmt.Fprintf(out, "  %s\n", r.Failure)
	}
	for _, c := range r.Checks {
		kind := ""
		if !c.Needed {
			kind = " (not promised)"
		}
		fmt.Fprintf(out, "  %-13s %s%s: %s\n", c.State, c.Name, kind, c.Why)
	}
}
