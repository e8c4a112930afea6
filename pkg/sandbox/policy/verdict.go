package policy

import (
	"fmt"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Decision says what to do with a command.
type Decision string

const (
	// Allow: run the command.
	Allow Decision = "allow"
	// Deny: do not run the command; Verdict.Message says why.
	Deny Decision = "deny"
	// Ask: run the command only if the user agrees.
	Ask Decision = "ask"
	// Undecided: run the command, although the text does not tell all it does.
	Undecided Decision = "undecided"
)

// Verdict is the decision on a whole command, with its reason.
type Verdict struct {
	Decision Decision
	// Command is the simple command that decided, as an excerpt of the source;
	// "" if Decision is Allow.
	Command string
	// Name is the program in Command, as far as known: "curl" for c''url.
	Name string
	// Rule is the rule that decided: as the user wrote it with its kind ("deny
	// git push *"), or the name of a built-in rule ("network clients").
	Rule string
	// Message tells a model what was decided, by which rule, and what to do
	// instead; "" if Decision is Allow.
	Message string
	// Doubts are parts of the command whose effect the text does not tell, at
	// most 8. There may be some with any decision.
	Doubts []Doubt
}

// Doubt is a part of a command whose effect its text does not tell.
type Doubt struct {
	// Command is the part, as an excerpt of the source.
	Command string `json:"command"`
	// Reason says why the text does not tell it.
	Reason string `json:"reason"`
}

const (
	maxDoubts  = 8   // in a Verdict
	maxExcerpt = 120 // bytes of a command quoted in a message
	maxReason  = 300 // bytes of a doubt's reason
)

// Refused reports whether the command must not run: whether Decision is Deny.
func (v Verdict) Refused() bool { return v.Decision == Deny }

// Err returns nil unless the command is refused; then a *toolerr.Error with the
// code COMMAND_DENIED, the message, and Metadata as the value "policy".
func (v Verdict) Err() error {
	if !v.Refused() {
		return nil
	}
	return toolerr.New(toolerr.CommandDenied, "%s", v.Message).With("policy", v.Metadata())
}

// Metadata returns the verdict as an object for structuredContent: decision
// and, unless they are empty, command, name, rule and undecided (the doubts).
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

// finding is a reason to deny a command or to ask.
type finding struct {
	command string // the simple command as an excerpt
	name    string // the program; "": unknown
	rule    string // as in Verdict.Rule
	why     string // a clause
	instead string // what to do instead, in sentences; may be ""
}

// message returns the text for the model; verb says what happens to the
// command: "is refused".
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

// verdict returns the decision that follows from all findings: Deny if there is
// a denial (in allow-list mode also for a doubt), else Ask if there is a
// question, else Undecided if there is a doubt, else Allow.
func (c *evaluation) verdict() Verdict {
	v := Verdict{Decision: Allow, Doubts: c.doubts}
	denied := c.denial
	if denied == nil && c.policy.mode == AllowList && len(c.doubts) > 0 {
		first := c.doubts[0]
		denied = &finding{
			command: first.Command, rule: "allow-list mode",
			why:     "its text does not show what it runs: " + first.Reason,
			instead: "Write the commands out, each by its name and with its arguments, or ask the user to run it.",
		}
	}
	switch {
	case denied != nil:
		v.Decision, v.Message = Deny, denied.message("is refused")
		v.Command, v.Name, v.Rule = denied.command, denied.name, denied.rule
	case c.question != nil:
		v.Decision, v.Message = Ask, c.question.message("needs the user's approval")
		v.Command, v.Name, v.Rule = c.question.command, c.question.name, c.question.rule
	case len(c.doubts) > 0:
		first := c.doubts[0]
		v.Decision, v.Command = Undecided, first.Command
		v.Message = fmt.Sprintf("The text does not show what %s runs: %s.", first.Command, first.Reason)
	}
	return v
}
