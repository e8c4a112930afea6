package conventions

import "strings"

// parseAttributes returns the attributes that a .gitattributes gives a path
// below its directory: "true" for a set one, "false" for an unset one. Of two
// lines that match, the later one counts.
func parseAttributes(text, below string) map[string]string {
	set := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || strings.HasPrefix(line, "[attr]") {
			continue
		}
		pattern, rest := cutPattern(line)
		if pattern == "" || len(pattern) > maxPattern || strings.HasPrefix(pattern, "!") || strings.HasSuffix(pattern, "/") {
			continue // git takes neither exceptions nor directories here
		}
		anchored := strings.Contains(pattern, "/")
		if !matches(strings.TrimPrefix(pattern, "/"), below, anchored, false) {
			continue
		}
		for _, word := range strings.Fields(rest) {
			apply(set, word)
		}
	}
	return set
}

// cutPattern takes the pattern off a line; one in quotes may have spaces.
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

func apply(set map[string]string, word string) {
	name, value, given := strings.Cut(word, "=")
	switch {
	case word == "binary":
		set["text"] = "false"
	case given:
		set[name] = value
	case strings.HasPrefix(word, "-"):
		set[word[1:]] = "false"
	case strings.HasPrefix(word, "!"):
		set[word[1:]] = "" // said here, so that nothing above says it
	default:
		set[word] = "true"
	}
}
