package main

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Named values of --tools.
const (
	ceilingReadonly = "readonly"
	ceilingEdit     = "edit"
	ceilingAll      = "all"
)

// toolName is the name of this tool.
const toolName = "dispatch_agent"

// toolSet lists the tools that an agent may use, as names or patterns in which
// * matches any characters.
type toolSet []string

// readOnlyTools returns the tools that change nothing.
func readOnlyTools() toolSet { return toolSet{"ls", "glob", "grep", "view"} }

// bundledTools returns the tools that are released together with this binary.
func bundledTools() toolSet {
	return append(readOnlyTools(), "edit", "replace", "bash", "bash_job", toolName)
}

// parseCeiling parses the value of --tools. It returns INVALID_PARAMS for a name that
// is no tool name or pattern.
func parseCeiling(text string) (toolSet, error) {
	switch text {
	case ceilingReadonly:
		return readOnlyTools(), nil
	case ceilingEdit:
		return append(readOnlyTools(), "edit", "replace"), nil
	case ceilingAll:
		return toolSet{"*"}, nil
	}
	var set toolSet
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		if !isToolPattern(name) {
			return nil, toolerr.New(toolerr.InvalidParams, "--tools: unknown tool %q: give readonly, edit, all, or a comma-separated list of tools", name)
		}
		set = append(set, name)
	}
	return set, nil
}

// isToolPattern reports whether name is a valid tool name or pattern.
func isToolPattern(name string) bool {
	return name != "" && len(name) <= 64 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-*") == ""
}

// has reports whether the set contains a tool, or every tool that a pattern
// matches.
func (s toolSet) has(name string) bool {
	return slices.ContainsFunc(s, func(pattern string) bool {
		// A * in the set matches a * in name, so that comparing
		// patterns as texts also compares the sets of names they match.
		ok, err := path.Match(pattern, name)
		return err == nil && ok
	})
}

// subset returns wanted, names or patterns, as a set. It returns INVALID_PARAMS
// if a name in wanted is not in s.
func (s toolSet) subset(wanted []string) (toolSet, error) {
	set := toolSet{}
	for _, name := range wanted {
		if !isToolPattern(name) {
			return nil, toolerr.New(toolerr.InvalidParams, "tools: %q is not a tool name", name)
		}
		if !s.has(name) {
			return nil, toolerr.New(toolerr.InvalidParams, "tools: %s is not allowed for this agent; allowed: %s", name, s)
		}
		set = append(set, name)
	}
	return set, nil
}

// intersect returns the intersection of both sets.
func (s toolSet) intersect(other toolSet) toolSet {
	both := toolSet{}
	for _, name := range s {
		if other.has(name) {
			both = append(both, name)
		}
	}
	for _, name := range other {
		if s.has(name) && !slices.Contains(both, name) {
			both = append(both, name)
		}
	}
	return both
}

// namesIn returns the names in known that the set contains, so that the result
// has no patterns.
func (s toolSet) namesIn(known toolSet) toolSet {
	set := toolSet{}
	for _, name := range known {
		if s.has(name) {
			set = append(set, name)
		}
	}
	return set
}

// unmatched returns the names and patterns of the set that match nothing in
// known.
func (s toolSet) unmatched(known toolSet) toolSet {
	return slices.DeleteFunc(slices.Clone(s), func(name string) bool { return len(toolSet{name}.namesIn(known)) > 0 })
}

// isReadOnly reports whether all tools of the set are read-only.
func (s toolSet) isReadOnly() bool {
	return !slices.ContainsFunc(s, func(name string) bool { return !readOnlyTools().has(name) })
}

// String returns the names and patterns of the set for messages, separated by
// commas: "no tool" for an empty set, "all tools" for one with "*".
func (s toolSet) String() string {
	switch {
	case len(s) == 0:
		return "no tool"
	case slices.Contains(s, "*"):
		return "all tools"
	}
	return strings.Join(s, ", ")
}

// toolsFor returns the tools that an agent may use: those allowed by this
// server, the dispatching agent, the kind and the call together. It returns
// INVALID_PARAMS if the call names a tool that the others do not allow. hosted
// says that the call came through a host, which may have other tools than the
// bundled ones.
func (d *dispatcher) toolsFor(args arguments, k agentKind, bound grant, hosted bool) (toolSet, error) {
	most := d.ceiling
	if bound.Depth > 0 {
		// An agent's own mcp-host starts this server without the user's
		// --tools; the grant has them.
		most = bound.Tools
	}
	if k.tools != nil {
		most = most.intersect(k.tools)
	}
	if !hosted {
		most = most.namesIn(bundledTools())
	}
	if args.Tools == nil {
		return most, nil
	}
	return most.subset(args.Tools)
}

// noteUnknownTools adds a note about names in --tools that match no bundled
// tool. It returns INVALID_PARAMS if no name matches.
func (d *dispatcher) noteUnknownTools(ctx context.Context) error {
	unknown := d.ceiling.unmatched(bundledTools())
	if len(unknown) == 0 {
		return nil
	}
	missing := fmt.Sprintf("--tools of this server: no tool %s; available: %s", unknown, bundledTools())
	if len(unknown) == len(d.ceiling) {
		return toolerr.New(toolerr.InvalidParams, "%s", missing)
	}
	mcpkit.Notef(ctx, "%s", missing)
	return nil
}
