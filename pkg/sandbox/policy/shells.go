package policy

import (
	"slices"
	"strings"
)

// isShell reports whether a program is a POSIX-like shell that takes -c CODE.
func isShell(progName string) bool {
	name, _, _ := strings.Cut(progName, "-")
	return slices.Contains([]string{"sh", "bash", "rbash", "dash", "zsh", "ksh", "ksh93", "mksh", "lksh", "ash", "yash", "posh"}, name)
}

// isOtherShell reports whether a program is a shell with another grammar, whose
// code cannot be checked.
func isOtherShell(progName string) bool {
	return slices.Contains([]string{"fish", "csh", "tcsh", "pwsh", "powershell", "nu", "xonsh", "elvish", "rc", "es", "cmd"}, progName)
}

// checkShell checks a shell's command line: sh -c CODE [NAME [ARG…]], a script
// file, or commands from standard input.
func (s *shellText) checkShell(c simpleCommand) {
	args := c.args()
	code, input := false, false
	for len(args) > 0 {
		text := args[0].text
		if args[0].maybeMany || strings.HasPrefix(text, unknownText) {
			s.addDoubt(true, "the arguments of %s are not known", c.progName)
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
				s.addDoubt(true, "%s %s runs another file first", c.progName, text)
				_, args = cutFirstField(args)
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
				_, args = cutFirstField(args)
			}
		}
	}
	switch {
	case code:
		s.checkShellCode(c, args)
	case len(args) > 0 && !input && !isStdinName(args[0]):
		hides := isHiddenScript(args[0])
		if hides || !s.isAllowedByRule(c) {
			s.addDoubt(hides, "%s runs the script %s", c.progName, excerpt(strings.ReplaceAll(args[0].text, unknownText, "…")))
		}
	default:
		s.checkShellInput(c, args)
	}
}

// isHiddenScript reports whether a script is not a file that exists under its
// name: an open descriptor, or a name of which not even the end is known.
func isHiddenScript(f field) bool {
	if !f.hasUnknown() {
		return strings.HasPrefix(f.text, "/dev/") || strings.HasPrefix(f.text, "/proc/")
	}
	last := f.text[strings.LastIndexByte(f.text, '/')+1:]
	return f.maybeMany || strings.Contains(last, unknownText) || !strings.Contains(f.text, "/") || last == "stdin" || strings.Trim(last, "0123456789") == ""
}

// checkShellCode checks the code after -c. args are the code, $0 and the
// positional parameters.
func (s *shellText) checkShellCode(c simpleCommand, args []field) {
	code, rest := cutFirstField(args)
	if code.text == "" && !code.maybeMany {
		return
	}
	zero := field{text: c.progName}
	if len(rest) > 0 {
		zero, rest = rest[0], rest[1:]
	}
	if slices.Contains([]string{"zsh", "ksh", "ksh93", "mksh", "lksh", "yash"}, c.progName) {
		s.addDoubt(true, "%s has another syntax", c.progName)
		s.checkLeniently(code, &shellText{
			eval: s.eval, depth: s.depth + 1, vars: s.vars.forOtherProcess(), functionsHere: map[string]bool{},
			positional: knownPositional(rest), arg0: zero, current: s.current,
		})
		return
	}
	s.checkNestedShell(code, knownPositional(rest), zero)
}

// knownPositional returns the fields as positional parameters; nil if their
// number is not known.
func knownPositional(fields []field) []field {
	if slices.ContainsFunc(fields, func(f field) bool { return f.maybeMany }) {
		return nil
	}
	return append([]field{}, fields...)
}

// checkShellInput checks the commands that a shell reads from standard input,
// and adds a doubt if the text does not contain them. args are the positional
// parameters.
func (s *shellText) checkShellInput(c simpleCommand, args []field) {
	in := c.stdin()
	if !in.given {
		s.addDoubt(true, "%s reads its commands from standard input", c.progName)
		return
	}
	s.checkNestedShell(in.text, knownPositional(args), field{text: c.progName})
}

// isStdinName reports whether a file name means standard input.
func isStdinName(f field) bool {
	return f.is("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
}
