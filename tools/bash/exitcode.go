package main

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"syscall"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// meaning explains a command's exit status; "" if it is unknown.
func meaning(result proc.Result, script string) string {
	switch result.Ending {
	case proc.OverMemory:
		return "ended: over its memory"
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
		return "timeout: time is over"
	case code != 1:
		return ""
	}
	switch name {
	case "grep", "egrep", "fgrep", "rg", "zgrep":
		return name + ": no match"
	case "diff", "cmp":
		return name + ": they differ"
	case "test", "[", "[[":
		return name + ": false"
	case "pgrep", "pidof", "which":
		return name + ": none found"
	}
	return ""
}

// signalNames are Linux's signal names, by number.
var signalNames = [...]string{
	1: "HUP", 2: "INT", 3: "QUIT", 4: "ILL", 5: "TRAP", 6: "ABRT", 7: "BUS", 8: "FPE", 9: "KILL", 10: "USR1", 11: "SEGV",
	12: "USR2", 13: "PIPE", 14: "ALRM", 15: "TERM", 18: "CONT", 19: "STOP", 20: "TSTP", 24: "XCPU", 25: "XFSZ", 28: "WINCH", 31: "SYS",
}

func signalName(s syscall.Signal) string {
	if int(s) < len(signalNames) && signalNames[s] != "" {
		return "SIG" + signalNames[s]
	}
	return fmt.Sprintf("signal %d", int(s))
}

// parseSignal parses INT, SIGINT or 2. It reports false for unknown signals.
func parseSignal(text string) (syscall.Signal, bool) {
	name := strings.TrimPrefix(strings.ToUpper(strings.TrimSpace(text)), "SIG")
	for s, known := range signalNames {
		if known != "" && (name == known || name == fmt.Sprint(s)) {
			return syscall.Signal(s), true
		}
	}
	return 0, false
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

// networkFailure matches the messages of programs without network access.
var networkFailure = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)could not resolve|couldn't resolve|temporary failure in name resolution|network is unreachable|` +
		`name or service not known|no such host|\bEAI_AGAIN\b|\bENOTFOUND\b|\bENETUNREACH\b|getaddrinfo|failed to establish a new connection|` +
		`unable to resolve host|dial (tcp|udp)|could not connect to|unable to connect to|unable to access '(https?|git)|failed to lookup address|unknown host|UnknownHostException|socket: (operation not permitted|permission denied)`)
})

// prompt matches a last line that asks for input.
var prompt = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(pass(word|phrase|code)|username|user name|login|\bpin|otp|token|verification code|e-?mail)[^\n]{0,80}[:?>]\s*$|` +
		`[\[(](y/n|yes/no)(/[^\])]*)?[\])]\s*[:?]?\s*$|press (any key|enter|return)[^\n]{0,60}$|\(current\) unix password|(continue|proceed|overwrite|are you sure|ok to proceed)[^\n]{0,80}\?\s*(\([^)]*\))?\s*:?\s*$`)
})
