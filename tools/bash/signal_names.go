package main

import (
	"fmt"
	"strings"
	"syscall"
)

// signalNames are Linux's signal names, by number.
var signalNames = [...]string{
	1: "HUP", 2: "INT", 3: "QUIT", 4: "ILL", 5: "TRAP", 6: "ABRT", 7: "BUS", 8: "FPE", 9: "KILL", 10: "USR1", 11: "SEGV",
	12: "USR2", 13: "PIPE", 14: "ALRM", 15: "TERM", 18: "CONT", 19: "STOP", 20: "TSTP", 24: "XCPU", 25: "XFSZ", 28: "WINCH", 31: "SYS",
}

// signalName returns "SIGINT", or "signal 70" for a signal without a name.
func signalName(s syscall.Signal) string {
	if int(s) < len(signalNames) && signalNames[s] != "" {
		return "SIG" + signalNames[s]
	}
	return fmt.Sprintf("signal %d", int(s))
}

// parseSignal parses INT, SIGINT or 2. It returns false for unknown signals.
func parseSignal(text string) (number syscall.Signal, ok bool) {
	name := strings.TrimPrefix(strings.ToUpper(strings.TrimSpace(text)), "SIG")
	for s, known := range signalNames {
		if known != "" && (name == known || name == fmt.Sprint(s)) {
			return syscall.Signal(s), true
		}
	}
	return 0, false
}
