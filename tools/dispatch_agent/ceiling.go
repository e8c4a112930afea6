package main

import (
	"path"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// The named ceilings.
const (
	readonly = "readonly"
	edit     = "edit"
	all      = "all"
)

// self is this tool's name among those of an agent.
const self = "dispatch_agent"

// toolSet is which tools an agent may use: names, in which * stands for any
// characters.
type toolSet []string

func readers() toolSet { return toolSet{"ls", "glob", "grep", "view"} }

// bundled are the tools that are beside this binary.
func bundled() toolSet {
	return append(readers(), "edit", "replace", "bash", "bash_job", self)
}

// parseCeiling reads what --tools says.
func parseCeiling(text string) (toolSet, error) {
	switch text {
	case readonly:
		return readers(), nil
	case edit:
		return append(readers(), "edit", "replace"), nil
	case all:
		return toolSet{"*"}, nil
	}
	var set toolSet
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		if !isPattern(name) {
			return nil, toolerr.New(toolerr.InvalidParams, "--tools: unknown tool %q: give readonly, edit, all, or a comma-separated list of tools", name)
		}
		set = append(set, name)
	}
	return set, nil
}

// isPattern reports whether name can be a tool's, or stand for several.
func isPattern(name string) bool {
	return name != "" && len(name) <= 64 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-*") == ""
}

// has reports whether a tool, or every tool that a pattern stands for, is one
// of the set.
func (s toolSet) has(name string) bool {
	return slices.ContainsFunc(s, func(pattern string) bool {
		// A pattern's * matches another's, so that what is within it as
		// text is within it as a set.
		ok, err := path.Match(pattern, name)
		return err == nil && ok
	})
}

// narrow returns what of the set is wanted. A name of wanted that is not of
// the set is an error.
func (s toolSet) narrow(wanted []string) (toolSet, error) {
	set := toolSet{}
	for _, name := range wanted {
		if !isPattern(name) {
			return nil, toolerr.New(toolerr.InvalidParams, "tools: %q is not a tool name", name)
		}
		if !s.has(name) {
			return nil, toolerr.New(toolerr.InvalidParams, "tools: %s is not allowed for this agent; allowed: %s", name, s)
		}
		set = append(set, name)
	}
	return set, nil
}

// within returns what both sets have.
func (s toolSet) within(other toolSet) toolSet {
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

// named replaces patterns by the names of known that they stand for.
func (s toolSet) named(known toolSet) toolSet {
	set := toolSet{}
	for _, name := range known {
		if s.has(name) {
			set = append(set, name)
		}
	}
	return set
}

// strange are the names and patterns of the set that none of known has.
func (s toolSet) strange(known toolSet) toolSet {
	return slices.DeleteFunc(slices.Clone(s), func(name string) bool { return len(toolSet{name}.named(known)) > 0 })
}

// reads reports whether nothing of the set changes anything.
func (s toolSet) reads() bool {
	return !slices.ContainsFunc(s, func(name string) bool { return !readers().has(name) })
}

func (s toolSet) String() string {
	switch {
	case len(s) == 0:
		return "no tool"
	case slices.Contains(s, "*"):
		return "all tools"
	}
	return strings.Join(s, ", ")
}
