package dialect

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/approve"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/policy"
)

// policyFields returns the fields of the setting policy.
func policyFields(s *Settings) []field {
	p := &s.Stages.Policy
	return warnOfImpossiblePatterns([]field{
		nonEmptyTextsField("allow", []string{"allowlist", "allowed_tools"}, "Patterns of served names; only matching tools can be called.", ", or write tool_choice: none", &p.Allow),
		textsField("block", []string{"blocklist", "blocked_tools", "denylist"}, "Patterns of served names; matching tools cannot be called.", &p.Block),
		{"rules", nil, "Rules for single calls; the first matching rule decides.", map[string]any{"type": "array", "items": objectSchema(ruleFields(&policy.Rule{}), "do")},
			func(r *reader, n *node) { p.Rules = append(p.Rules, r.readRules(n)...) }},
		{"max_calls_per_minute", []string{"max_tool_calls_per_minute", "rate_limit_per_minute"}, "Maximum calls per tool and minute: a number, or a map of patterns of served names to numbers; default: no limit.",
			map[string]any{"oneOf": []any{perMinuteSchema(), map[string]any{"type": "object", "additionalProperties": perMinuteSchema()}}},
			func(r *reader, n *node) { p.MaxCallsPerMinute = r.perMinute(n) }},
		numberField("max_calls_per_turn", []string{"max_tool_calls_per_turn"}, "Maximum calls per turn (from a user's message to the model's answer; MCP clients have no turns); default: no limit.", &p.MaxCallsPerTurn),
		numberField("max_total_calls", []string{"max_total_tool_calls"}, "Maximum calls of one account (docs/policy.md) until the host restarts, or until policy or approval changes; default: no limit.", &p.MaxTotalCalls),
		numberOrOffField("max_identical_calls", []string{"max_identical_tool_calls"}, "Maximum calls of one account with the same tool and arguments (default 3 within a turn); off: no limit.", &p.MaxIdenticalCalls),
		numberOrOffField("max_parallel", []string{"max_parallel_calls", "max_parallel_tool_calls"}, "Maximum concurrent calls of one account, on all servers; further calls wait. The same setting as limits.max_parallel; default: 10 within a turn, otherwise no limit; off: no limit.", &s.Stages.Limit.MaxParallel),
		numberOrOffField("max_rounds", []string{"max_tool_rounds"}, "Maximum number of times that the model calls tools within a turn; several calls in one answer count once (default 50); off: no limit.", &p.MaxRounds),
		{"tool_choice", nil, "auto, none (no tool can be called), required (each turn must call a tool), or the served name of the only tool that can be called (default auto).", typeSchema("string"),
			func(r *reader, n *node) { p.ToolChoice = r.text(n) }},
		{"max_cost", nil, "Maximum total cost of one account's calls, in the unit of prices, until the host restarts, or until policy or approval changes; default: no limit.", map[string]any{"type": "number", "exclusiveMinimum": 0},
			func(r *reader, n *node) { p.MaxCost = r.price(n) }},
		{"prices", nil, "Cost of a call, by pattern of served names; the longest matching pattern applies.", map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "number", "minimum": 0}},
			func(r *reader, n *node) {
				p.Prices = map[string]float64{}
				r.eachMember(n, func(name string, value *node) { p.Prices[name] = r.price(value) })
			}},
		{"max_tools", nil, "", nil, func(r *reader, n *node) { s.Offer.MaxTools = r.count(n) }},
	}, "allow", "block")
}

// warnOfImpossiblePatterns returns fields, and changes those in which, which hold patterns of tool
// names: reading them warns of a pattern with a character that no name has, since it would match
// nothing.
func warnOfImpossiblePatterns(fields []field, which ...string) []field {
	for i, f := range fields {
		if !slices.Contains(which, f.name) {
			continue
		}
		fields[i].read = func(r *reader, n *node) {
			f.read(r, n)
			for _, item := range append(slices.Clip(n.items), n) {
				if item.kind == textNode && strings.IndexFunc(item.text, func(c rune) bool { return !isNameCharacter(c) && c != '*' }) >= 0 {
					r.warn("%s cannot match a tool: names have letters, digits, _ and -, and * is the only wildcard", shownName(item.text))
				}
			}
		}
	}
	return fields
}

// isNameCharacter reports whether tools that are served can have a character in their names.
func isNameCharacter(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// ruleFields returns the fields of a rule of the policy.
func ruleFields(rule *policy.Rule) []field {
	return warnOfImpossiblePatterns([]field{
		textField("tool", nil, "Pattern of served names; default: all tools.", &rule.Tool),
		textField("caller", nil, "Pattern of how the caller connects: stdio, http, api, cli or go; http also matches api. It can be followed by /USER for a signed-in user, or by /ID for another client. Default: all callers.", &rule.Caller),
		{"args", []string{"arguments"}, "Argument or JSON pointer → pattern of its value; all must match.", mapSchema("string", "number", "boolean"), func(r *reader, n *node) { rule.Args = r.textMap(n) }},
		{"do", []string{"action", "verdict"}, "What happens to a matching call.", enumSchema("allow", "ask", "deny"), func(r *reader, n *node) {
			rule.Do = policy.Verdict(r.choice(n, string(policy.Allow), string(policy.Ask), string(policy.Deny)))
		}},
		textField("why", nil, "Reason sent to the caller.", &rule.Why),
	}, "tool")
}

// approvalFields returns the fields of the setting approval.
func approvalFields(s *Stages) []field {
	a := &s.Approval
	text := func(name string, also []string, doc string, set func(string)) field {
		return field{name, also, doc, typeSchema("string"), func(r *reader, n *node) { set(r.text(n)) }}
	}
	return []field{
		durationField("expires", "How long an approval request stays open, and how long an approval is valid for repeating the call (default 5m).", &a.Expires),
		durationField("wait", "How long a call is held for a decision before it returns PENDING_APPROVAL; default: it returns immediately.", &a.Wait),
		boolField("ask_client", []string{"elicitation"}, "Whether to ask the user of the calling client, if it supports that (default true).", func(on bool) { a.ClientOff = !on }),
		text("callback", []string{"callback_url", "webhook"}, "URL that approval requests are posted to.", func(url string) { a.Callback.URL = url }),
		text("callback_secret", []string{"webhook_secret"}, "Key that signs posted requests. Write ${NAME} to take it from the environment.", func(text string) { a.Callback.Secret = approve.Secret(text) }),
		text("public_url", nil, "Public base URL of this host's /v1; default: the address of serve.", func(url string) { a.PublicURL = url }),
	}
}

// readRules reads a policy's rules.
func (r *reader) readRules(n *node) []policy.Rule {
	if n.kind != listNode {
		r.problem("want a list of rules, not %s", n.kindWord())
		return nil
	}
	path := r.field
	var rules []policy.Rule
	for i, item := range n.items {
		r.field, r.line = path+"["+strconv.Itoa(i)+"]", item.line
		var rule policy.Rule
		r.readMembers(item, ruleFields(&rule))
		if _, empty := rule.Args[""]; empty {
			r.problem("args has an argument without a name")
		}
		if item.kind == mapNode && !slices.ContainsFunc(item.pairs, func(p pair) bool { return slices.Contains([]string{"do", "action", "verdict"}, normalizeName(p.key)) }) {
			r.problem("do is missing: allow, ask or deny")
		}
		rules = append(rules, rule)
	}
	return rules
}

// maxPerMinute is the highest limit that package policy accepts.
const maxPerMinute = 100_000

// perMinuteSchema returns the schema of a number of calls per minute.
func perMinuteSchema() map[string]any {
	return map[string]any{"type": "integer", "minimum": 1, "maximum": maxPerMinute}
}

// perMinute reads max_calls_per_minute: one number for each tool (*), or numbers by
// pattern.
func (r *reader) perMinute(n *node) map[string]int {
	most := map[string]int{}
	read := func(name string, n *node) {
		if most[name] = r.count(n); most[name] > maxPerMinute {
			r.problem("want at most %d", maxPerMinute)
		}
	}
	if n.kind == numberNode {
		read("*", n)
		return most
	}
	r.eachMember(n, read)
	return most
}

// price returns an amount of at least 0. Other nodes are a problem.
func (r *reader) price(n *node) float64 {
	value, err := strconv.ParseFloat(n.text, 64)
	if n.kind != numberNode || err != nil || !(value >= 0) || math.IsInf(value, 0) {
		r.problem("want a number from 0")
		return 0
	}
	return value
}
