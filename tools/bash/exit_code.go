package main

import (
	"fmt"
	"strings"
	"syscall"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// exitMeaning explains a command's exit status; "" if it is unknown.
func exitMeaning(result proc.Result, script string) string {
	switch result.Ending {
	case proc.OverMemory:
		return "killed: over its memory limit"
	case proc.Killed:
		return "killed"
	case proc.Lost:
		return "lost: its supervisor was killed"
	}
	code := result.ExitCode
	if code > 128 && code <= 128+64 {
		return signalName(syscall.Signal(code - 128))
	}
	name := lastProgram(script)
	switch {
	case code == 126:
		return "not executable"
	case code == 127:
		return "command not found"
	case code == 124 && name == "timeout":
		return "timeout: time limit reached"
	case code != 1:
		return ""
	}
	switch name {
	case "grep", "egrep", "fgrep", "rg", "zgrep":
		return name + ": no match"
	case "diff", "cmp":
		return name + ": the files differ"
	case "test", "[", "[[":
		return name + ": false"
	case "pgrep", "pidof", "which":
		return name + ": none found"
	}
	return ""
}

// lastProgram returns the name of the program that gives a simple command line
// its exit status, or "" if quotes or structure make it uncertain.
func lastProgram(script string) string {
	line := strings.TrimSpace(script)
	if strings.ContainsAny(line, "\n\\`") || strings.Contains(line, "$(") {
		return ""
	}
	quoted := rune(0)
	begin := 0
	for i, r := range line {
		switch {
		case quoted != 0:
			if r == quoted {
				quoted = 0
			}
		case r == '\'' || r == '"':
			quoted = r
		case strings.ContainsRune("|;&", r):
			begin = i + 1
		}
	}
	for _, word := range strings.Fields(line[begin:]) {
		switch {
		case word == "!" || word == "!!":
			return ""
		case strings.Contains(word, "="):
		default:
			return word[strings.LastIndexByte(word, '/')+1:]
		}
	}
	return ""
}

// exitText returns a command's exit status with its meaning.
func exitText(result proc.Result, script string) string {
	text := fmt.Sprintf("exit %d", result.ExitCode)
	if result.ExitCode < 0 {
		text = "no exit status"
	}
	if what := exitMeaning(result, script); what != "" {
		text += " (" + what + ")"
	}
	return text
}
