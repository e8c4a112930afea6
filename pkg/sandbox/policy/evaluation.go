package policy

import (
	"fmt"
)

// evaluation is the state of evaluating one command: the budget that is left
// and the findings so far.
type evaluation struct {
	policy          *Policy
	nodesLeft       int      // syntax nodes and words that may still be checked, over all texts
	bytesLeft       int      // bytes of shell text that may still be parsed
	denial          *finding // the first reason to deny; nil: none
	question        *finding // the first reason to ask; nil: none
	doubts          []Doubt  // at most maxDoubts
	unsetsFunctions bool     // unset is used, so a function may be gone when it is called
	linesMayEnd     bool     // bash may skip the rest of a line (see mayEndLine)
	mayHide         bool     // some doubt says that a command name or shell code may be hidden
	certainOnly     bool     // only certain matches of a rule count, no doubts
}

// Check returns the verdict on a command, evaluated as bash -c would run it. It
// never runs anything, and takes time and memory in proportion to the command's
// length.
func (p *Policy) Check(command string) Verdict {
	c := &evaluation{policy: p, nodesLeft: maxSyntaxNodes, bytesLeft: maxAllTextBytes}
	s := &shellText{
		eval: c, vars: newVariables(), functionsHere: map[string]bool{},
		positional: []field{}, arg0: field{text: "bash"},
	}
	s.checkText(command)
	return c.verdict()
}

// deny records f as the reason to deny the command, unless there already is
// one.
func (c *evaluation) deny(f finding) {
	if c.denial == nil {
		f.name = excerpt(f.name)
		c.denial = &f
	}
}

// denyOverBound denies the command because it exceeds a bound of this package;
// why says which.
func (c *evaluation) denyOverBound(why string) {
	c.deny(finding{rule: "bounds", why: why, instead: "Run it in smaller parts, or write a script file and run that."})
}

// addDoubt records that the text does not tell what a part of the command does.
// mayHide says that a command name or shell code may be hidden there: if there
// are deny rules, the command is then denied, and if there are ask rules, the
// user is asked. The format gives the reason.
func (s *shellText) addDoubt(mayHide bool, format string, args ...any) {
	reason := printable(fmt.Sprintf(format, args...), maxReason)
	c := s.eval
	c.mayHide = c.mayHide || mayHide
	mayHide = mayHide && !c.certainOnly
	if mayHide && len(c.policy.deny) > 0 {
		r := c.policy.deny[0]
		c.deny(finding{
			command: s.current, rule: r.String(),
			why:     "it may hide a command that a deny rule names: " + reason,
			instead: "Write the commands out, each by its name, or ask the user to run it.",
		})
	}
	if mayHide && len(c.policy.ask) > 0 && c.question == nil {
		c.question = &finding{
			command: s.current, rule: c.policy.ask[0].String(),
			why: "it may hide a command that an ask rule names: " + reason,
		}
	}
	d := Doubt{Command: s.current, Reason: reason}
	for _, old := range c.doubts {
		if old == d {
			return
		}
	}
	if len(c.doubts) < maxDoubts {
		c.doubts = append(c.doubts, d)
	}
}

// newTrial returns a new evaluation under the same policy, with the remaining
// budget and no findings.
func (c *evaluation) newTrial() *evaluation {
	return &evaluation{policy: c.policy, nodesLeft: c.nodesLeft, bytesLeft: c.bytesLeft, certainOnly: c.certainOnly}
}

// addFindings adds denial, question and doubts of other to c. An existing
// denial or question stays.
func (c *evaluation) addFindings(other *evaluation) {
	c.mayHide = c.mayHide || other.mayHide
	if c.denial == nil {
		c.denial = other.denial
	}
	if c.question == nil {
		c.question = other.question
	}
	for _, d := range other.doubts {
		if len(c.doubts) < maxDoubts {
			c.doubts = append(c.doubts, d)
		}
	}
}
