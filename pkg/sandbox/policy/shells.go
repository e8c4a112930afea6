package policy

import (
	"slices"
	"strings"
)

// shellName reports whether the program is a shell that takes -c CODE.
func shellName(base string) bool {
	name, _, _ := strings.Cut(base, "-")
	return slices.Contains([]string{"sh", "bash", "rbash", "dash", "zsh", "ksh", "ksh93", "mksh", "lksh", "ash", "yash", "posh"}, name)
}

// otherShell are shells of other grammars, of whose code only a guess is
// possible.
func otherShell(base string) bool {
	return slices.Contains([]string{"fish", "csh", "tcsh", "pwsh", "powershell", "nu", "xonsh", "elvish", "rc", "es", "cmd"}, base)
}

// shell judges sh -c CODE [NAME [ARG…]], a script, or what is read from
// standard input.
func (s *scope) shell(c call) {
	args := c.args()
	code, input := false, false
	for len(args) > 0 {
		text := args[0].text
		if args[0].many || strings.HasPrefix(text, anything) {
			s.doubt(true, "the arguments of %s are not known", c.base)
			if !code {
				return
			}
			break
		}
		if len(text) < 2 || text[0] != '-' && text[0] != '+' {
			if text == "-" {
				args = args[1:]
			}
			break
		}
		args = args[1:]
		if text == "--" {
			break
		}
		if strings.HasPrefix(text, "--") {
			switch {
			case text == "--version" || text == "--help":
				return
			case text == "--rcfile" || text == "--init-file":
				s.doubt(true, "%s %s runs another file first", c.base, text)
				_, args = shift(args)
			}
			continue
		}
		for _, letter := range text[1:] {
			switch {
			case letter == 'c' && text[0] == '-':
				code = true
			case letter == 's' && text[0] == '-':
				input = true
			case letter == 'o' || letter == 'O':
				_, args = shift(args)
			}
		}
	}
	switch {
	case code:
		s.shellCode(c, args)
	case len(args) > 0 && !input && !stdinName(args[0]):
		hides := hiddenScript(args[0])
		if hides || !s.ruled(c) {
			s.doubt(hides, "%s runs the script %s", c.base, excerpt(strings.ReplaceAll(args[0].text, anything, "…")))
		}
	default:
		s.shellInput(c, args)
	}
}

// hiddenScript reports whether a script is none that lies there under its
// name: an open descriptor, or a name of which not even the end is known.
func hiddenScript(f field) bool {
	if !f.unknown() {
		return strings.HasPrefix(f.text, "/dev/") || strings.HasPrefix(f.text, "/proc/")
	}
	last := f.text[strings.LastIndexByte(f.text, '/')+1:]
	return f.many || strings.Contains(last, anything) || !strings.Contains(f.text, "/") || last == "stdin" || strings.Trim(last, "0123456789") == ""
}

// writes reports whether the text writes a file of that name by a redirection
// or with tee, so that the text of the file may be hidden in it.
func (s *scope) writes(file field) bool {
	if s.written == nil {
		s.written = writtenNames(s.text)
	}
	return s.written[file.text[strings.LastIndexByte(file.text, '/')+1:]]
}

// writtenNames returns the last parts of the names that follow a > or tee.
func writtenNames(text string) map[string]bool {
	names := map[string]bool{}
	for {
		i := strings.IndexAny(text, ">t")
		if i < 0 {
			return names
		}
		word, tee := strings.CutPrefix(text[i:], "tee ")
		redirected := text[i] == '>'
		if text = text[i+1:]; redirected {
			word = text
		}
		if tee || redirected {
			word = strings.TrimLeft(word[:min(len(word), maxExcerpt)], "> |&-a")
			names[writtenName(word)] = true
		}
	}
}

// writtenName returns the last part of the file name that text begins with.
func writtenName(text string) string {
	if words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t;&|<>()\"'", r) }); len(words) > 0 {
		return words[0][strings.LastIndexByte(words[0], '/')+1:]
	}
	return ""
}

func (s *scope) shellCode(c call, args []field) {
	code, rest := shift(args)
	if code.text == "" && !code.many {
		return
	}
	zero := field{text: c.base}
	if len(rest) > 0 {
		zero, rest = rest[0], rest[1:]
	}
	if slices.Contains([]string{"zsh", "ksh", "ksh93", "mksh", "lksh", "yash"}, c.base) {
		s.doubt(true, "%s has a different grammar", c.base)
		s.guess(code, &scope{
			check: s.check, depth: s.depth + 1, vars: s.vars.within(), functions: map[string]bool{},
			positional: known(rest), zero: zero, at: s.at,
		})
		return
	}
	s.nested(code, known(rest), zero)
}

// known returns the fields as positional parameters, or nil where not all of
// them are known.
func known(fields []field) []field {
	if slices.ContainsFunc(fields, func(f field) bool { return f.many }) {
		return nil
	}
	return append([]field{}, fields...)
}

// shellInput judges a shell that reads commands.
func (s *scope) shellInput(c call, args []field) {
	in := c.stdin()
	if !in.given {
		s.doubt(true, "%s reads its commands from standard input", c.base)
		return
	}
	s.nested(in.text, known(args), field{text: c.base})
}

func stdinName(f field) bool {
	return f.is("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
}

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
