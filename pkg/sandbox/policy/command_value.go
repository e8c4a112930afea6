package policy

import (
	"strings"
)

// checkCommandValue checks a command in an option or a variable, which a
// program may run later. It adds a doubt unless the command would be allowed.
// where names its place for the reason.
func (s *shellText) checkCommandValue(value field, where string) {
	text := strings.TrimPrefix(strings.TrimPrefix(value.text, "exec="), "!")
	if strings.TrimSpace(text) == "" {
		return
	}
	hides := true
	if !value.hasUnknown() && !value.maybeMany {
		trial := s.evaluateSeparately(text)
		if trial.verdict().Decision == Allow {
			return
		}
		hides = trial.mayContainRuledCommand()
	}
	s.addDoubt(hides, "%s is a command to run: %s", where, excerpt(strings.ReplaceAll(value.text, unknownText, "…")))
}

// checkGitAlias checks the value of a git alias, to which git appends the words
// of the command line. where names its place for the doubt's reason.
func (s *shellText) checkGitAlias(value, where string) {
	text, shell := strings.CutPrefix(value, "!")
	if !shell {
		text = "git " + text
	}
	with := s.evaluateSeparately(text + ` "$@"`)
	if with.mayContainRuledCommand() {
		s.addDoubt(true, "%s is a command to run: %s", where, excerpt(strings.ReplaceAll(value, unknownText, "…")))
		return
	}
	s.checkCommandValue(field{text: text}, where)
}

// evaluateSeparately evaluates a text that another program gives to a shell,
// without adding its findings to s.
func (s *shellText) evaluateSeparately(text string) *evaluation {
	trial := s.eval.newTrial()
	inner := &shellText{eval: trial, depth: s.depth + 1, vars: newVariables(), functionsHere: map[string]bool{}, current: s.current}
	inner.checkText(text)
	s.eval.nodesLeft, s.eval.bytesLeft = trial.nodesLeft, trial.bytesLeft
	return trial
}

// mayContainRuledCommand reports whether the evaluated text has, or may hide, a command
// that a rule matches.
func (c *evaluation) mayContainRuledCommand() bool {
	return c.denial != nil || c.question != nil || c.mayHide
}
