package policy

import (
	"maps"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const maxWrappers = 32 // programs that start each other in one command

// call is one simple command, or what a wrapper in it starts.
type call struct {
	fields []field
	base   string // the program's name without its directory
	dir    string
	stdin  func() stdin
	// function: it is one that this text defines, and whose body is judged.
	function bool
}

func (c call) args() []field { return c.fields[1:] }

// simple judges one simple command, and then what it starts, and so on.
// inShell says that the shell itself runs it, so that it may be a function.
func (s *scope) simple(fields []field, redirects []*syntax.Redirect, inShell bool) {
	input := func() stdin { return s.hereText(redirects) }
	for layer := range maxWrappers {
		if layer == 0 && len(fields) > 0 && fields[0].is("--") {
			fields = fields[1:] // time -- COMMAND, as the parser leaves it
		}
		if len(fields) == 0 || s.check.denied != nil {
			return
		}
		if processProgram(fields[0].text) {
			fields = append([]field{{text: "/bin/bash"}}, fields[1:]...)
		}
		if fields[0].unknown() {
			if fields = s.unknownProgram(fields); fields == nil {
				return
			}
			continue
		}
		dir, base := splitProgram(fields[0].text)
		c := call{fields: fields, base: base, dir: dir, stdin: input}
		c.function = inShell && layer == 0 && s.functions[fields[0].text] && !s.check.unsets
		inner, transparent := s.unwrap(c)
		if !s.judge(c, transparent) {
			return
		}
		if !transparent {
			s.program(c)
		}
		fields = inner
	}
	s.check.tooMuch("more than 32 programs that start each other")
}

// unknownProgram judges a command whose first word is not known. If that word may
// expand to nothing, it returns the words after it, to be judged as a command.
func (s *scope) unknownProgram(fields []field) []field {
	word := fields[0]
	for _, rules := range [][]rule{s.check.policy.deny, s.check.policy.ask} {
		s.rules(rules, fields, "")
	}
	if word.files {
		s.globbedProgram(fields)
	}
	if slash, last := strings.LastIndexByte(word.text, '/'), strings.LastIndexByte(word.text, 0); slash > last {
		s.doubt(false, "runs a program at a place that is not known")
		return append([]field{{text: "./" + word.text[slash+1:]}}, fields[1:]...)
	}
	s.doubt(false, "the program's name is made up at run time")
	if word.many {
		return fields[1:]
	}
	return nil
}

// globbedProgram denies what a glob may well find under the name of a program
// that is banned: /usr/bin/cur? and [c]url.
func (s *scope) globbedProgram(fields []field) {
	dir, base := splitProgram(fields[0].text)
	if dir != "" && !systemDir(dir) && !strings.Contains(dir, anything) || len(strings.ReplaceAll(base, anything, "")) < 2 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(networkClients)) {
		if !s.check.policy.network && glob(strings.ReplaceAll(base, anything, "*"), name) == yes {
			s.network(call{fields: append([]field{{text: name}}, fields[1:]...), base: name})
		}
	}
}

// rules applies deny or ask rules to the words.
func (s *scope) rules(rules []rule, fields []field, base string) {
	for _, r := range rules {
		fit := r.fits(fields)
		if fit == no || fit == maybe && s.check.sure {
			continue
		}
		f := finding{command: s.at, name: excerpt(base), rule: r.String(), why: r.article() + " rule matches it"}
		if fit == maybe {
			f.why = "words that are not known before it runs may make it match " + r.article() + " rule"
			f.instead = "Write the words out."
		}
		if r.kind == "deny" {
			if f.instead == "" {
				f.instead = "Do without it, or ask the user to run it or to lift the rule."
			}
			s.check.deny(f)
		} else if s.check.asked == nil {
			s.check.asked = &f
		}
		return
	}
}

// judge applies the rules and bans to one program with its arguments. It
// returns false where nothing after it matters.
func (s *scope) judge(c call, transparent bool) bool {
	p := s.check.policy
	if privileged(c.base) {
		s.check.deny(finding{
			command: s.at, name: c.base, rule: "privileges", why: "it would run with other rights",
			instead: "Run the command without it; what needs other rights is the user's to run.",
		})
		return false
	}
	s.rules(p.deny, c.fields, c.base)
	allowed := ""
	for _, r := range p.allow {
		if r.allows(c.fields) {
			allowed = r.words[0]
			break
		}
	}
	if !p.network && !namesLiterally(allowed, c.base) {
		s.network(c)
	}
	s.rules(p.ask, c.fields, c.base)
	own := c.dir != "" && !systemDir(c.dir) && !c.function
	switch {
	case s.check.denied != nil:
		return false
	case p.mode == AllowList && allowed == "" && !transparent && !(harmless(c.base) && c.dir == "") && !c.function:
		s.check.deny(finding{
			command: s.at, name: c.base, rule: "allow-list mode", why: "no allow rule matches it",
			instead: "Use a command that is allowed, or ask the user to add a rule (--allow '" + excerpt(c.base) + " *').",
		})
		return false
	case own && allowed == "" && !transparent:
		s.doubt(false, "%s is a program file outside the system's directories", excerpt(c.fields[0].text))
	}
	return true
}

// namesLiterally reports whether an allow rule's first word is the program's
// own name, so that "*" does not lift a ban.
func namesLiterally(word, base string) bool {
	return word != "" && !strings.Contains(word, "*") && path.Base(word) == base
}
