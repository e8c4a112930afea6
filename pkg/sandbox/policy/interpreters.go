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
	name, options, ok := interpreterOf(c.base)
	if !ok || options == "never" || s.ruled(c) {
		return
	}
	args, language := c.args(), languageOf(name)
	operand, coded := false, false
	for i, arg := range args {
		for _, option := range strings.Fields(options) {
			if !hasCode(option, arg.text) {
				continue
			}
			harmless := harmlessCode(language, codeAfter(option, args[i:]))
			s.doubt(!harmless, "%s %s runs code of another language", c.base, option)
			if !harmless {
				return
			}
			coded = true
		}
		if !strings.HasPrefix(arg.text, "-") {
			s.foreignOperand(c, language, arg, operand)
			operand = true
		}
	}
	if coded {
		return
	}
	if (!operand || name == "at") && slices.Contains(readsInput, name) && !runsNoInput(name, args) {
		in := c.stdin()
		s.doubt(!in.given || !harmlessCode(language, in.text.text), "%s runs the code that it reads", c.base)
		return
	}
	if name == "make" || name == "gmake" || name == "ninja" || name == "just" {
		if slices.ContainsFunc(args, hiddenRecipe(args)) {
			s.doubt(true, "%s runs the recipes that it reads", c.base)
			return
		}
	}
	if name == "ed" || name == "ex" {
		if in := c.stdin(); in.given && strings.ContainsAny(in.text.text, "!"+anything) {
			s.doubt(true, "%s runs the code that it reads", c.base)
			return
		}
	}
	s.doubt(false, "%s runs what files or its arguments say", c.base)
}

// interpreterOf looks a program up among the interpreters, with and without
// its version: python3.12, php8.2.
func interpreterOf(base string) (name, options string, ok bool) {
	name = strings.ToLower(base)
	if options, ok = interpreters[name]; !ok {
		name = strings.TrimRight(strings.TrimRight(name, "0123456789."), "-")
		options, ok = interpreters[name]
	}
	return name, options, ok
}

// languageOf returns the language that an interpreter takes.
func languageOf(name string) string {
	switch name {
	case "pypy":
		return "python"
	case "nodejs", "bun":
		return "node"
	case "luajit":
		return "lua"
	case "vi", "nvim", "view", "ex":
		return "vim"
	}
	return name
}

// foreignOperand judges an operand that is code, or that the interpreter may
// take for a command.
func (s *scope) foreignOperand(c call, language string, arg field, later bool) {
	text := strings.TrimSpace(arg.text)
	switch {
	case language == "sqlite3" && later && !harmlessCode(language, text):
		s.doubt(!arg.unknown() || strings.HasPrefix(text, "."), "%s runs code of another language", c.base)
	case (language == "perl" || language == "ruby") && (strings.HasPrefix(text, "|") || strings.HasSuffix(text, "|")):
		s.doubt(true, "%s runs the command in %s", c.base, excerpt(strings.ReplaceAll(text, anything, "…")))
	}
}

// runsNoInput reports whether options keep an interpreter from running what
// it reads.
func runsNoInput(name string, args []field) bool {
	return slices.ContainsFunc(args, func(f field) bool {
		return name == "crontab" && f.is("-l", "-r") || name == "at" && f.is("-l", "-r", "-d", "-c") || name == "node" && f.is("--test", "--version")
	})
}

// hiddenRecipe returns a test for arguments of make by which its recipes, or
// the shell that runs them, come from the command itself.
func hiddenRecipe(args []field) func(field) bool {
	i := -1
	return func(f field) bool {
		i++
		value, ok := optionValue("-f", f.text)
		for _, long := range []string{"--file", "--makefile", "--justfile"} {
			if !ok {
				value, ok = optionValue(long, f.text)
			}
		}
		if ok && value == "" && i+1 < len(args) {
			value = args[i+1].text
		}
		return ok && (value == "-" || hiddenScript(field{text: value})) || strings.HasPrefix(f.text, "SHELL=") || strings.HasPrefix(f.text, ".SHELLFLAGS=")
	}
}

// codeAfter returns the code of an option: the rest of its word, or the word
// behind it.
func codeAfter(option string, args []field) string {
	text, attached := args[0].text, ""
	if value, ok := strings.CutPrefix(text, option+"="); ok {
		return value
	}
	if len(option) == 2 && !strings.HasPrefix(text, "--") {
		_, attached, _ = strings.Cut(text[1:], option[1:])
	}
	if attached != "" || len(args) < 2 {
		return attached
	}
	return args[1].text
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

// clusterEnds reports whether an argument consists of short options, the last of
// which is the letter.
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

// commandValue judges a command in an option or a variable, which a program
// runs later, or not at all. What is not clearly fine is a doubt.
func (s *scope) commandValue(value field, where string) {
	text := strings.TrimPrefix(strings.TrimPrefix(value.text, "exec="), "!")
	if strings.TrimSpace(text) == "" {
		return
	}
	hides := true
	if !value.unknown() && !value.many {
		trial := s.tried(text)
		if trial.verdict().Decision == Allow {
			return
		}
		hides = trial.hidesAny()
	}
	s.doubt(hides, "%s is a command to run: %s", where, excerpt(strings.ReplaceAll(value.text, anything, "…")))
}

// gitAlias judges an alias of git, to which later words may be added.
func (s *scope) gitAlias(value, where string) {
	text, shell := strings.CutPrefix(value, "!")
	if !shell {
		text = "git " + text
	}
	with := s.tried(text + ` "$@"`)
	if with.hidesAny() {
		s.doubt(true, "%s is a command to run: %s", where, excerpt(strings.ReplaceAll(value, anything, "…")))
		return
	}
	s.commandValue(field{text: text}, where)
}

// tried returns the findings for a text that another program gives to a shell.
func (s *scope) tried(text string) *check {
	trial := s.check.apart()
	inner := &scope{check: trial, depth: s.depth + 1, vars: newVariables(), functions: map[string]bool{}, at: s.at}
	inner.parse(text)
	s.check.nodes, s.check.bytes = trial.nodes, trial.bytes
	return trial
}

// hidesAny reports whether the checked text may hold a command that a rule
// names.
func (c *check) hidesAny() bool { return c.denied != nil || c.asked != nil || c.hides }
