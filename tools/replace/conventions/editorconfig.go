package conventions

import (
	"regexp"
	"strings"
)

// maxPattern is the longest section name that is looked at.
const maxPattern = 1024

// parseEditorConfig returns the properties that an .editorconfig sets for a
// path below its directory, in lower case, and whether it is the topmost one.
func parseEditorConfig(text, below string) (set map[string]string, root bool) {
	set = map[string]string{}
	preamble, applies := true, false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if line[0] == '[' && strings.HasSuffix(line, "]") {
			preamble, applies = false, sectionMatches(line[1:len(line)-1], below)
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
			set[name] = value
		}
	}
	return set, root
}

// sectionMatches reports whether a section is about a path. A name without a
// slash is of a file at any depth.
func sectionMatches(pattern, below string) bool {
	if len(pattern) > maxPattern {
		return false
	}
	anchored := strings.Contains(pattern, "/")
	return matches(strings.TrimPrefix(pattern, "/"), below, anchored, true)
}

// matches compares a path with a glob; one that is not anchored is of the
// path's end.
func matches(glob, path string, anchored, editor bool) bool {
	t := translator{glob: glob, editor: editor}
	t.sequence(0)
	prefix := "(?s)^(?:.*/)?"
	if anchored {
		prefix = "(?s)^"
	}
	re, err := regexp.Compile(prefix + t.out.String() + "$")
	if err != nil || !re.MatchString(path) {
		return false
	}
	return t.inRange(re.FindStringSubmatch(path))
}
