package conventions

import (
	"strings"
)

// parseEditorConfig returns the properties that the text of an .editorconfig
// sets for a path relative to its directory, with names and values in lower
// case. root reports whether it has root=true, after which directories further
// up do not count.
//
// editorconfig-core-go is not used for this: it expands a range of numbers, so
// that the section {1..1000000} takes seconds and 600 MB, and it rejects the
// whole file for one malformed line.
func parseEditorConfig(text, relPath string, work *workBudget) (props map[string]string, root bool) {
	props = map[string]string{}
	preamble, applies := true, false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if line[0] == '[' && strings.HasSuffix(line, "]") {
			preamble, applies = false, work.sectionMatches(line[1:len(line)-1], relPath)
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			continue
		}
		name, value = strings.ToLower(strings.TrimSpace(name)), strings.ToLower(strings.TrimSpace(value))
		switch {
		case preamble && name == "root":
			root = value == "true"
		case applies:
			props[name] = value
		}
	}
	return props, root
}

// sectionMatches reports whether a section of an .editorconfig applies to a
// path. A pattern without a slash matches at any depth.
func (b *workBudget) sectionMatches(pattern, relPath string) bool {
	if len(pattern) > maxPattern {
		return false
	}
	anchored := strings.Contains(pattern, "/")
	return b.globMatches(strings.TrimPrefix(pattern, "/"), relPath, anchored, true)
}
