package policy

import (
	"strings"
)

// commandValue judges a command in an option or a variable, which a program
// runs later, or not at all. What is not clearly fine is a doubt.
func (s *shellText) checkCommandValue(value field, where string) {
	text := strings.TrimPrefix(strings.TrimPrefix(value.text, "exec="), "!")
	if strings.TrimSpace(text) == "" {
		return
	}
	hides := true
	if !value.hasUnknown() && !value.maybeMany {
		trial := s.trialOf(text)
		if trial.verdict().Decision == Allow {
			return
		}
		hides = trial.mayHoldRuled()
	}
	s.addDoubt(hides, "%s is a command to run: %s", where, excerpt(strings.ReplaceAll(value.text, unknownText, "…")))
}

// gitAlias judges an alias of git, to which later words may be added.
func (s *shellText) checkGitAlias(value, where string) {
	text, shell := strings.CutPrefix(value, "!")
	if !shell {
		text = "git " + text
	}
	with := s.trialOf(text + ` "$@"`)
	if with.mayHoldRuled() {
		s.addDoubt(true, "%s is a command to run: %s", where, excerpt(strings.ReplaceAll(value, unknownText, "…")))
		return
	}
	s.checkCommandValue(field{text: text}, where)
}

// tried returns the findings for a text that another program gives to a shell.
func (s *shellText) trialOf(text string) *evaluation {
	trial := s.eval.newTrial()
	inner := &shellText{eval: trial, depth: s.depth + 1, vars: newVariables(), functionsHere: map[string]bool{}, current: s.current}
	inner.checkText(text)
	s.eval.nodesLeft, s.eval.bytesLeft = trial.nodesLeft, trial.bytesLeft
	return trial
}

// hidesAny reports whether the checked text may hold a command that a rule
// names.
func (c *evaluation) mayHoldRuled() bool { return c.denial != nil || c.question != nil || c.mayHide }
