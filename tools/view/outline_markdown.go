package main

import "strings"

// headingMarks maps an extension to the character that begins a heading.
var headingMarks = map[string]string{
	".md": "#", ".markdown": "#", ".mdx": "#", ".mdown": "#", ".mkd": "#", ".qmd": "#", ".rmd": "#", ".rst": "#", ".txt": "#",
	".adoc": "=", ".asciidoc": "=", ".org": "*",
}

// headingSymbols returns the headings of a text: lines that begin with one to
// six marks and a space, and lines underlined with = or -. It ignores fenced
// code, HTML comments and front matter.
func headingSymbols(text []byte, mark string) []symbol {
	var found []symbol
	var levels []int
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	fence, comment := "", false
	settings := frontMatterLines(lines)
	for i, line := range lines {
		if i < settings {
			continue
		}
		line = strings.TrimRight(line, "\r")
		trimmed := strings.TrimLeft(line, " ")
		if fence == "" && (comment || strings.HasPrefix(trimmed, "<!--")) {
			comment = !strings.Contains(line, "-->")
			continue
		}
		if len(line)-len(trimmed) > 3 {
			continue // indented code
		}
		if fence != "" {
			if strings.HasPrefix(trimmed, fence) && strings.Trim(trimmed, fence[:1]+" \t") == "" {
				fence = ""
			}
			continue
		}
		if fence = openingFence(trimmed); fence != "" {
			continue
		}
		if level, title, ok := atxHeading(trimmed, mark); ok {
			found = append(found, symbol{Name: title, Kind: "heading", Text: truncate(trimmed, maxRuleBytes), Line: i + 1, Start: i + 1})
			levels = append(levels, level)
		} else if level := setextLevel(trimmed); level > 0 && i > 0 && isUnderlinedTitle(lines[i-1], trimmed) {
			title := strings.TrimSpace(lines[i-1])
			if n := len(found); n > 0 && found[n-1].Line == i {
				continue // the line above is a heading already
			}
			found = append(found, symbol{Name: title, Kind: "heading", Text: truncate(title, maxRuleBytes), Line: i, Start: i})
			levels = append(levels, level)
		}
	}
	setSectionEnds(found, levels, len(lines))
	return found
}

// frontMatterLines returns the number of lines of the front matter, settings
// between lines of dashes at the beginning of a file; 0 without front matter.
func frontMatterLines(lines []string) int {
	for i, line := range lines[:min(len(lines), 500)] {
		end := strings.TrimRight(line, " \t\r") == "---"
		if i == 0 && !end {
			return 0
		}
		if i > 0 && end {
			return i + 1
		}
	}
	return 0
}

// setSectionEnds ends each section before the next heading of the same or a
// higher level. levels has the level of each heading in found, and last is the
// file's last line.
func setSectionEnds(found []symbol, levels []int, last int) {
	var open []int
	for i := range found {
		for len(open) > 0 && levels[open[len(open)-1]] >= levels[i] {
			found[open[len(open)-1]].End = found[i].Line - 1
			open = open[:len(open)-1]
		}
		open = append(open, i)
	}
	for _, i := range open {
		found[i].End = last
	}
}

// openingFence returns the characters that open a code fence, or "".
func openingFence(line string) string {
	for _, mark := range []string{"`", "~"} {
		n := len(line) - len(strings.TrimLeft(line, mark))
		if n >= 3 && !(mark == "`" && strings.Contains(line[n:], "`")) {
			return line[:n]
		}
	}
	return ""
}

// atxHeading parses a heading that begins with marks. ok is false if the line
// is none.
func atxHeading(line, mark string) (level int, title string, ok bool) {
	level = len(line) - len(strings.TrimLeft(line, mark))
	if level < 1 || level > 6 || len(line) == level || line[level] != ' ' && line[level] != '\t' {
		return 0, "", false
	}
	title = strings.TrimSpace(line[level:])
	if bare := strings.TrimRight(title, mark); bare == "" || strings.HasSuffix(bare, " ") {
		title = strings.TrimSpace(bare)
	}
	return level, title, title != ""
}

// setextLevel returns 1 for a line of =, 2 for a line of -, and otherwise 0.
func setextLevel(line string) int {
	line = strings.TrimRight(line, " \t")
	switch {
	case len(line) < 2:
		return 0
	case strings.Trim(line, "=") == "":
		return 1
	case strings.Trim(line, "-") == "":
		return 2
	}
	return 0
}

// isUnderlinedTitle reports whether a line is the title of an underline. It is
// false for a table row, a list item, and the last line of a paragraph or front
// matter before a rule.
func isUnderlinedTitle(line, underline string) bool {
	title := strings.TrimSpace(line)
	if title == "" || strings.ContainsAny(title[:1], "|>#-*+=") || setextLevel(title) > 0 {
		return false
	}
	// A short rule after a long line is the end of front matter.
	return len(strings.TrimSpace(underline)) > 3 || len(title) < 60 && !strings.Contains(title, ": ")
}
