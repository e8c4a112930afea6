package policy

import (
	"strings"
)

// commandValue judges a command in an option or a variable, which a program
// runs later, or not at all. What is not clearly fine is a doubt.
func (s *scope) commandValue(value field, where string) {
	text := strings.TrimPrefix(strings.TrimPrefix(value.text, "exec="), "!")
	if strings.TrimSpace(text) == "" {
		return
	}
	hides := true
	if !value.unknown() && !value.many {
		trial := s.tried(text)
		if trial.verdict().Decision == Allow {
			return
		}
		hides = trial.hidesAny()
	}
	s.doubt(hides, "%s is a command to run: %s", where, excerpt(strings.ReplaceAll(value.text, anything, "…")))
}

// gitAlias judges an alias of git, to which later words may be added.
func (s *scope) gitAlias(value, where string) {
	text, shell := strings.CutPrefix(value, "!")
	if !shell {
		text = "git " + text
	}
	with := s.tried(text + ` "$@"`)
	if with.hidesAny() {
		s.doubt(true, "%s is a command to run: %s", where, excerpt(strings.ReplaceAll(value, anything, "…")))
		return
	}
	s.commandValue(field{text: text}, where)
}

// tried returns the findings for a text that another program gives to a shell.
func (s *scope) tried(text string) *check {
	trial := s.check.apart()
	inner := &scope{check: trial, depth: s.depth + 1, vars: newVariables(), functions: map[string]bool{}, at: s.at}
	inner.parse(text)
	s.check.nodes, s.check.bytes = trial.nodes, trial.bytes
	return trial
}

// hidesAny reports whether the checked text may hold a command that a rule
// names.
func (c *check) hidesAny() bool { return c.denied != nil || c.asked != nil || c.hides }
