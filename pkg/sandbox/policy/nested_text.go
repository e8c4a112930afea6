package policy

import (
	"maps"
	"strings"
)

// nested checks a text that the command gives to another shell. Unknown parts of
// the text are skipped; the known parts are still checked.
func (s *scope) nested(text field, positional []field, zero field) {
	s.within(text, &scope{
		check: s.check, depth: s.depth + 1, vars: s.vars.within(), functions: map[string]bool{},
		positional: positional, zero: zero, at: s.at,
	})
}

// evalText checks a text that runs in this very shell, with its functions.
func (s *scope) evalText(text field) {
	inner := &scope{
		check: s.check, depth: s.depth + 1, vars: s.vars.within(), functions: maps.Clone(s.functions),
		positional: s.positional, zero: s.zero, at: s.at,
	}
	s.within(text, inner)
	if inner.positional == nil {
		s.positional = nil
	}
}

func (s *scope) within(text field, inner *scope) {
	if !text.unknown() && !text.many {
		inner.parse(text.text)
		return
	}
	s.doubt(true, "shell code that is put together at run time")
	s.guess(text, inner)
}

// guess checks a text of which not all is known, or not in this grammar: that
// it does not parse means nothing.
func (s *scope) guess(text field, inner *scope) {
	script := strings.ReplaceAll(text.text, anything, "${__}")
	trial := s.check.apart()
	inner.check = trial
	inner.parse(script)
	s.check.nodes, s.check.bytes = trial.nodes, trial.bytes
	if trial.denied != nil && trial.denied.rule == "must parse" {
		return // with the unknown part filled in it may well parse
	}
	s.check.merge(trial)
}
