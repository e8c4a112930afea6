package conventions

import "strings"

// parseGitAttributes returns the attributes that the text of a .gitattributes
// gives to a path relative to its directory: "true" for set, "false" for unset,
// "" for unspecified, otherwise the value. Of several matching lines, the last
// one counts.
func parseGitAttributes(text, relPath string, work *workBudget) map[string]string {
	attrs := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || strings.HasPrefix(line, "[attr]") {
			continue
		}
		pattern, rest := cutPattern(line)
		if pattern == "" || len(pattern) > maxPattern || strings.HasPrefix(pattern, "!") || strings.HasSuffix(pattern, "/") {
			continue // git accepts neither negative patterns nor directories here
		}
		anchored := strings.Contains(pattern, "/")
		if !work.globMatches(strings.TrimPrefix(pattern, "/"), relPath, anchored, false) {
			continue
		}
		for _, word := range strings.Fields(rest) {
			applyAttribute(attrs, word)
		}
	}
	return attrs
}

// cutPattern splits the pattern off a line that is not empty. A quoted pattern
// may contain spaces.
func cutPattern(line string) (pattern, rest string) {
	if line[0] == '"' {
		if end := strings.IndexByte(line[1:], '"'); end >= 0 {
			return line[1 : 1+end], line[2+end:]
		}
	}
	if end := strings.IndexAny(line, " \t"); end >= 0 {
		return line[:end], line[end:]
	}
	return line, ""
}

// applyAttribute applies an attribute as written in a line (name, -name, !name,
// name=value or the macro binary) to attrs.
func applyAttribute(attrs map[string]string, word string) {
	name, value, given := strings.Cut(word, "=")
	switch {
	case word == "binary":
		attrs["text"] = "false"
	case given:
		attrs[name] = value
	case strings.HasPrefix(word, "-"):
		attrs[word[1:]] = "false"
	case strings.HasPrefix(word, "!"):
		attrs[word[1:]] = "" // present but empty, so that files further up do not set it
	default:
		attrs[word] = "true"
	}
}
