package policy

import (
	"slices"
	"strings"
)

// builtinCode judges the builtins that run text, and those that change what
// other commands mean. It reports whether it knows the name.
func (s *scope) builtinCode(c call) bool {
	args := c.args()
	if len(args) > 0 && args[0].is("--") && c.base != "eval" {
		args = args[1:]
	}
	switch c.base {
	case "eval":
		if len(args) > 0 && args[0].is("--") {
			args = args[1:]
		}
		s.evalText(joined(args))
	case "trap":
		if len(args) > 1 && !args[0].is("-", "-l", "-p", "-P", "") {
			s.evalText(args[0])
		}
	case "source", ".":
		in := c.stdin()
		if len(args) > 0 && stdinName(args[0]) && in.given {
			s.evalText(in.text)
		} else if len(args) > 0 {
			s.doubt(hiddenScript(args[0]) || s.writes(args[0]), "%s runs the file %s", c.base, excerpt(strings.ReplaceAll(args[0].text, anything, "…")))
		}
	case "mapfile", "readarray":
		g := assigners[c.base].grammar
		s.callback(args, g, "-C")
		_, names, _ := g.options(args)
		for _, name := range names {
			s.variableName(c.base, name)
		}
	case "compgen", "complete":
		g := grammar{short: "oAGWFCXPS"}
		s.callback(args, g, "-C")
		options, _, _ := g.options(args)
		if words, ok := valueOf(options, "-W"); ok && strings.ContainsAny(words.text, "$`"+anything) {
			s.doubt(true, "%s expands the words in %s", c.base, excerpt(strings.ReplaceAll(words.text, anything, "…")))
		}
	case "alias":
		hides := false
		for _, arg := range args {
			if _, value, ok := strings.Cut(arg.text, "="); ok {
				s.guess(field{text: value + " " + anything}, &scope{
					check: s.check, depth: s.depth + 1, vars: s.vars.within(), functions: map[string]bool{}, zero: s.zero, at: s.at,
				})
				hides = hides || strings.Contains(value, anything)
			}
		}
		if len(args) > 0 {
			s.doubt(hides, "an alias changes what later commands mean")
		}
	case "hash", "enable":
		options, _, sure := grammar{short: "pf"}.options(args)
		if _, ok := valueOf(options, "-p", "-f"); ok || !sure {
			s.doubt(true, "%s gives a command another program", c.base)
		}
		if program, ok := valueOf(options, "-p"); ok && c.base == "hash" {
			s.renamed("BASH_CMDS", program)
		}
	case "bind":
		s.callback(args, grammar{short: "mqurfx"}, "-x")
	case "fc":
		s.doubt(true, "fc runs commands from the history")
	default:
		return s.subscripts(c)
	}
	return true
}

// callback judges an option of a builtin whose value is shell code.
func (s *scope) callback(args []field, g grammar, name string) {
	options, _, sure := g.options(args)
	if code, ok := valueOf(options, name); ok {
		s.evalText(field{text: code.text + " x", many: code.many})
	}
	if !sure {
		s.doubt(true, "an option that is not known may run code")
	}
}

// subscripts judges builtins that take names of variables: a name like
// x[$(code)] runs the code.
func (s *scope) subscripts(c call) bool {
	var names []field
	args := c.args()
	switch c.base {
	case "printf":
		options, _, _ := grammar{short: "v"}.options(args)
		if name, ok := valueOf(options, "-v"); ok {
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
			s.arithmeticText(arg)
		}
		return true
	case "read":
		options, rest, _ := assigners["read"].grammar.options(args)
		names = rest
		if name, ok := valueOf(options, "-a"); ok {
			names = append(names, name)
		}
	case "unset", "declare", "local", "typeset", "export", "readonly", "getopts":
		names = args
	case "wait":
		options, _, _ := grammar{short: "p"}.options(args)
		if name, ok := valueOf(options, "-p"); ok {
			names = []field{name}
		}
	default:
		return false
	}
	for _, name := range names {
		s.variableName(c.base, name)
	}
	return true
}

// variableName judges a name, or name=value, that a builtin assigns to.
func (s *scope) variableName(builtin string, name field) {
	key, value, assigns := strings.Cut(name.text, "=")
	reads := slices.Contains([]string{"read", "printf", "mapfile", "readarray"}, builtin)
	switch {
	case strings.Contains(key, "[") && strings.ContainsAny(key, "$`\x00"):
		s.doubt(true, "%s evaluates the subscript in %s", builtin, excerpt(strings.ReplaceAll(key, anything, "…")))
	case strings.Contains(key, anything):
		s.doubt(true, "%s assigns to a variable that is not known", builtin)
	case assigns || reads:
		if !assigns {
			value = anything
		} else if !reads {
			s.compound(builtin, field{text: value}, false)
		}
		s.environment(key, field{text: value}, builtin)
	}
}
