package main

import (
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/policy"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// commandShell returns the name of the shell that runs commands on a system: bash, except on
// Windows without bash.
func commandShell(system string, env []string) string {
	if system != "windows" {
		return "bash"
	}
	shell, err := proc.FindShell(env)
	if err != nil {
		return "bash" // the first command reports the error
	}
	return shell.Name
}

// checkShellRules returns INVALID_PARAMS for rules that cannot be applied: only commands of
// bash are parsed.
func checkShellRules(shell string, rules policy.Config) error {
	if shell == "bash" || rules.Mode != policy.AllowList && len(rules.Allow)+len(rules.Deny)+len(rules.Ask) == 0 {
		return nil
	}
	return toolerr.New(toolerr.InvalidParams, "--policy, --allow, --deny and --ask need bash, and commands run in %s here: install Git for Windows, whose bash mcp-bash finds", shell)
}

// check returns the policy's verdict on a command. That of another shell than bash is
// undecided: its language is not parsed.
func (s *bashTool) check(command string) policy.Verdict {
	if s.shellName != "bash" {
		return policy.Verdict{Decision: policy.Undecided, Doubts: []policy.Doubt{{Command: shorten(command, 100), Reason: "commands of " + s.shellName + " are not parsed"}}}
	}
	return s.policy.Check(command)
}

// shellTitles are the names of shells in the tool's description.
func shellTitles() map[string]string {
	return map[string]string{"pwsh": "PowerShell", "powershell": "Windows PowerShell", "cmd": "cmd.exe (one line)"}
}

// shellDescription adapts the description of the tool bash, which is written for Linux, to
// Windows: its shells, and levels that do not confine files.
func shellDescription(text, shell, system string, level proc.Level) string {
	if system != "windows" {
		return text
	}
	if title, other := shellTitles()[shell]; other {
		text = strings.Replace(text, "Runs a bash command", "Runs a command in "+title+" (this system has no bash)", 1)
	}
	var lines []string
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "- The working directory and exported variables persist"):
			line = "- Each command begins in the first allowed directory, or in workdir; variables do not persist.\n"
		case strings.HasPrefix(line, "- Sandboxed:") && (level == proc.Off || level == proc.Restricted):
			line = "- Not sandboxed: commands can read and write everything that the user can. The last line says what is enforced."
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "")
}
