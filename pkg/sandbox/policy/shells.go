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
