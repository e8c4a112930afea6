package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/egress"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/policy"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// noteBytes is the part of the budget reserved for mcpkit's notes.
const noteBytes = 1 << 10

// meta is the metadata of both tools' results.
type meta struct {
	ExitCode       *int     `json:"exit_code,omitempty" jsonschema:"of the command; missing while it runs"`
	DurationMS     int64    `json:"duration_ms" jsonschema:"so far, while it runs"`
	Ending         string   `json:"ending,omitempty" jsonschema:"exited, timeout, cancelled, killed, memory or lost"`
	Cwd            string   `json:"cwd,omitempty" jsonschema:"where the next command of the session begins"`
	Bytes          int64    `json:"output_bytes" jsonschema:"printed in all"`
	Lines          int64    `json:"output_lines" jsonschema:"printed in all"`
	Truncated      bool     `json:"truncated" jsonschema:"not all of the output is shown"`
	File           string   `json:"output_file,omitempty" jsonschema:"has the whole output"`
	FileBytes      int64    `json:"output_file_bytes,omitempty"`
	Changed        []string `json:"changed,omitempty" jsonschema:"files that changed since they were viewed"`
	LeftBehind     int      `json:"ended_processes,omitempty" jsonschema:"processes that the command left running, which were ended"`
	Reverted       []string `json:"taken_back,omitempty" jsonschema:"protected files whose changes were taken back: new ones were removed, others are as they were"`
	RevertedCopies []string `json:"taken_back_kept,omitempty" jsonschema:"directories, for the user, with what these files had become"`

	Changes string `json:"changes,omitempty" jsonschema:"id by which bash_job undoes what the command changed"`

	JobID   string `json:"job_id,omitempty"`
	Running bool   `json:"running,omitempty"`
	Cursor  int64  `json:"cursor,omitempty" jsonschema:"the value of since that goes on here"`
	Matched bool   `json:"matched,omitempty" jsonschema:"wait_for was found"`
	Prompt  string `json:"prompt,omitempty" jsonschema:"the last line, which seems to wait for an answer"`
	Jobs    []row  `json:"jobs,omitempty"`

	Policy  *verdictMeta `json:"policy,omitempty" jsonschema:"what could be told of the command before it ran"`
	Sandbox *sandboxMeta `json:"sandbox,omitempty" jsonschema:"what confined the command"`
}

// verdictMeta is the metadata about the policy's decision.
type verdictMeta struct {
	Decision  string         `json:"decision" jsonschema:"allow, ask or undecided"`
	Command   string         `json:"command,omitempty"`
	Name      string         `json:"name,omitempty"`
	Rule      string         `json:"rule,omitempty"`
	Undecided []policy.Doubt `json:"undecided,omitempty" jsonschema:"parts that the text does not decide"`
}

// sandboxMeta is the metadata about the confinement of a command.
type sandboxMeta struct {
	Level    string   `json:"level" jsonschema:"L2, L1, seatbelt, restricted or off"`
	FS       string   `json:"fs" jsonschema:"what of the file system is closed"`
	Net      string   `json:"net" jsonschema:"what of the network is open"`
	Procs    string   `json:"procs" jsonschema:"what other processes are closed"`
	Kill     string   `json:"kill" jsonschema:"how all processes of the command are killed"`
	Gaps     []string `json:"gaps" jsonschema:"what is not confined"`
	SelfTest string   `json:"selftest" jsonschema:"self-test: checks passed, of those run"`
}

// newVerdictMeta returns the metadata about a policy's decision.
func newVerdictMeta(v policy.Verdict) *verdictMeta {
	return &verdictMeta{Decision: string(v.Decision), Command: v.Command, Name: v.Name, Rule: v.Rule, Undecided: v.Doubts}
}

// newSandboxMeta returns the metadata about the confinement of a command. more
// are gaps in addition to those in the report.
func newSandboxMeta(r proc.Report, net egress.Net, more []string) *sandboxMeta {
	kept, tried := 0, 0
	for _, c := range r.Checks {
		if c.Needed && c.State != proc.NotAvailable {
			tried++
			if c.State == proc.Enforced {
				kept++
			}
		}
	}
	m := &sandboxMeta{Level: string(r.Level), Net: net.String(), Gaps: append(r.Gaps(), more...), SelfTest: fmt.Sprintf("%d of %d", kept, tried)}
	switch r.Level {
	case proc.L2:
		m.FS, m.Procs, m.Kill = "writes in roots and $TMPDIR, secrets hidden", "own pid namespace", "pid namespace"
	case proc.L1:
		m.FS, m.Procs, m.Kill = "writes in roots and $TMPDIR, secrets outside roots unreadable", "no signals or tracing outside", "subreaper"
	case proc.Seatbelt:
		m.FS, m.Procs, m.Kill = "writes in roots and $TMPDIR, secrets unreadable", "no signals outside", "descendants found in the process table"
	case proc.Restricted:
		m.FS, m.Net, m.Procs, m.Kill = "open", "on", "no privileges; same user", "job object"
	default:
		m.FS, m.Procs, m.Kill, m.Net, m.SelfTest = "open", "open", "subreaper", "on", "none"
	}
	return m
}

// sandboxText summarizes the confinement of a command, for the last line.
func sandboxText(level proc.Level, net egress.Net) string {
	switch level {
	case proc.Off:
		return "sandbox: off"
	case proc.Restricted:
		return "sandbox: restricted (no privileges, all processes end; files and network open)"
	}
	words := "sandbox: writes limited to roots"
	switch {
	case net.On:
	case net.Allow != nil:
		words += ", network limited to " + shorten(net.Allow.String(), 60)
	default:
		words += ", network off"
	}
	if level == proc.L1 || level == proc.Seatbelt {
		words += " (" + string(level) + ")"
	}
	return words
}

// endedMeta returns the metadata of a command that has ended.
func (r *runningCommand) endedMeta(result proc.Result) meta {
	return meta{
		ExitCode: &result.ExitCode, DurationMS: result.Duration.Milliseconds(), Ending: string(result.Ending),
		Bytes: r.output.Size(), Lines: r.output.Lines(), LeftBehind: result.LeftBehind, Reverted: displayPaths(r.fs, result.Reverted), RevertedCopies: result.CopyDirs,
		Changes: result.Undo, Policy: newVerdictMeta(r.verdict), Sandbox: newSandboxMeta(r.report, r.tool.config.Network, result.Gaps),
	}
}

// displayPaths returns paths as shown in results.
func displayPaths(fsys *sandbox.FS, paths []string) []string {
	var out []string
	for _, path := range paths {
		out = append(out, fsys.Display(path))
	}
	return out
}

// footer returns the last line of an answer. It sets m.Changed. dir is the next
// command's working directory.
func (r *runningCommand) footer(result proc.Result, dir string, m *meta) string {
	parts := []string{exitText(result, r.args.Command), formatDuration(result.Duration)}
	switch {
	case dir != r.start.dir:
		parts = append(parts, "cwd "+r.fs.Display(dir)+" (changed)")
	case dir != r.fs.Roots()[0].Path:
		parts = append(parts, "cwd "+r.fs.Display(dir))
	}
	m.Changed = r.watch.changedFiles(r.fs)
	if words := changedText(m.Changed); words != "" {
		parts = append(parts, words)
	}
	if result.LeftBehind > 0 {
		parts = append(parts, fmt.Sprintf("killed %s that it left running (run_in_background keeps a program running)", textfmt.Count(result.LeftBehind, "process")))
	}
	if len(m.Reverted) > 0 {
		parts = append(parts, revertedText(r.fs, result.Reverted, m.RevertedCopies))
	}
	for _, gap := range result.Unguarded {
		parts = append(parts, unguardedText(gap))
	}
	if words := r.tool.undos.unheldText(r.fs, result.Undo); words != "" {
		parts = append(parts, words)
	}
	parts = append(parts, sandboxText(result.Level, r.tool.config.Network))
	return strings.Join(parts, " · ") + "\n"
}

// unguardedText says what is not, or not fully, protected from a command's files.
func unguardedText(gap string) string { return "not protected: " + shorten(gap, 600) }

// joinLines appends foot to text on a new line.
func joinLines(text, foot string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + foot
}

// formatDuration returns a short form of d, such as "120ms", "1.5s" or "2m3s".
func formatDuration(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1fms", float64(d.Microseconds())/1000)
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Seconds()), ".0") + "s"
	}
	return d.Round(time.Second).String()
}
