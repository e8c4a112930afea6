package main

import (
	"regexp"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// hidden is what stands for a value that is not shown.
const hidden = "***"

// revealed returns the content with the values for which *** stands: of a
// file whose values are hidden, a line that is given back as it was shown
// keeps what it has. Anything else with *** as its value is refused, for it
// would destroy one.
func (p *plan) revealed() (string, error) {
	b := p.before
	if !b.Masked {
		return p.Content, nil
	}
	lines, shown := p.hiddenLines()
	p.lost = len(shown) > 0
	content := strings.Split(strings.ReplaceAll(p.Content, "\r\n", "\n"), "\n")
	kept := map[int]string{} // the lines as they are shown
	for i, line := range content {
		if !strings.Contains(line, hidden) || !asValue(line) {
			continue
		}
		real, ok := lines[line]
		if !ok {
			return "", toolerr.New(toolerr.InvalidParams, "line %d of content has ***, which stands for a hidden value of %s, but the file has no such line (or several); nothing was written. Give lines with *** back as view shows them, or give the value itself.", i+1, b.Shown)
		}
		content[i], kept[i] = real, line
	}
	if len(kept) == 0 {
		return p.Content, nil
	}
	// A value must not come to stand where it would be shown.
	again := strings.Split(masked(strings.Join(content, "\n")), "\n")
	for i, line := range kept {
		if i >= len(again) || again[i] != line {
			return "", toolerr.New(toolerr.DeniedPath, "line %d of content would let a hidden value of %s be seen; nothing was written. Keep lines with *** as view shows them, with the lines around them if a value has several.", i+1, b.Shown)
		}
	}
	for _, line := range kept {
		delete(shown, line)
	}
	p.lost = len(shown) > 0
	return strings.Join(content, "\n"), nil
}

// hiddenLines returns the lines of the file by how they are shown, if all that
// look alike are alike; and which of the shown ones hide something.
func (p *plan) hiddenLines() (lines map[string]string, shown map[string]bool) {
	lines, shown = map[string]string{}, map[string]bool{}
	several := map[string]bool{}
	text := strings.ReplaceAll(string(p.oldText), "\r\n", "\n")
	old, hid := strings.Split(text, "\n"), strings.Split(masked(text), "\n")
	for i, line := range hid[:min(len(hid), len(old))] {
		if before, ok := lines[line]; ok && before != old[i] {
			several[line] = true
		}
		lines[line] = old[i] // which is the same where nothing is hidden
		if line != old[i] {
			shown[line] = true
		}
	}
	for line := range several {
		delete(lines, line)
	}
	return lines, shown
}

// asValue reports whether *** is the value of a line, not a part of a comment
// or of a longer value.
func asValue(line string) bool {
	trimmed := strings.TrimSpace(line)
	if strings.HasPrefix(trimmed, "#") || strings.HasPrefix(trimmed, ";") {
		return false
	}
	return masked(line) == line || dressed.MatchString(trimmed)
}

// dressed is *** as the value of a line that is not quite as it was shown.
var dressed = regexp.MustCompile("(^|[=:])[ \t]*[\"'`]?\\*{3,}[\"'`]?[ \t]*[;,]?([ \t]+[#;].*)?$")

func masked(text string) string { return string(sandbox.MaskSecrets([]byte(text))) }
