package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// Unmatched describes the parts of the policy that can never apply: patterns of rules,
// allow and block that match no tool, and arguments of rules that no matching tool
// declares. tools are all served tools.
func (c Config) Unmatched(tools []*call.Tool) (texts []string) {
	for _, list := range []struct {
		name     string
		patterns []string
	}{{"allow", c.Allow}, {"block", c.Block}} {
		for _, pattern := range list.patterns {
			if len(matching(pattern, tools)) == 0 {
				texts = append(texts, fmt.Sprintf("policy: %s: no tool matches %q", list.name, pattern))
			}
		}
	}
	for i, r := range c.Rules {
		matched := tools
		if r.Tool != "" {
			matched = matching(r.Tool, tools)
		}
		if len(matched) == 0 {
			texts = append(texts, fmt.Sprintf("policy: rule %d: no tool matches %q", i+1, r.Tool))
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(r.Args)) {
			if text := undeclaredReason(name, matched); text != "" {
				texts = append(texts, fmt.Sprintf("policy: rule %d: %s", i+1, text))
			}
		}
	}
	return texts
}

// matching returns the tools that match a pattern.
func matching(pattern string, tools []*call.Tool) (matched []*call.Tool) {
	for _, t := range tools {
		if matchTool(pattern, t) {
			matched = append(matched, t)
		}
	}
	return matched
}

// undeclaredReason returns why a rule's argument cannot occur: no matching tool declares
// it. "": it can occur. A tool without declared arguments may accept any.
func undeclaredReason(name string, tools []*call.Tool) string {
	first := name
	if rest, ok := strings.CutPrefix(name, "/"); ok {
		first, _, _ = strings.Cut(rest, "/")
		first = strings.NewReplacer("~1", "/", "~0", "~").Replace(first)
	}
	var listed []string
	for _, t := range tools {
		known := declaredArgs(t)
		if known == nil {
			return ""
		}
		for property := range known {
			if strings.EqualFold(property, first) {
				return ""
			}
		}
		listed = append(listed, slices.Collect(maps.Keys(known))...)
	}
	if len(tools) > 1 {
		return fmt.Sprintf("none of the %d matching tools has an argument %q", len(tools), first)
	}
	slices.Sort(listed)
	return fmt.Sprintf("%s has no argument %q; its arguments are %s", tools[0].Name, first, strings.Join(listed, ", "))
}
