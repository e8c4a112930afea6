package policy

import (
	"maps"
	"strings"
)

// checkNestedShell checks code that the command gives to another shell, with
// that shell's positional parameters (nil: not known) and $0. If parts of the
// code are unknown, it adds a doubt and still checks the rest.
func (s *shellText) checkNestedShell(text field, positional []field, arg0 field) {
	s.checkInner(text, &shellText{
		eval: s.eval, depth: s.depth + 1, vars: s.vars.forOtherProcess(), functionsHere: map[string]bool{},
		positional: positional, arg0: arg0, current: s.current,
	})
}

// checkEvalText checks code that runs in the current shell, with its functions
// and positional parameters.
func (s *shellText) checkEvalText(text field) {
	inner := &shellText{
		eval: s.eval, depth: s.depth + 1, vars: s.vars.withOwnAssigned(), functionsHere: maps.Clone(s.functionsHere),
		positional: s.positional, arg0: s.arg0, current: s.current,
	}
	s.checkInner(text, inner)
	if inner.positional == nil {
		s.positional = nil
	}
}

// checkInner checks text as shell code in the context inner, whose field text it
// sets. If parts of text are unknown, it adds a doubt and checks the rest with
// checkLeniently.
func (s *shellText) checkInner(text field, inner *shellText) {
	if !text.hasUnknown() && !text.maybeMany {
		inner.checkText(text.text)
		return
	}
	s.addDoubt(true, "shell code that is put together at run time")
	s.checkLeniently(text, inner)
}

// checkLeniently checks text like checkInner, with a variable instead of each
// unknown part. It ignores a text that does not parse: the unknown parts, or the
// grammar of another shell, may be the reason.
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
