package dialect

import (
	"path/filepath"
	"slices"
)

// The other content of Claude Code's .claude.json (prompts, caches, data of each
// project) can be a hundred times as large as a configuration, and is skipped.

// maxClaude bounds that file.
const maxClaude = 128 << 20

// isClaude reports whether a file is the settings file of Claude Code, in which servers
// are listed by project.
func isClaude(file string) bool { return filepath.Base(file) == ".claude.json" }

// MaxText returns the maximum size of a configuration file in bytes.
func MaxText(file string) int {
	if isClaude(file) {
		return maxClaude
	}
	return maxText
}

// isSkipped reports whether the host does not need the member of .claude.json at this path.
func isSkipped(path []string) bool {
	switch len(path) {
	case 1:
		return !slices.Contains(append(topLevel(), "projects", "toolroom"), path[0])
	case 3:
		return path[0] == "projects" && path[2] != "mcpServers" && path[2] != "disabledMcpServers"
	}
	return false
}

// projectOf returns the entry of .claude.json for the project in exactly the directory
// dir, or nil.
func projectOf(root *node, dir string) *node {
	projects := root.get("projects")
	if dir == "" || projects == nil || projects.kind != mapNode {
		return nil
	}
	for _, p := range projects.pairs {
		if filepath.ToSlash(p.key) == filepath.ToSlash(dir) {
			return p.value
		}
	}
	return nil
}

// withoutOverridden returns the sections without those servers of the user whose names the
// project's servers have, too: the narrower scope counts.
func withoutOverridden(sections []section, local *node) []section {
	for i, s := range sections {
		if s.path != "mcpServers" || s.node.kind != mapNode || local.get("mcpServers") == nil {
			continue
		}
		rest := *s.node
		rest.pairs = slices.DeleteFunc(slices.Clone(rest.pairs), func(p pair) bool {
			return local.get("mcpServers").get(p.key) != nil
		})
		sections[i].node = &rest
	}
	return sections
}

// textItems returns the texts of the items of a list; nil if n is not a list.
func textItems(n *node) []string {
	if n == nil || n.kind != listNode {
		return nil
	}
	out := []string{}
	for _, item := range n.items {
		out = append(out, item.text)
	}
	return out
}
