package policy

import (
	"slices"
	"strings"
)

// carriers are programs that take a command somewhere among their arguments,
// in a grammar of their own. operands is the number of operands that may precede
// the command; "far" says that it runs elsewhere, so that bans of the network do
// not hold for it.
var carriers = map[string]struct {
	operands int
	far      bool
}{
	"tmux": {6, false}, "byobu": {6, false}, "screen": {4, false}, "zellij": {3, false}, "dtach": {2, false}, "abduco": {2, false},
	"at": {2, false}, "batch": {1, false}, "crontab": {1, false}, "entr": {1, false}, "watchexec": {1, false}, "nodemon": {1, false}, "watchman-make": {2, false},
	"daemonize": {1, false}, "daemon": {1, false}, "systemd-run": {2, false}, "socat": {3, false}, "expect": {2, false}, "inotifyd": {1, false},
	"vim": {2, false}, "vi": {2, false}, "nvim": {2, false}, "ex": {2, false}, "view": {2, false}, "emacs": {2, false}, "gdb": {2, false},
	"run-parts": {0, false}, "npm": {0, false}, "npx": {0, false}, "scp": {0, false}, "sftp": {0, false}, "xterm": {1, false}, "x-terminal-emulator": {1, false},
	"ssh": {4, true}, "docker": {4, true}, "podman": {4, true}, "kubectl": {4, true}, "nerdctl": {4, true},
}

const (
	maxCarried   = 64      // readings of one command
	maxCarryText = 4 << 10 // bytes of an argument that is read as code
)

// carried judges what a carrier may run. Which of its words that is, is not
// known for sure: so only rules that are surely broken count, and bans.
func (s *scope) carried(c call) {
	how, ok := carriers[strings.ToLower(c.base)]
	if !ok || s.ruled(c) {
		return
	}
	readings, operands := 0, 0
	try := func(judge func(inner *scope)) {
		if readings++; readings <= maxCarried && s.check.denied == nil {
			s.trial(how.far, judge)
		}
	}
	args := c.args()
	if c.base == "npm" { // what follows -- is for the script
		if end := slices.IndexFunc(args, func(f field) bool { return f.is("--") }); end >= 0 {
			args = args[:end]
		}
	}
	for i, arg := range args {
		if arg.many || len(arg.text) > maxCarryText {
			continue
		}
		if !strings.HasPrefix(arg.text, "-") {
			if !arg.unknown() && operands < how.operands {
				try(func(inner *scope) { inner.simple(args[i:], nil, false) })
			}
			operands++
		}
		for _, code := range codeIn(arg.text) {
			try(func(inner *scope) { inner.parse(code) })
		}
	}
	if in := c.stdin(); in.given && slices.Contains([]string{"at", "batch", "crontab"}, c.base) {
		for line := range strings.Lines(in.text.text) {
			for _, code := range append(codeIn(line), afterFields(line, 5)) {
				try(func(inner *scope) { inner.parse(code) })
			}
		}
	}
}

// codeIn returns the parts of an argument that may be shell code: all of it,
// and what stands after a sign that options and editors put before code, or
// within quotes.
func codeIn(text string) (codes []string) {
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

// afterFields is a line without its first n words.
func afterFields(line string, n int) string {
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

// trial judges something apart and takes over only what a rule of the user's,
// or the ban of network clients, says of it.
func (s *scope) trial(far bool, judge func(inner *scope)) {
	trial := s.check.apart()
	trial.sure = true
	judge(&scope{check: trial, depth: s.depth + 1, vars: newVariables(), functions: map[string]bool{}, at: s.at})
	s.check.nodes, s.check.bytes = trial.nodes, trial.bytes
	if d := trial.denied; d != nil && (strings.HasPrefix(d.rule, "deny ") || d.rule == "network clients" && !far) {
		s.check.deny(*d)
	}
	if s.check.asked == nil {
		s.check.asked = trial.asked
	}
}

// processProgram reports whether a word names the program of a running
// process, which is most likely the shell itself.
func processProgram(word string) bool {
	return strings.HasPrefix(word, "/proc/") && strings.HasSuffix(word, "/exe")
}
