package policy

import (
	"fmt"
)

// check is the work on one command.
type evaluation struct {
	policy          *Policy
	nodesLeft       int // still to be looked at, over all texts
	bytesLeft       int // still to be parsed
	denial          *finding
	question        *finding
	doubts          []Doubt
	unsetsFunctions bool // something may take functions away again
	mayHide         bool // a name or shell code may be hidden somewhere
	certainOnly     bool // only what surely breaks a rule counts
}

// Check judges a command as bash -c would run it. It never runs anything,
// and takes time and memory in proportion to the command's length.
func (p *Policy) Check(command string) Verdict {
	c := &evaluation{policy: p, nodesLeft: maxSyntaxNodes, bytesLeft: maxAllTextBytes}
	s := &shellText{
		eval: c, vars: newVariables(), functionsHere: map[string]bool{},
		positional: []field{}, arg0: field{text: "bash"},
	}
	s.checkText(command)
	return c.verdict()
}

func (c *evaluation) deny(f finding) {
	if c.denial == nil {
		f.name = excerpt(f.name)
		c.denial = &f
	}
}

func (c *evaluation) denyOverBound(why string) {
	c.deny(finding{rule: "bounds", why: why, instead: "Run it in smaller parts, or write a script file and run that."})
}

// doubt notes that something cannot be told from the text. hides says that a
// name or shell code may be hidden there: with deny rules the command is then
// denied, with ask rules the user is asked.
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
			instead: "Write the commands out, each by its name.",
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

// apart returns a check of the same policy whose findings are kept separate.
func (c *evaluation) newTrial() *evaluation {
	return &evaluation{policy: c.policy, nodesLeft: c.nodesLeft, bytesLeft: c.bytesLeft, certainOnly: c.certainOnly}
}

// merge takes over what another check found.
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
