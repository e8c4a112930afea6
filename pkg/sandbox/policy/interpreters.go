package policy

import (
	"slices"
	"strings"
)

// interpreters are programs that run code of other languages, with the options
// that hold code. Code in an option or in the input hides what runs. Code in a
// file is also noted as a doubt, but hides no name. "never" means that the
// program cannot start others.
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

// inputInterpreters are the interpreters that run their standard input if no
// file is named.
var inputInterpreters = strings.Fields("python pypy perl ruby node nodejs php lua luajit tclsh r julia guile ed ex m4 dc sqlite3 psql mysql at batch crontab")

// addForeignCodeDoubt adds a doubt about a program that runs code of another
// language (python, make, vim), which the policy cannot read: one that may hide
// a command if the code is an argument or the input and not known to be
// harmless, a weaker one if the code is in files. It adds none for other
// programs, nor if an allow rule covers the very command.
func (s *shellText) addForeignCodeDoubt(c simpleCommand) {
	name, options, ok := lookupInterpreter(c.progName)
	if !ok || options == "never" || s.isAllowedByRule(c) {
		return
	}
	args, language := c.args(), languageOf(name)
	operand, coded := false, false
	for i, arg := range args {
		for _, option := range strings.Fields(options) {
			if !isCodeOption(option, arg.text) {
				continue
			}
			harmless := isHarmlessCode(language, codeOfOption(option, args[i:]))
			s.addDoubt(!harmless, "%s %s runs code of another language", c.progName, option)
			if !harmless {
				return
			}
			coded = true
		}
		if !strings.HasPrefix(arg.text, "-") {
			s.checkForeignOperand(c, language, arg, operand)
			operand = true
		}
	}
	if coded {
		return
	}
	if (!operand || name == "at") && slices.Contains(inputInterpreters, name) && !ignoresInput(name, args) {
		in := c.stdin()
		s.addDoubt(!in.given || !isHarmlessCode(language, in.text.text), "%s runs the code that it reads", c.progName)
		return
	}
	if name == "make" || name == "gmake" || name == "ninja" || name == "just" {
		if slices.ContainsFunc(args, newHiddenRecipeTest(args)) {
			s.addDoubt(true, "%s runs the recipes that it reads", c.progName)
			return
		}
	}
	if name == "ed" || name == "ex" {
		if in := c.stdin(); in.given && strings.ContainsAny(in.text.text, "!"+unknownText) {
			s.addDoubt(true, "%s runs the code that it reads", c.progName)
			return
		}
	}
	s.addDoubt(false, "%s runs what files or its arguments say", c.progName)
}

// lookupInterpreter looks a program up in interpreters, also without its version:
// python3.12, php8.2. It returns the name in the table and the options that hold code.
// ok is false for other programs.
func lookupInterpreter(progName string) (name, options string, ok bool) {
	name = strings.ToLower(progName)
	if options, ok = interpreters[name]; !ok {
		name = strings.TrimRight(strings.TrimRight(name, "0123456789."), "-")
		options, ok = interpreters[name]
	}
	return name, options, ok
}

// languageOf returns the name of the language that the interpreter called name
// runs, as isHarmlessCode knows it.
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

// checkForeignOperand adds a doubt about an operand that is code, or that the
// interpreter may take for a command. isLater says that it is not the first
// operand.
func (s *shellText) checkForeignOperand(c simpleCommand, language string, arg field, isLater bool) {
	text := strings.TrimSpace(arg.text)
	switch {
	case language == "sqlite3" && isLater && !isHarmlessCode(language, text):
		s.addDoubt(!arg.hasUnknown() || strings.HasPrefix(text, "."), "%s runs code of another language", c.progName)
	case (language == "perl" || language == "ruby") && (strings.HasPrefix(text, "|") || strings.HasSuffix(text, "|")):
		s.addDoubt(true, "%s runs the command in %s", c.progName, excerpt(strings.ReplaceAll(text, unknownText, "…")))
	}
}

// ignoresInput reports whether one of args keeps the interpreter called name
// from running its standard input.
func ignoresInput(name string, args []field) bool {
	return slices.ContainsFunc(args, func(f field) bool {
		return name == "crontab" && f.is("-l", "-r") || name == "at" && f.is("-l", "-r", "-d", "-c") || name == "node" && f.is("--test", "--version")
	})
}

// newHiddenRecipeTest returns a function to be called with each of args in order.
// It reports whether the argument makes the recipes of make, or their shell,
// come from the command itself instead of a file.
func newHiddenRecipeTest(args []field) func(field) bool {
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
		return ok && (value == "-" || isHiddenScript(field{text: value})) || strings.HasPrefix(f.text, "SHELL=") || strings.HasPrefix(f.text, ".SHELLFLAGS=")
	}
}

// codeOfOption returns the code in args, which begin with the option: the rest
// of args[0], or else args[1]; "" if both are missing.
func codeOfOption(option string, args []field) string {
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

// isAllowedByRule reports whether an allow rule that names the program covers
// the command: the user then accepts what the program does with its files.
func (s *shellText) isAllowedByRule(c simpleCommand) bool {
	return slices.ContainsFunc(s.eval.policy.allow, func(r rule) bool {
		return isLiteralName(r.words[0], c.progName) && r.allowsWords(c.fields)
	})
}

// isCodeOption reports whether an argument is the option, also with its value
// attached or, for one letter, in a cluster (-pe, -c1).
func isCodeOption(option, arg string) bool {
	if arg == option || strings.HasPrefix(arg, option+"=") {
		return true
	}
	return len(option) == 2 && len(arg) > 2 && arg[0] == '-' && arg[1] != '-' && strings.Contains(arg, option[1:])
}
