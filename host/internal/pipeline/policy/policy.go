// Package policy is the stage that decides whether a call may be made: by lists, by rules, and
// by the number of earlier calls.
//
// The checks, in this order: a tool that matches a pattern of Block is refused; if Allow has
// patterns, a tool that matches no pattern is refused; then the first matching rule of Rules
// decides; without one the call is allowed. So exceptions come first:
//
//	{Tool: "bash", Args: {"command": "git status*"}, Do: Allow},
//	{Tool: "bash", Do: Ask, Why: "it can change things"},
//
// In a pattern * matches any text, including line ends and slashes; no other character is
// special. A rule names arguments by their member (command) or by a JSON pointer
// (/options/force). For an object or array, every text, number and so on in it counts: a rule
// that allows requires all of them to match, a rule that denies or asks requires one. Such
// rules also match members whose names differ in letter case, since servers may accept those.
//
// Patterns do not know the meaning of arguments: "git status*" also matches "git status; rm -r
// .". The tool that runs a command judges it; rules decide which callers may use the tool.
//
// A renamed tool has both names: a rule for SERVER__TOOL applies whatever its served name is.
//
// Calls are counted when they are let through: by tool over the last minute, for all callers;
// by turn; and by caller, as long as the caller is known, which is at least until 4096 others
// have called. A call that waits for approval, or is not approved, counts only for the minute.
// Package limit bounds the concurrent calls of a caller.
//
// A turn is one answer of a model with all its rounds of calls. The code that leads a
// conversation begins one (Policy.Turn) and makes its calls in it. MCP clients have no turns;
// their calls count by caller.
package policy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A Verdict is the action of a rule.
type Verdict string

// The verdicts.
const (
	Allow Verdict = "allow"
	Ask   Verdict = "ask"
	Deny  Verdict = "deny"
)

// A Rule decides the calls that it matches. An empty field matches all.
type Rule struct {
	Tool   string            // pattern of the served name
	Caller string            // pattern of the entry point, or of ENTRY/USER for signed-in users and ENTRY/ID for others
	Args   map[string]string // patterns by argument; all must match
	Do     Verdict
	Why    string // text for the caller
}

// Config is the policy. The zero value allows everything.
type Config struct {
	Allow []string // patterns of served names; none: all tools
	Block []string
	Rules []Rule

	// ToolChoice is auto, required, none, or the served name of the only tool that may
	// be called; "": auto. required applies to turns.
	ToolChoice string

	MaxCallsPerMinute map[string]int // for each tool that a pattern matches; the lowest limit counts
	MaxCallsPerTurn   int            // 0: no limit, here and below
	MaxTotalCalls     int            // of a caller

	// MaxIdenticalCalls limits calls with the same tool and arguments by one caller,
	// in a turn if there is one; each agent of a caller counts separately. 0: 3 in a
	// turn, otherwise no limit. Negative: no limit.
	MaxIdenticalCalls int

	MaxRounds int                // of a turn; 0: 50. Negative: no limit
	MaxCost   float64            // of a caller's calls, in the unit of Prices; 0: no limit
	Prices    map[string]float64 // of a call, by pattern; the longest matching pattern counts
}

// The values of ToolChoice other than a name.
const (
	ChoiceAuto     = "auto"
	ChoiceRequired = "required"
	ChoiceNone     = "none"
)

const (
	defaultMaxRounds    = 50
	defaultMaxIdentical = 3
)

// maxPerMinute bounds the memory for a tool.
const maxPerMinute = 100_000

// Validate returns an error that names the wrong field.
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
	}{{"max_calls_per_turn", c.MaxCallsPerTurn}, {"max_total_calls", c.MaxTotalCalls}} {
		if f.value < 0 {
			return fmt.Errorf("policy: %s must not be negative, got %d", f.name, f.value)
		}
	}
	for pattern, price := range c.Prices {
		if !(price >= 0) || math.IsInf(price, 0) { // also for NaN
			return fmt.Errorf("policy: prices: the price of %s must be 0 or more, got %v", pattern, price)
		}
	}
	switch {
	case !(c.MaxCost >= 0) || math.IsInf(c.MaxCost, 0):
		return fmt.Errorf("policy: max_cost must be 0 or more, got %v", c.MaxCost)
	case c.MaxCost > 0 && len(c.Prices) == 0:
		return errors.New("policy: max_cost needs prices, the costs of calls")
	}
	return nil
}

// Approval asks a person about calls with the verdict Ask, and remembers the decisions
// (package approve).
type Approval interface {
	// Stage returns a handler that makes only approved calls, each with next.
	Stage(next call.Handler) call.Handler
}

// A Policy is the only stage that decides whether a call is made: Config.Decide applies
// the lists and rules, the counters bound the number of calls, and Approval asks a
// person. It is safe for concurrent use.
type Policy struct {
	cfg      Config
	counts   *counters
	approval Approval
}

// New returns a policy. If approval is nil, calls with the verdict Ask are refused.
func New(c Config, approval Approval) *Policy {
	return &Policy{cfg: c, counts: newCounters(c), approval: approval}
}

// Stage returns a handler that makes only permitted calls, each with next. A call that
// was not approved, or not made, counts only for the limit per minute.
func (p *Policy) Stage(next call.Handler) call.Handler {
	free := len(p.cfg.Allow)+len(p.cfg.Block)+len(p.cfg.Rules) == 0 && p.cfg.toolChoicePermits(&call.Tool{})
	return func(ctx context.Context, req *call.Request) (*call.Result, error) {
		if free && !p.counts.hasLimits(req.Caller) {
			return next(ctx, req)
		}
		d, err := p.cfg.Decide(req)
		switch {
		case err != nil:
			return nil, err
		case d.Do == Deny:
			return nil, d.refusal(req)
		}
		ticket, err := p.counts.admit(req)
		if err != nil {
			return nil, err
		}
		if u := req.Tool.Unlisted; d.Do != Ask || u != nil && u.Err != nil { // nobody is asked about a call that fails
			return next(ctx, req)
		}
		asked := *req
		asked.Reason = d.Text
		if p.approval == nil {
			p.counts.giveBack(ticket)
			return refuseWithoutApproval(ctx, &asked)
		}
		made := false
		approved := p.approval.Stage(func(ctx context.Context, req *call.Request) (*call.Result, error) {
			made = true
			return next(ctx, req)
		})
		res, err := approved(ctx, &asked)
		if !made {
			p.counts.giveBack(ticket)
		}
		return res, err
	}
}

// A Decision is the policy's decision about a call, regardless of earlier calls.
type Decision struct {
	Do   Verdict `json:"do"`
	Rule int     `json:"rule,omitempty"` // number of the rule that decided, from 1; 0: none
	Text string  `json:"text"`           // the deciding setting and its reason
}

// Decide returns the decision of the lists and rules about a call: Allow if none of them
// matches. It returns an error if a rule cannot read the call's arguments.
func (c Config) Decide(req *call.Request) (Decision, error) {
	t := req.Tool
	switch {
	case c.ToolChoice == ChoiceNone:
		return Decision{Deny, 0, "the policy of this host allows no tool calls (tool_choice: none)"}, nil
	case !c.toolChoicePermits(t):
		return Decision{Deny, 0, "the policy of this host allows only " + c.ToolChoice + " (tool_choice)"}, nil
	case matchesAny(c.Block, t):
		return Decision{Deny, 0, "the policy of this host does not allow this tool (block)"}, nil
	case len(c.Allow) > 0 && !matchesAny(c.Allow, t):
		return Decision{Deny, 0, "the policy of this host does not allow this tool (not in allow)"}, nil
	}
	for i := range c.Rules {
		r := &c.Rules[i]
		if r.Tool != "" && !matchTool(r.Tool, t) || r.Caller != "" && !matchCaller(r.Caller, req.Caller) {
			continue
		}
		ok, err := r.matchArgs(req)
		if err != nil {
			return Decision{}, err
		}
		if ok {
			return Decision{r.Do, i + 1, r.describe(i + 1)}, nil
		}
	}
	return Decision{Allow, 0, "no rule of this host's policy matches this call"}, nil
}

// Offers reports whether Allow and Block permit a tool, so that it is listed for callers.
// Rules decide only about single calls.
func (c Config) Offers(t *call.Tool) bool {
	return c.toolChoicePermits(t) && !matchesAny(c.Block, t) && (len(c.Allow) == 0 || matchesAny(c.Allow, t))
}

// toolChoicePermits reports whether c.ToolChoice permits calls of a tool: not with none,
// and not if ToolChoice names another tool.
func (c Config) toolChoicePermits(t *call.Tool) bool {
	switch c.ToolChoice {
	case "", ChoiceAuto, ChoiceRequired:
		return true
	case ChoiceNone:
		return false
	}
	return c.ToolChoice == t.Name || c.ToolChoice == t.Unrenamed
}

// Check returns an error if the lists or rules refuse a call, whatever its caller did
// before. It counts nothing.
func (c Config) Check(req *call.Request) error {
	d, err := c.Decide(req)
	if err == nil && d.Do == Deny {
		err = d.refusal(req)
	}
	return err
}

// describe returns a text with the number of the rule and the calls that it matches.
func (r *Rule) describe(number int) string {
	var of []string
	if r.Tool != "" {
		of = append(of, "tool "+r.Tool)
	}
	if r.Caller != "" {
		of = append(of, "caller "+r.Caller)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Args)) {
		of = append(of, name+" "+r.Args[name])
	}
	text := "rule " + strconv.Itoa(number) + " of this host's policy"
	if len(of) > 0 {
		text += " (" + strings.Join(of, ", ") + ")"
	}
	text += map[Verdict]string{Allow: " allows this call", Deny: " denies this call", Ask: " requires approval"}[r.Do]
	if r.Why != "" {
		text += ": " + r.Why
	}
	return text
}

// refusal returns the error for a denied call.
func (d Decision) refusal(req *call.Request) error {
	return &call.ValidationError{Type: call.PolicyViolation, Tool: req.Tool.Name, Detail: d.Text + "; continue without it"}
}

// matchesAny reports whether one of the patterns matches a tool by any of its names.
func matchesAny(patterns []string, t *call.Tool) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matchTool(pattern, t) })
}

// matchTool reports whether a pattern matches one of the names of a tool.
func matchTool(pattern string, t *call.Tool) bool {
	return matchesPattern(pattern, t.Name) || t.Unrenamed != "" && matchesPattern(pattern, t.Unrenamed)
}

// matchCaller reports whether a pattern matches a caller. The API uses HTTP as well,
// so patterns for http match it, too.
func matchCaller(pattern string, c call.Caller) bool {
	entryPoints := []string{c.EntryPoint}
	if c.EntryPoint == "api" {
		entryPoints = append(entryPoints, "http")
	}
	id := c.ID
	if c.User != "" {
		id = c.User
	}
	return slices.ContainsFunc(entryPoints, func(entryPoint string) bool {
		return matchesPattern(pattern, entryPoint) || strings.Contains(pattern, "/") && matchesPattern(pattern, entryPoint+"/"+id)
	})
}

// matchesPattern reports whether a pattern with * matches a whole text.
func matchesPattern(pattern, text string) bool {
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

// refuseWithoutApproval is the approval handler of a host without approvals.
func refuseWithoutApproval(_ context.Context, req *call.Request) (*call.Result, error) {
	return nil, &call.ValidationError{
		Type: call.PolicyViolation, Tool: req.Tool.Name,
		Detail: req.Reason + "; this host cannot ask; continue without it, or change the rule to allow",
	}
}

// refusal returns the error for an exceeded limit.
func refusal(req *call.Request, cause *toolerr.Error) error {
	return &call.ValidationError{Type: call.PolicyViolation, Tool: req.Tool.Name, Detail: cause.Error(), Cause: cause}
}
