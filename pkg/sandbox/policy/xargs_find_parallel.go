package policy

import (
	"slices"
	"strings"
)

// xargs returns the command that xargs starts, with the arguments that it adds.
func (s *scope) xargs(c call) []field {
	g := grammar{
		short: "aEdILnPs", optional: "eil",
		long: "arg-file delimiter max-args max-procs max-chars process-slot-var",
	}
	options, rest, sure := g.options(c.args())
	if !sure {
		s.doubt(true, "it cannot be told which of its words xargs runs")
	}
	if len(rest) == 0 {
		return nil // echo
	}
	rest = slices.Clone(rest)
	replace, ok := valueOf(options, "-I", "-i", "--replace")
	if _, file := valueOf(options, "-a", "--arg-file"); file {
		s.files = false
	}
	if !ok {
		return append(rest, field{text: anything, many: true, files: s.files})
	}
	if replace.text == "" {
		replace.text = "{}"
	}
	return substitute(rest, replace.text, field{text: anything, files: s.files})
}

// substitute replaces every mark by the text of file.
func substitute(fields []field, mark string, file field) []field {
	out := make([]field, len(fields))
	for i, f := range fields {
		out[i] = field{text: strings.ReplaceAll(f.text, mark, file.text), many: f.many, files: f.is(mark) && file.files}
	}
	return out
}

// find judges the commands of -exec and its kin.
func (s *scope) find(c call) {
	args, file := c.args(), field{text: anything, files: findsFiles(c.args())}
	for i := 0; i < len(args); i++ {
		if args[i].is(";") || args[i].many && strings.HasPrefix(args[i].text, anything) && !args[i].files {
			s.doubt(true, "words of %s that are not known may be -exec", c.base)
		}
		if !args[i].is("-exec", "-execdir", "-ok", "-okdir") {
			continue
		}
		end := i + 1
		for end < len(args) && !args[end].is(";") && !(args[end].is("+") && args[end-1].is("{}")) {
			end++
		}
		// find wants {} before +, but takes anything here: so does this.
		s.simple(substitute(trimPlus(args[i+1:end]), "{}", file), nil, false)
		i = end
	}
}

func trimPlus(fields []field) []field {
	if n := len(fields); n > 0 && fields[n-1].is("+") {
		return fields[:n-1]
	}
	return fields
}

// parallel joins its words and gives them to a shell for each argument.
func (s *scope) parallel(c call) {
	g := grammar{
		short: "jSaNnLlIPdCEsrDi",
		long:  "jobs sshlogin arg-file max-args max-lines delay timeout retries joblog results workdir colsep arg-sep delimiter halt load memfree nice tmpdir max-replace-args max-procs tagstring wd rpl bar-format block recstart recend",
	}
	_, rest, sure := g.options(c.args())
	if !sure {
		s.doubt(true, "it cannot be told which of its words parallel runs")
	}
	end := slices.IndexFunc(rest, func(f field) bool { return strings.HasPrefix(f.text, ":::") })
	if end < 0 {
		end = len(rest)
	}
	code := joined(rest[:end])
	if code.text == "" {
		s.doubt(true, "parallel takes whole commands from its input or arguments")
		for _, f := range rest {
			if !strings.HasPrefix(f.text, ":::") {
				s.nested(f, []field{}, field{text: "sh"})
			}
		}
		return
	}
	for _, mark := range []string{"{}", "{.}", "{/}", "{//}", "{/.}", "{#}", "{%}", "{1}", "{2}", "{3}"} {
		code.text = strings.ReplaceAll(code.text, mark, anything)
	}
	if !strings.Contains(code.text, anything) {
		code.text += " " + anything
	}
	s.filled(code)
}

// filled judges shell code into which arguments are put, quoted, so that
// they cannot become commands unless they stand where one does.
func (s *scope) filled(code field) {
	marked := field{text: strings.ReplaceAll(code.text, anything, `"${__}"`)}
	s.nested(marked, []field{}, field{text: "sh"})
}
