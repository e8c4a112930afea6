package policy

import (
	"fmt"
)

// check is the work on one command.
type check struct {
	policy *Policy
	nodes  int // still to be looked at, over all texts
	bytes  int // still to be parsed
	denied *finding
	asked  *finding
	doubts []Doubt
	unsets bool // something may take functions away again
	hides  bool // a name or shell code may be hidden somewhere
	sure   bool // only what surely breaks a rule counts
}

// Check judges a command as bash -c would run it. It never runs anything,
// and takes time and memory in proportion to the command's length.
func (p *Policy) Check(command string) Verdict {
	c := &check{policy: p, nodes: maxNodes, bytes: maxTexts}
	s := &scope{
		check: c, vars: newVariables(), functions: map[string]bool{},
		positional: []field{}, zero: field{text: "bash"},
	}
	s.parse(command)
	return c.verdict()
}

func (c *check) deny(f finding) {
	if c.denied == nil {
		f.name = excerpt(f.name)
		c.denied = &f
	}
}

func (c *check) tooMuch(why string) {
	c.deny(finding{rule: "bounds", why: why, instead: "Run it in smaller parts, or write a script file and run that."})
}

// doubt notes that something cannot be told from the text. hides says that a
// name or shell code may be hidden there: with deny rules the command is then
// denied, with ask rules the user is asked.
func (s *scope) doubt(hides bool, format string, args ...any) {
	reason := printable(fmt.Sprintf(format, args...), maxReason)
	c := s.check
	c.hides = c.hides || hides
	hides = hides && !c.sure
	if hides && len(c.policy.deny) > 0 {
		r := c.policy.deny[0]
		c.deny(finding{
			command: s.at, rule: r.String(),
			why:     "it may hide a command that a deny rule names: " + reason,
			instead: "Write the commands out, each by its name.",
		})
	}
	if hides && len(c.policy.ask) > 0 && c.asked == nil {
		c.asked = &finding{
			command: s.at, rule: c.policy.ask[0].String(),
			why: "it may hide a command that an ask rule names: " + reason,
		}
	}
	d := Doubt{Command: s.at, Reason: reason}
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
func (c *check) apart() *check {
	return &check{policy: c.policy, nodes: c.nodes, bytes: c.bytes, sure: c.sure}
}

// merge takes over what another check found.
func (c *check) merge(other *check) {
	c.hides = c.hides || other.hides
	if c.denied == nil {
		c.denied = other.denied
	}
	if c.asked == nil {
		c.asked = other.asked
	}
	for _, d := range other.doubts {
		if len(c.doubts) < maxDoubts {
			c.doubts = append(c.doubts, d)
		}
	}
}
