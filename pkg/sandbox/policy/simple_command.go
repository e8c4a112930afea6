package policy

import (
	"maps"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxWrappers bounds the programs that start each other in one command.
const maxWrappers = 32 // programs that start each other in one command

// simpleCommand is a program or builtin with its arguments: as written, or as a
// wrapper such as env starts it.
type simpleCommand struct {
	fields     []field          // the program, then the arguments; never empty
	progName   string           // base name of the program, without .exe
	progDir    string           // the directory in the program's name, cleaned; "": none
	stdin      func() stdinText // parses the here-document or here-string on each call
	isFunction bool             // the program is a function of this text, whose body is checked separately
}

// args returns the fields after the program.
func (c simpleCommand) args() []field { return c.fields[1:] }

// checkCommand checks a simple command, then the command that it starts (env,
// timeout), and so on, at most maxWrappers deep. inShell says that the shell
// itself runs it, so that its name may be that of a function. fields may be
// empty.
func (s *shellText) checkCommand(fields []field, redirects []*syntax.Redirect, inShell bool) {
	input := func() stdinText { return s.hereDocument(redirects) }
	for layer := range maxWrappers {
		if layer == 0 && len(fields) > 0 && fields[0].is("--") {
			fields = fields[1:] // time -- COMMAND, as the parser leaves it
		}
		if len(fields) == 0 || s.eval.denial != nil {
			return
		}
		if isProcExe(fields[0].text) {
			fields = append([]field{{text: "/bin/bash"}}, fields[1:]...)
		}
		if fields[0].hasUnknown() {
			if fields = s.checkUnknownProgram(fields); fields == nil {
				return
			}
			continue
		}
		dir, base := splitProgram(fields[0].text)
		c := simpleCommand{fields: fields, progName: base, progDir: dir, stdin: input}
		c.isFunction = inShell && layer == 0 && s.functionsHere[fields[0].text] && !s.eval.unsetsFunctions
		inner, transparent := s.startedCommand(c)
		if !s.applyPolicy(c, transparent) {
			return
		}
		if !transparent {
			s.checkProgram(c)
		}
		fields = inner
	}
	s.eval.denyOverBound("more than 32 programs that start each other")
}

// checkUnknownProgram checks a command whose first word is not known, and adds
// a doubt. It returns another command to check in addition, or nil: the words
// after one that may expand to nothing, or the known base name with the
// arguments.
func (s *shellText) checkUnknownProgram(fields []field) (alternative []field) {
	word := fields[0]
	for _, rules := range [][]rule{s.eval.policy.deny, s.eval.policy.ask} {
		s.applyRules(rules, fields, "")
	}
	if word.fromGlob {
		s.denyGlobbedClient(fields)
	}
	if slash, last := strings.LastIndexByte(word.text, '/'), strings.LastIndexByte(word.text, 0); slash > last {
		s.addDoubt(false, "runs a program whose path is not known")
		return append([]field{{text: "./" + word.text[slash+1:]}}, fields[1:]...)
	}
	s.addDoubt(false, "the program's name is computed at run time")
	if word.maybeMany {
		return fields[1:]
	}
	return nil
}

// denyGlobbedClient denies a program name with a glob that can match a network
// client, while the network is off: /usr/bin/cur? and [c]url.
func (s *shellText) denyGlobbedClient(fields []field) {
	dir, base := splitProgram(fields[0].text)
	if dir != "" && !isSystemDir(dir) && !strings.Contains(dir, unknownText) || len(strings.ReplaceAll(base, unknownText, "")) < 2 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(networkClients)) {
		if !s.eval.policy.network && matchGlob(strings.ReplaceAll(base, unknownText, "*"), name) == yes {
			s.denyNetworkClient(simpleCommand{fields: append([]field{{text: name}}, fields[1:]...), progName: name})
		}
	}
}

// applyRules denies the command, or asks, by the first of rules that matches
// the words, certainly or possibly. name is the program for the message; "" if
// unknown.
func (s *shellText) applyRules(rules []rule, fields []field, name string) {
	for _, r := range rules {
		fit := r.bestMatch(fields)
		if fit == no || fit == maybe && s.eval.certainOnly {
			continue
		}
		f := finding{command: s.current, name: excerpt(name), rule: r.String(), why: r.kindWithArticle() + " rule matches it"}
		if fit == maybe {
			f.why = "some of its words are known only when it runs, and it may match " + r.kindWithArticle() + " rule"
			f.instead = "Write the words out."
		}
		if r.kind == "deny" {
			if f.instead == "" {
				f.instead = "Continue without it, or ask the user to run it or to remove the rule."
			}
			s.eval.deny(f)
		} else if s.eval.question == nil {
			s.eval.question = &f
		}
		return
	}
}

// applyPolicy applies the rules, the mode and the built-in bans to one command.
// transparent says that its program only starts another one, so that no allow
// rule needs to name it. The result is false if the command is denied and need
// not be checked further.
func (s *shellText) applyPolicy(c simpleCommand, transparent bool) (proceed bool) {
	p := s.eval.policy
	if isPrivileged(c.progName) {
		s.eval.deny(finding{
			command: s.current, name: c.progName, rule: "privileges", why: "it would run with other privileges",
			instead: "Run the command without it, or ask the user to run it.",
		})
		return false
	}
	s.applyRules(p.deny, c.fields, c.progName)
	allowed := ""
	for _, r := range p.allow {
		if r.allowsWords(c.fields) {
			allowed = r.words[0]
			break
		}
	}
	if !p.network && !isLiteralName(allowed, c.progName) {
		s.denyNetworkClient(c)
	}
	s.applyRules(p.ask, c.fields, c.progName)
	own := c.progDir != "" && !isSystemDir(c.progDir) && !c.isFunction
	switch {
	case s.eval.denial != nil:
		return false
	case p.mode == AllowList && allowed == "" && !transparent && !(isHarmlessBuiltin(c.progName) && c.progDir == "") && !c.isFunction:
		s.eval.deny(finding{
			command: s.current, name: c.progName, rule: "allow-list mode", why: "no allow rule matches it",
			instead: "Use a command that is allowed, or ask the user to add a rule (--allow '" + excerpt(c.progName) + " *').",
		})
		return false
	case own && allowed == "" && !transparent:
		s.addDoubt(false, "%s is a program file outside the system's directories", excerpt(c.fields[0].text))
	}
	return true
}

// isLiteralName reports whether an allow rule's first word is the program's
// name without a wildcard. "*" must not lift a ban.
func isLiteralName(rulePattern, progName string) bool {
	return rulePattern != "" && !strings.Contains(rulePattern, "*") && path.Base(rulePattern) == progName
}
