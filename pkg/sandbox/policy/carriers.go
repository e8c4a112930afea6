package policy

import (
	"slices"
	"strings"
)

// carriers are programs that may run a command given somewhere among their
// arguments, in their own grammar. At most operands operands precede the
// command. remote programs run it on another machine or in a container, where
// the ban of network clients does not apply.
var carriers = map[string]struct {
	operands int
	remote   bool
}{
	"tmux": {6, false}, "byobu": {6, false}, "screen": {4, false}, "zellij": {3, false}, "dtach": {2, false}, "abduco": {2, false},
	"at": {2, false}, "batch": {1, false}, "crontab": {1, false}, "entr": {1, false}, "watchexec": {1, false}, "nodemon": {1, false}, "watchman-make": {2, false},
	"daemonize": {1, false}, "daemon": {1, false}, "systemd-run": {2, false}, "socat": {3, false}, "expect": {2, false}, "inotifyd": {1, false},
	"vim": {2, false}, "vi": {2, false}, "nvim": {2, false}, "ex": {2, false}, "view": {2, false}, "emacs": {2, false}, "gdb": {2, false},
	"run-parts": {0, false}, "npm": {0, false}, "npx": {0, false}, "scp": {0, false}, "sftp": {0, false}, "xterm": {1, false}, "x-terminal-emulator": {1, false},
	"ssh": {4, true}, "docker": {4, true}, "podman": {4, true}, "kubectl": {4, true}, "nerdctl": {4, true},
}

const (
	// maxCarriedReadings and maxCarriedBytes bound the readings of one
	// carrier's command, and the bytes of an argument that is read as code.
	maxCarriedReadings = 64      // readings of one command
	maxCarriedBytes    = 4 << 10 // bytes of an argument that is read as code
)

// checkCarriedCommands checks every argument, and every rest of the arguments, that a
// carrier may run as a command. Which of them it runs is not known, so only
// certain matches of deny and ask rules and the ban of network clients count.
// It ignores other programs and those that an allow rule covers.
func (s *shellText) checkCarriedCommands(c simpleCommand) {
	how, ok := carriers[strings.ToLower(c.progName)]
	if !ok || s.isAllowedByRule(c) {
		return
	}
	readings, operands := 0, 0
	try := func(judge func(inner *shellText)) {
		if readings++; readings <= maxCarriedReadings && s.eval.denial == nil {
			s.checkCertainMatches(how.remote, judge)
		}
	}
	args := c.args()
	if c.progName == "npm" { // what follows -- is for the script
		if end := slices.IndexFunc(args, func(f field) bool { return f.is("--") }); end >= 0 {
			args = args[:end]
		}
	}
	for i, arg := range args {
		if arg.maybeMany || len(arg.text) > maxCarriedBytes {
			continue
		}
		if !strings.HasPrefix(arg.text, "-") {
			if !arg.hasUnknown() && operands < how.operands {
				try(func(inner *shellText) { inner.checkCommand(args[i:], nil, false) })
			}
			operands++
		}
		for _, code := range possibleCode(arg.text) {
			try(func(inner *shellText) { inner.checkText(code) })
		}
	}
	if in := c.stdin(); in.given && slices.Contains([]string{"at", "batch", "crontab"}, c.progName) {
		for line := range strings.Lines(in.text.text) {
			for _, code := range append(possibleCode(line), skipWords(line, 5)) {
				try(func(inner *shellText) { inner.checkText(code) })
			}
		}
	}
}

// possibleCode returns the parts of an argument that may be shell code: the
// whole of it, the text after a sign that options and editors put before code,
// and the text within quotes. It returns nil for an argument without white
// space.
func possibleCode(text string) (codes []string) {
	if !strings.ContainsAny(text, " \t\n") {
		return nil
	}
	codes = append(codes, text)
	for _, sign := range []string{"!", "=", ":", " ", "'", `"`, "("} {
		if _, after, ok := strings.Cut(text, sign); ok && strings.TrimSpace(after) != "" {
			codes = append(codes, strings.TrimRight(after, `"'),`))
			if _, last, ok := strings.Cut(after, sign); ok && sign == " " {
				codes = append(codes, strings.Trim(last, `"'`))
			}
			if quote := strings.IndexByte(after, sign[0]); quote > 0 && (sign == "'" || sign == `"`) {
				codes = append(codes, after[:quote])
			}
		}
	}
	if before, _, ok := strings.Cut(text, ","); ok { // socat EXEC:"COMMAND",pty
		if _, after, ok := strings.Cut(before, ":"); ok {
			codes = append(codes, after)
		}
	}
	return codes
}

// skipWords returns line without its first n words; "" if it has no more.
func skipWords(line string, n int) (rest string) {
	for range n {
		line = strings.TrimLeft(line, " \t")
		i := strings.IndexAny(line, " \t")
		if i < 0 {
			return ""
		}
		line = line[i:]
	}
	return line
}

// checkCertainMatches runs check on a trial evaluation that counts certain matches
// only. It takes over a denial by a user's rule, a question and, unless remote
// is set, a denial of a network client.
func (s *shellText) checkCertainMatches(remote bool, check func(inner *shellText)) {
	trial := s.eval.newTrial()
	trial.certainOnly = true
	check(&shellText{eval: trial, depth: s.depth + 1, vars: newVariables(), functionsHere: map[string]bool{}, current: s.current})
	s.eval.nodesLeft, s.eval.bytesLeft = trial.nodesLeft, trial.bytesLeft
	if d := trial.denial; d != nil && (strings.HasPrefix(d.rule, "deny ") || d.rule == "network clients" && !remote) {
		s.eval.deny(*d)
	}
	if s.eval.question == nil {
		s.eval.question = trial.question
	}
}

// isProcExe reports whether a word is /proc/…/exe, the program of a running
// process: most likely the shell itself.
func isProcExe(word string) bool {
	return strings.HasPrefix(word, "/proc/") && strings.HasSuffix(word, "/exe")
}
