package policy

import (
	"maps"
	"strings"
)

// nested checks a text that the command gives to another shell. Unknown parts of
// the text are skipped; the known parts are still checked.
func (s *shellText) checkNestedShell(text field, positional []field, zero field) {
	s.checkInner(text, &shellText{
		eval: s.eval, depth: s.depth + 1, vars: s.vars.forInnerText(), functionsHere: map[string]bool{},
		positional: positional, arg0: zero, current: s.current,
	})
}

// evalText checks a text that runs in this very shell, with its functions.
func (s *shellText) checkEvalText(text field) {
	inner := &shellText{
		eval: s.eval, depth: s.depth + 1, vars: s.vars.forInnerText(), functionsHere: maps.Clone(s.functionsHere),
		positional: s.positional, arg0: s.arg0, current: s.current,
	}
	s.checkInner(text, inner)
	if inner.positional == nil {
		s.positional = nil
	}
}

func (s *shellText) checkInner(text field, inner *shellText) {
	if !text.hasUnknown() && !text.maybeMany {
		inner.checkText(text.text)
		return
	}
	s.addDoubt(true, "shell code that is put together at run time")
	s.checkLeniently(text, inner)
}

// guess checks a text of which not all is known, or not in this grammar: that
// it does not parse means nothing.
func (s *shellText) checkLeniently(text field, inner *shellText) {
	script := strings.ReplaceAll(text.text, unknownText, "${__}")
	trial := s.eval.newTrial()
	inner.eval = trial
	inner.checkText(script)
	s.eval.nodesLeft, s.eval.bytesLeft = trial.nodesLeft, trial.bytesLeft
	if trial.denial != nil && trial.denial.rule == "must parse" {
		return // with the unknown part filled in it may well parse
	}
	s.eval.addFindings(trial)
}
