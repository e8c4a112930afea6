package policy

import (
	"fmt"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Decision says how to treat a command: run it, refuse it or ask.
type Decision string

const (
	// Allow: run it.
	Allow Decision = "allow"
	// Deny: do not run it; Verdict.Message says why.
	Deny Decision = "deny"
	// Ask: run it only if the user agrees.
	Ask Decision = "ask"
	// Undecided: run it, but not everything it does could be told.
	Undecided Decision = "undecided"
)

// Verdict is the decision on a whole command, and what it rests on.
type Verdict struct {
	Decision Decision
	// Command is the simple command that decided, as written, shortened and
	// printable; "" where Decision is Allow.
	Command string
	// Name is the program in it, as far as known: "curl" for c''url.
	Name string
	// Rule is the rule that decided: a rule as the user wrote it ("deny git push *"),
	// or the name of a built-in one ("network clients").
	Rule string
	// Message says to a model what was decided on, by which rule, and what to
	// do instead; "" where Decision is Allow.
	Message string
	// Doubts are the parts that could not be told from the text, at most
	// maxDoubts; there may be some whatever the decision.
	Doubts []Doubt
}

// Doubt is one part of a command that the text does not decide.
type Doubt struct {
	// Command is the part, as written, shortened and printable.
	Command string `json:"command"`
	// Reason says why it cannot be told.
	Reason string `json:"reason"`
}

const (
	maxDoubts  = 8
	maxExcerpt = 120 // bytes of a command quoted in a message
	maxReason  = 300
)

// Refused reports whether the command must not run.
func (v Verdict) Refused() bool { return v.Decision == Deny }

// Err returns the refusal as COMMAND_DENIED with the verdict's metadata, or
// nil where the command is not refused.
func (v Verdict) Err() error {
	if !v.Refused() {
		return nil
	}
	return toolerr.New(toolerr.CommandDenied, "%s", v.Message).With("policy", v.Metadata())
}

// Metadata returns the verdict for structuredContent: decision, and where
// there is one: command, name, rule, undecided.
func (v Verdict) Metadata() map[string]any {
	m := map[string]any{"decision": string(v.Decision)}
	for key, value := range map[string]string{"command": v.Command, "name": v.Name, "rule": v.Rule} {
		if value != "" {
			m[key] = value
		}
	}
	if len(v.Doubts) > 0 {
		m["undecided"] = v.Doubts
	}
	return m
}

// finding is a reason to deny or to ask.
type finding struct {
	command, name, rule, why, instead string
}

func (f finding) message(verb string) string {
	what := f.name
	if what == "" {
		what = "the command"
	}
	text := fmt.Sprintf("%s %s: %s (rule: %s).", what, verb, f.why, f.rule)
	if f.command != "" && f.command != f.name {
		text += fmt.Sprintf(" In: %s.", f.command)
	}
	if f.instead != "" {
		text += " " + f.instead
	}
	return text
}

// verdict sums up what the check found: the first denial, else in allow-list
// mode the first doubt, else the first question, else doubt.
func (c *evaluation) verdict() Verdict {
	v := Verdict{Decision: Allow, Doubts: c.doubts}
	denied := c.denial
	if denied == nil && c.policy.mode == AllowList && len(c.doubts) > 0 {
		first := c.doubts[0]
		denied = &finding{
			command: first.Command, rule: "allow-list mode",
			why:     "it cannot be decided from the text what it runs: " + first.Reason,
			instead: "Write the commands out, each by its name and with its arguments.",
		}
	}
	switch {
	case denied != nil:
		v.Decision, v.Message = Deny, denied.message("is refused")
		v.Command, v.Name, v.Rule = denied.command, denied.name, denied.rule
	case c.question != nil:
		v.Decision, v.Message = Ask, c.question.message("needs the user's consent")
		v.Command, v.Name, v.Rule = c.question.command, c.question.name, c.question.rule
	case len(c.doubts) > 0:
		first := c.doubts[0]
		v.Decision, v.Command = Undecided, first.Command
		v.Message = fmt.Sprintf("It cannot be told from the text what %s runs: %s.", first.Command, first.Reason)
	}
	return v
}
