package policy

import (
	"slices"
	"strings"
)

// program judges what a program may run by its own means: interpreters, and
// options whose value is a command.
func (s *scope) program(c call) {
	if c.function || c.dir == "" && s.builtinCode(c) {
		return
	}
	args := c.args()
	if len(args) == 1 && args[0].is("--version", "-version", "-V", "-v", "--help", "-h", "version", "help") {
		return
	}
	switch c.base {
	case "awk", "gawk", "mawk", "nawk", "original-awk":
		s.awk(c)
		return
	case "sed", "gsed":
		s.sed(c)
		return
	case "git":
		s.git(c)
		return
	case "go":
		if len(args) > 0 && args[0].is("run", "generate", "tool") && !s.ruled(c) {
			s.doubt(false, "go %s runs what files say", args[0].text)
		}
	}
	s.commandOptionsOf(c)
	if otherShell(c.base) {
		s.doubt(true, "%s is a shell of another grammar", c.base)
	}
	s.interpreter(c)
	s.carried(c)
}

// interpreters run code in other languages. The value names the options that
// hold code; with them, or when they read their input, the text hides what
// runs. Else a file does, which is noted but hides no name.
var interpreters = map[string]string{
	"python": "-c", "pypy": "-c", "perl": "-e -E", "ruby": "-e", "node": "-e -p --eval --print", "nodejs": "-e -p --eval --print",
	"deno": "eval", "bun": "-e -p --eval --print", "php": "-r -B -R -E", "lua": "-e", "luajit": "-e", "tclsh": "", "wish": "",
	"expect": "-c", "osascript": "-e", "rscript": "-e", "r": "-e", "julia": "-e -E", "ghc": "-e", "runghc": "", "guile": "-c",
	"scala": "-e", "groovy": "-e", "jshell": "", "elixir": "-e", "erl": "-eval", "clojure": "-e", "racket": "-e", "sbcl": "--eval",
	"swipl": "-g", "octave": "--eval", "gdb": "-ex -x --eval-command", "lldb": "-o", "m4": "", "dc": "-e",
	"vim": "-c --cmd", "vi": "-c", "nvim": "-c --cmd", "ex": "-c", "view": "-c", "emacs": "--eval -eval", "ed": "",
	"sqlite3": "-cmd", "psql": "-c --command", "mysql": "-e", "make": "--eval", "gmake": "--eval", "ninja": "", "just": "-c", "rake": "-e",
	"npx": "-c --call", "bunx": "", "uvx": "", "pipx": "", "tmux": "", "screen": "", "at": "", "batch": "", "crontab": "",
	"systemd-run": "", "docker": "", "podman": "", "ssh": "", "gcore": "", "jq": "never", "entr": "", "run-parts": "",
	"nix-shell": "--run --command", "direnv": "", "mise": "", "asdf": "", "x-terminal-emulator": "-e", "xterm": "-e",
}

// readsInput are the interpreters that run what they read when no file is
// named.
var readsInput = strings.Fields("python pypy perl ruby node nodejs php lua luajit tclsh r julia guile ed ex m4 dc sqlite3 psql mysql at batch crontab")

func (s *scope) interpreter(c call) {
	name := strings.ToLower(c.base)
	options, ok := interpreters[name]
	if !ok {
		name = strings.TrimRight(strings.TrimRight(name, "0123456789."), "-") // python3.12, php8.2
		options, ok = interpreters[name]
	}
	if !ok || options == "never" || s.ruled(c) {
		return
	}
	args := c.args()
	operand := false
	for _, arg := range args {
		for _, option := range strings.Fields(options) {
			if hasCode(option, arg.text) {
				s.doubt(true, "%s %s runs code of another language", c.base, option)
				return
			}
		}
		operand = operand || !strings.HasPrefix(arg.text, "-")
	}
	if (!operand || name == "at") && slices.Contains(readsInput, name) {
		s.doubt(true, "%s runs the code that it reads", c.base)
		return
	}
	s.doubt(false, "%s runs what files or its arguments say", c.base)
}

// ruled reports whether an allow rule covers the very command: what a program
// does with its files is then the user's choice.
func (s *scope) ruled(c call) bool {
	return slices.ContainsFunc(s.check.policy.allow, func(r rule) bool {
		return namesLiterally(r.words[0], c.base) && r.allows(c.fields)
	})
}

// hasCode reports whether an argument is the option, also with its value
// attached or, for one letter, in a cluster (-pe, -c1).
func hasCode(option, arg string) bool {
	if arg == option || strings.HasPrefix(arg, option+"=") {
		return true
	}
	return len(option) == 2 && len(arg) > 2 && arg[0] == '-' && arg[1] != '-' && strings.Contains(arg, option[1:])
}

// commandOptions are the options of ordinary programs whose value is a
// command that they run.
var commandOptions = map[string]string{
	"tar":    "-I --use-compress-program --to-command --rsh-command -F --info-script --new-volume-script --checkpoint-action",
	"bsdtar": "--use-compress-program", "cpio": "--rsh-command", "sort": "--compress-program", "split": "--filter",
	"rg": "--pre --hostname-bin", "ag": "--pager", "bat": "--pager", "batcat": "--pager", "delta": "--pager",
	"man": "-P --pager -H --html", "zip": "-TT --unzip-command", "rsync": "-e --rsh --rsync-path", "scp": "-S -o", "sftp": "-S -o",
	"go": "-exec -toolexec -vettool", "gcc": "-wrapper", "g++": "-wrapper", "cargo": "--config", "install": "--strip-program",
	"less": "-k --lesskey-src", "ctags": "--options", "fd": "-x -X --exec --exec-batch", "fdfind": "-x -X --exec --exec-batch",
	"tcpdump": "-z", "logrotate": "-f", "csplit": "", "diff3": "--diff-program", "sdiff": "--diff-program", "hyperfine": "-p -s -c --prepare --setup --cleanup",
	"npm": "--node-options --script-shell", "pip": "--config-settings", "date": "", "journalctl": "", "openssl": "-engine",
	"dpkg": "--pre-invoke --post-invoke", "apt": "-o", "apt-get": "-o", "gpg": "--exec-path", "mail": "", "wget": "--use-askpass",
}

// commandOptionsOf judges every command that an option gives: its value, or
// all words after it.
func (s *scope) commandOptionsOf(c call) {
	options, args := strings.Fields(commandOptions[c.base]), c.args()
	where := "an option of " + c.base
	for i, arg := range args {
		for _, option := range options {
			value, ok := optionValue(option, arg.text)
			switch {
			case !ok:
			case value != "":
				s.commandValue(field{text: value}, where)
			case strings.HasPrefix(c.base, "fd"): // fd -x COMMAND…
				s.commandValue(joined(args[i+1:]), where)
			case i+1 < len(args):
				s.commandValue(args[i+1], where)
			}
		}
		switch {
		case c.base == "tar" && tarRuns(arg.text, i == 0):
			s.doubt(true, "an option of tar is a command to run")
		case (c.base == "rsync" || c.base == "man") && clusterEnds(arg.text, map[string]string{"rsync": "e", "man": "P"}[c.base]) && i+1 < len(args):
			s.commandValue(args[i+1], where)
		case c.base == "less" && strings.HasPrefix(arg.text, "+") && strings.ContainsAny(arg.text, "!|"+anything):
			s.doubt(true, "less %s runs a command", excerpt(strings.ReplaceAll(arg.text, anything, "…")))
		}
	}
}

// tarRuns reports whether an argument is a cluster of tar's short options with
// -I or -F among them. The first one needs no dash.
func tarRuns(arg string, first bool) bool {
	letters, dashed := strings.CutPrefix(arg, "-")
	if !dashed && !first || strings.HasPrefix(letters, "-") {
		return false
	}
	if end := strings.IndexAny(letters, "bCfgHKLNTVX"); end >= 0 && dashed {
		letters = letters[:end] // what follows is a value
	}
	return strings.ContainsAny(letters, "IF")
}

// clusterEnds reports whether an argument is short options of which the last
// is the letter.
func clusterEnds(arg, letter string) bool {
	return len(arg) > 2 && arg[0] == '-' && arg[1] != '-' && strings.HasSuffix(arg, letter)
}

// optionValue reports whether arg is the option, and its attached value.
func optionValue(option, arg string) (string, bool) {
	if arg == option {
		return "", true
	}
	if value, ok := strings.CutPrefix(arg, option+"="); ok {
		return value, true
	}
	if len(option) == 2 && option[0] == '-' && !strings.HasPrefix(arg, "--") {
		return strings.CutPrefix(arg, option)
	}
	if name, value, _ := strings.Cut(arg, "="); len(name) > 5 && strings.HasPrefix(option, name) && strings.HasPrefix(name, "--") {
		return value, true
	}
	return "", false
}

// commandValue judges a command in an option or a variable. It is code that a
// program runs later, or not at all: so what is not clearly fine is a doubt.
func (s *scope) commandValue(value field, where string) {
	text := strings.TrimPrefix(strings.TrimPrefix(value.text, "exec="), "!")
	if strings.TrimSpace(text) == "" {
		return
	}
	if !value.unknown() && !value.many {
		trial := &check{policy: s.check.policy, nodes: s.check.nodes, bytes: s.check.bytes}
		inner := &scope{
			check: trial, depth: s.depth + 1, vars: newVariables(), functions: map[string]bool{},
			positional: nil, at: s.at,
		}
		inner.parse(text)
		s.check.nodes, s.check.bytes = trial.nodes, trial.bytes
		if trial.verdict().Decision == Allow {
			return
		}
	}
	s.doubt(true, "%s is a command to run: %s", where, excerpt(strings.ReplaceAll(value.text, anything, "…")))
}
