package policy

import (
	"slices"
	"strings"
)

// xargsCommand returns the command that xargs starts, with the arguments that
// it adds as unknown text; nil for the default, echo.
func (s *shellText) xargsCommand(c simpleCommand) (command []field) {
	g := grammar{
		short: "aEdILnPs", optional: "eil",
		long: "arg-file delimiter max-args max-procs max-chars process-slot-var",
	}
	options, rest, sure := g.leadingOptions(c.args())
	if !sure {
		s.addDoubt(true, "it cannot be told which of its words xargs runs")
	}
	if len(rest) == 0 {
		return nil // echo
	}
	rest = slices.Clone(rest)
	replace, ok := lastValue(options, "-I", "-i", "--replace")
	if _, file := lastValue(options, "-a", "--arg-file"); file {
		s.inputIsFileNames = false
	}
	if !ok {
		return append(rest, field{text: unknownText, maybeMany: true, fromGlob: s.inputIsFileNames})
	}
	if replace.text == "" {
		replace.text = "{}"
	}
	return replaceMark(rest, replace.text, field{text: unknownText, fromGlob: s.inputIsFileNames})
}

// replaceMark returns fields with every occurrence of mark replaced by file.
func replaceMark(fields []field, mark string, file field) []field {
	out := make([]field, len(fields))
	for i, f := range fields {
		out[i] = field{text: strings.ReplaceAll(f.text, mark, file.text), maybeMany: f.maybeMany, fromGlob: f.is(mark) && file.fromGlob}
	}
	return out
}

// checkFindExec checks the commands of find -exec, -execdir, -ok and -okdir,
// and adds a doubt about words that may be one of these.
func (s *shellText) checkFindExec(c simpleCommand) {
	args, file := c.args(), field{text: unknownText, fromGlob: findNamesAreNoOptions(c.args())}
	for i := 0; i < len(args); i++ {
		if args[i].is(";") || args[i].maybeMany && strings.HasPrefix(args[i].text, unknownText) && !args[i].fromGlob {
			s.addDoubt(true, "words of %s that are not known may be -exec", c.progName)
		}
		if !args[i].is("-exec", "-execdir", "-ok", "-okdir") {
			continue
		}
		end := i + 1
		for end < len(args) && !args[end].is(";") && !(args[end].is("+") && args[end-1].is("{}")) {
			end++
		}
		// find wants {} before +, but takes anything here: so does this.
		s.checkCommand(replaceMark(trimFinalPlus(args[i+1:end]), "{}", file), nil, false)
		i = end
	}
}

// trimFinalPlus returns fields without a last field "+", which ends the command
// of find -exec.
func trimFinalPlus(fields []field) []field {
	if n := len(fields); n > 0 && fields[n-1].is("+") {
		return fields[:n-1]
	}
	return fields
}

// checkParallel checks the command of GNU parallel, which joins its words and
// gives them to a shell for each argument.
func (s *shellText) checkParallel(c simpleCommand) {
	g := grammar{
		short: "jSaNnLlIPdCEsrDi",
		long:  "jobs sshlogin arg-file max-args max-lines delay timeout retries joblog results workdir colsep arg-sep delimiter halt load memfree nice tmpdir max-replace-args max-procs tagstring wd rpl bar-format block recstart recend",
	}
	_, rest, sure := g.leadingOptions(c.args())
	if !sure {
		s.addDoubt(true, "it cannot be told which of its words parallel runs")
	}
	end := slices.IndexFunc(rest, func(f field) bool { return strings.HasPrefix(f.text, ":::") })
	if end < 0 {
		end = len(rest)
	}
	code := joinWords(rest[:end])
	if code.text == "" {
		s.addDoubt(true, "parallel takes whole commands from its input or arguments")
		for _, f := range rest {
			if !strings.HasPrefix(f.text, ":::") {
				s.checkNestedShell(f, []field{}, field{text: "sh"})
			}
		}
		return
	}
	for _, mark := range []string{"{}", "{.}", "{/}", "{//}", "{/.}", "{#}", "{%}", "{1}", "{2}", "{3}"} {
		code.text = strings.ReplaceAll(code.text, mark, unknownText)
	}
	if !strings.Contains(code.text, unknownText) {
		code.text += " " + unknownText
	}
	s.checkTemplate(code)
}

// checkTemplate checks shell code with unknown parts that are filled in quoted:
// they cannot become commands, except at the place of a command's name.
func (s *shellText) checkTemplate(code field) {
	marked := field{text: strings.ReplaceAll(code.text, unknownText, `"${__}"`)}
	s.checkNestedShell(marked, []field{}, field{text: "sh"})
}
