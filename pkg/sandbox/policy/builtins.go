package policy

import (
	"slices"
	"strings"
)

// checkBuiltin checks the builtins that run text, that assign to named
// variables, or that change what later commands mean. It returns false for
// other names.
func (s *shellText) checkBuiltin(c simpleCommand) (isKnown bool) {
	args := c.args()
	if len(args) > 0 && args[0].is("--") && c.progName != "eval" {
		args = args[1:]
	}
	switch c.progName {
	case "eval":
		if len(args) > 0 && args[0].is("--") {
			args = args[1:]
		}
		s.checkEvalText(joinWords(args))
	case "trap":
		if len(args) > 1 && !args[0].is("-", "-l", "-p", "-P", "") {
			s.checkEvalText(args[0])
		}
	case "source", ".":
		in := c.stdin()
		if len(args) > 0 && isStdinName(args[0]) && in.given {
			s.checkEvalText(in.text)
		} else if len(args) > 0 {
			s.addDoubt(isHiddenScript(args[0]) || s.writesFile(args[0]), "%s runs the file %s", c.progName, excerpt(strings.ReplaceAll(args[0].text, unknownText, "…")))
		}
	case "mapfile", "readarray":
		g := assigningBuiltins[c.progName].grammar
		s.checkCallbackOption(args, g, "-C")
		_, names, _ := g.leadingOptions(args)
		for _, name := range names {
			s.checkAssignedName(c.progName, name)
		}
	case "compgen", "complete":
		g := grammar{short: "oAGWFCXPS"}
		s.checkCallbackOption(args, g, "-C")
		options, _, _ := g.leadingOptions(args)
		if words, ok := lastValue(options, "-W"); ok && strings.ContainsAny(words.text, "$`"+unknownText) {
			s.addDoubt(true, "%s expands the words in %s", c.progName, excerpt(strings.ReplaceAll(words.text, unknownText, "…")))
		}
	case "alias":
		hides := false
		for _, arg := range args {
			if _, value, ok := strings.Cut(arg.text, "="); ok {
				s.checkLeniently(field{text: value + " " + unknownText}, &shellText{
					eval: s.eval, depth: s.depth + 1, vars: s.vars.withOwnAssigned(), functionsHere: map[string]bool{}, arg0: s.arg0, current: s.current,
				})
				hides = hides || strings.Contains(value, unknownText)
			}
		}
		if len(args) > 0 {
			s.addDoubt(hides, "an alias changes what later commands mean")
		}
	case "hash", "enable":
		options, _, sure := grammar{short: "pf"}.leadingOptions(args)
		if _, ok := lastValue(options, "-p", "-f"); ok || !sure {
			s.addDoubt(true, "%s gives a command another program", c.progName)
		}
		if program, ok := lastValue(options, "-p"); ok && c.progName == "hash" {
			s.checkCommandTable("BASH_CMDS", program)
		}
	case "bind":
		s.checkCallbackOption(args, grammar{short: "mqurfx"}, "-x")
	case "fc":
		s.addDoubt(true, "fc runs commands from the history")
	default:
		return s.checkNameArguments(c)
	}
	return true
}

// checkCallbackOption checks the value of a builtin's option name, which is
// shell code that bash calls with an argument. It adds a doubt if the options
// are not all known.
func (s *shellText) checkCallbackOption(args []field, g grammar, name string) {
	options, _, sure := g.leadingOptions(args)
	if code, ok := lastValue(options, name); ok {
		s.checkEvalText(field{text: code.text + " x", maybeMany: code.maybeMany})
	}
	if !sure {
		s.addDoubt(true, "an option that is not known may run code")
	}
}

// checkNameArguments checks the builtins that take names of variables, since a
// name such as x[$(code)] runs the code. It returns false for other builtins.
func (s *shellText) checkNameArguments(c simpleCommand) (isKnown bool) {
	var names []field
	args := c.args()
	switch c.progName {
	case "printf":
		options, _, _ := grammar{short: "v"}.leadingOptions(args)
		if name, ok := lastValue(options, "-v"); ok {
			names = []field{name}
		}
	case "test", "[":
		for i, arg := range args {
			if arg.is("-v", "-R") && i+1 < len(args) {
				names = append(names, args[i+1])
			}
		}
	case "let":
		for _, arg := range args {
			s.checkArithmText(arg)
		}
		return true
	case "read":
		options, rest, _ := assigningBuiltins["read"].grammar.leadingOptions(args)
		names = rest
		if name, ok := lastValue(options, "-a"); ok {
			names = append(names, name)
		}
	case "unset", "declare", "local", "typeset", "export", "readonly", "getopts":
		names = args
	case "wait":
		options, _, _ := grammar{short: "p"}.leadingOptions(args)
		if name, ok := lastValue(options, "-p"); ok {
			names = []field{name}
		}
	default:
		return false
	}
	for _, name := range names {
		s.checkAssignedName(c.progName, name)
	}
	return true
}

// checkAssignedName checks an argument NAME or NAME=VALUE of a builtin that
// assigns to the variable: an unknown name, code in a subscript, and the value.
func (s *shellText) checkAssignedName(builtin string, name field) {
	key, value, assigns := strings.Cut(name.text, "=")
	reads := slices.Contains([]string{"read", "printf", "mapfile", "readarray"}, builtin)
	switch {
	case strings.Contains(key, "[") && strings.ContainsAny(key, "$`\x00"):
		s.addDoubt(true, "%s evaluates the subscript in %s", builtin, excerpt(strings.ReplaceAll(key, unknownText, "…")))
	case strings.Contains(key, unknownText):
		s.addDoubt(true, "%s assigns to a variable that is not known", builtin)
	case assigns || reads:
		if !assigns {
			value = unknownText
		} else if !reads {
			s.checkArrayValue(builtin, field{text: value}, false)
		}
		s.checkVariableValue(key, field{text: value}, builtin)
	}
}
