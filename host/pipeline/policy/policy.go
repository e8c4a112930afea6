// Package policy is the stage that decides whether a call may be made: by
// lists and rules, and by how many calls there have been.
//
// In this order: a tool that a pattern of Block matches is refused; where
// Allow has patterns, one that none matches is refused; then the first of
// Rules that matches decides, and where none does the call is allowed. So
// exceptions come before what they are exceptions from:
//
//	{Tool: "bash", Args: {"command": "git status*"}, Do: Allow},
//	{Tool: "bash", Do: Ask, Why: "it can change things"},
//
// A pattern is a text in which * stands for any text, across lines and
// slashes, and nothing else is special. A rule's arguments are named by their
// member (command) or a JSON pointer (/options/force). Of an object or array
// every text, number and so on below it counts: a rule that allows needs all
// to match, one that denies or asks needs one. The latter also look at members
// whose names differ in case only, since servers may.
//
// Patterns know nothing of what arguments mean: "git status*" also matches
// "git status; rm -r .". Commands are judged by the tool that runs them; rules
// are for who may call it at all.
//
// Calls are counted when they are let through: by tool over the last minute,
// whoever calls; by turn; and by caller, as long as the caller is known, which
// is at least until 4096 others have called. How many calls of one caller run
// at once is package limit's.
package policy

import (
	"context"
	"fmt"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/call"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A Verdict is what a rule says of a call.
type Verdict string

// The verdicts.
const (
	Allow Verdict = "allow"
	Ask   Verdict = "ask"
	Deny  Verdict = "deny"
)

// A Rule decides on the calls it matches. What is empty matches all.
type Rule struct {
	Tool   string            // pattern of the served name
	Caller string            // pattern of the door, or of DOOR/ID
	Args   map[string]string // argument → pattern; all must match
	Do     Verdict
	Why    string // told to who called
}

// Config is the policy. The zero value allows everything.
type Config struct {
	Allow []string // patterns of served names; none: all tools
	Block []string
	Rules []Rule

	MaxCallsPerMinute map[string]int // by pattern, for each tool; the least counts
	MaxCallsPerTurn   int            // 0: any number, as below
	MaxTotalCalls     int            // of one caller
	MaxIdenticalCalls int            // same tool and arguments, of one caller, in a turn where there is one
}

// maxPerMinute bounds what is remembered for a tool.
const maxPerMinute = 100_000

// Validate names the field that is wrong.
func (c Config) Validate() error {
	for i, r := range c.Rules {
		if r.Do != Allow && r.Do != Ask && r.Do != Deny {
			return fmt.Errorf("policy: rules[%d]: do is %q, not one of allow, ask, deny", i, r.Do)
		}
		for name := range r.Args {
			if name == "" {
				return fmt.Errorf("policy: rules[%d]: args has an argument without a name", i)
			}
		}
	}
	for pattern, n := range c.MaxCallsPerMinute {
		if n < 0 || n > maxPerMinute {
			return fmt.Errorf("policy: max_calls_per_minute of %s is %d, not between 0 and %d", pattern, n, maxPerMinute)
		}
	}
	for _, f := range []struct {
		name  string
		value int
	}{{"max_calls_per_turn", c.MaxCallsPerTurn}, {"max_total_calls", c.MaxTotalCalls}, {"max_identical_calls", c.MaxIdenticalCalls}} {
		if f.value < 0 {
			return fmt.Errorf("policy: %s is %d, less than nothing", f.name, f.value)
		}
	}
	return nil
}

// New returns the stage. Calls that a rule asks about go through approval
// before they go on; without one (nil) they are refused.
func New(c Config, approval call.Stage) call.Stage {
	counts := newCounters(c)
	free := len(c.Allow)+len(c.Block)+len(c.Rules) == 0 && !counts.any()
	return func(next call.Handler) call.Handler {
		if free {
			return next
		}
		approved := refuse
		if approval != nil {
			approved = approval(next)
		}
		return func(ctx context.Context, req *call.Request) (*call.Result, error) {
			verdict, rule, err := c.verdict(req)
			switch {
			case err != nil:
				return nil, err
			case verdict == Deny:
				return nil, denied(req, rule)
			}
			if err := counts.admit(req); err != nil {
				return nil, err
			}
			if verdict == Ask {
				return approved(ctx, req)
			}
			return next(ctx, req)
		}
	}
}

// verdict returns what is to be done, and the rule that says so; nil: a list.
func (c Config) verdict(req *call.Request) (Verdict, *Rule, error) {
	name := req.Tool.Name
	if matchesAny(c.Block, name) || len(c.Allow) > 0 && !matchesAny(c.Allow, name) {
		return Deny, nil, nil
	}
	for i := range c.Rules {
		r := &c.Rules[i]
		if r.Tool != "" && !match(r.Tool, name) || r.Caller != "" && !matchCaller(r.Caller, req.Caller) {
			continue
		}
		ok, err := r.matchArgs(req)
		if err != nil {
			return "", nil, err
		}
		if ok {
			return r.Do, r, nil
		}
	}
	return Allow, nil, nil
}

func matchesAny(patterns []string, name string) bool {
	for _, p := range patterns {
		if match(p, name) {
			return true
		}
	}
	return false
}

func matchCaller(pattern string, c call.Caller) bool {
	return match(pattern, c.Door) || strings.Contains(pattern, "/") && match(pattern, c.Door+"/"+c.ID)
}

// match reports whether a pattern matches the whole of a text.
func match(pattern, text string) bool {
	first, rest, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, first)
	if !ok {
		return false
	}
	for {
		var part string
		part, rest, wild = strings.Cut(rest, "*")
		if !wild {
			return strings.HasSuffix(text, part)
		}
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
}

func denied(req *call.Request, r *Rule) error {
	detail := "the policy of this host does not allow this tool; go on without it"
	if r != nil {
		detail = "a rule of this host denies this call" + because(r) + "; go on without it"
	}
	return &call.ValidationError{Type: call.PolicyViolation, Tool: req.Tool.Name, Detail: detail}
}

func because(r *Rule) string {
	if r.Why == "" {
		return ""
	}
	return ": " + r.Why
}

// refuse stands for an approval that this host does not have.
func refuse(_ context.Context, req *call.Request) (*call.Result, error) {
	return nil, &call.ValidationError{
		Type: call.PolicyViolation, Tool: req.Tool.Name,
		Detail: "a rule of this host asks for approval of this call, and this host has no way to ask; go on without it, or have the rule changed to allow",
	}
}

// refusal is an error of a limit.
func refusal(req *call.Request, cause *toolerr.Error) error {
	return &call.ValidationError{Type: call.PolicyViolation, Tool: req.Tool.Name, Detail: cause.Error(), Cause: cause}
}
