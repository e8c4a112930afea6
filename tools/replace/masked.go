package main

import (
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/secret"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// maskMarker replaces a masked value in the text shown.
const maskMarker = "***"

// revealMasked returns the content with masked values filled in, and sets
// losesMasked. A line with *** that is exactly as view shows it becomes the
// file's line. It returns INVALID_PARAMS for any other line with *** as its value, since
// writing it would destroy a value, and DENIED_PATH for a value that moves to a place
// where view would show it.
func (p *plan) revealMasked() (string, error) {
	b := p.before
	if !b.Masked {
		return p.Content, nil
	}
	lines, shown := p.linesByMask()
	p.losesMasked = len(shown) > 0
	content := strings.Split(strings.ReplaceAll(p.Content, "\r\n", "\n"), "\n")
	given := map[string]int{}
	for _, line := range content {
		given[line]++
	}
	kept := map[int]string{} // index in content to the line as shown
	next := map[string]int{}
	for i, line := range content {
		if !strings.Contains(line, maskMarker) || !isValueMasked(line) {
			continue
		}
		originals := lines[line]
		if len(originals) == 0 || len(originals) > 1 && len(originals) != given[line] {
			return "", toolerr.New(toolerr.InvalidParams, "line %d of content has ***, which represents a masked value of %s, but the file has no such line (or several); nothing was written. Copy lines with *** as view shows them, or give the value itself.", i+1, b.Shown)
		}
		content[i], kept[i] = originals[min(next[line], len(originals)-1)], line
		next[line]++
	}
	if len(kept) == 0 {
		return p.Content, nil
	}
	// A value must not move to a place where view would show it.
	again := strings.Split(maskValues(strings.Join(content, "\n")), "\n")
	for i := range content { // in order, so that equal calls have equal answers
		if line, ok := kept[i]; ok && (i >= len(again) || again[i] != line) {
			return "", toolerr.New(toolerr.DeniedPath, "line %d of content would reveal a masked value of %s; nothing was written. Keep lines with *** as view shows them, with the lines around them if a value has several.", i+1, b.Shown)
		}
	}
	for _, line := range kept {
		delete(shown, line)
	}
	p.losesMasked = len(shown) > 0
	return strings.Join(content, "\n"), nil
}

// linesByMask returns the file's lines in order, by their masked form, and the
// set of masked forms that differ from their line. Lines with the same masked
// form are distinguished only by their order, so that an answer never says
// whether their values are equal.
func (p *plan) linesByMask() (lines map[string][]string, shown map[string]bool) {
	lines, shown = map[string][]string{}, map[string]bool{}
	text := p.withLineFeeds(string(p.oldText))
	old, hid := strings.Split(text, "\n"), strings.Split(p.withLineFeeds(maskValues(string(p.oldText))), "\n")
	for i, line := range hid[:min(len(hid), len(old))] {
		lines[line] = append(lines[line], old[i]) // equal to line if nothing is masked
		if line != old[i] {
			shown[line] = true
		}
	}
	return lines, shown
}

// withLineFeeds returns text of the file with line feeds as line endings.
func (p *plan) withLineFeeds(text string) string {
	if p.oldFormat.Ending == textfile.CR {
		return strings.ReplaceAll(text, "\r", "\n")
	}
	return strings.ReplaceAll(text, "\r\n", "\n")
}

// equalsShown reports whether the content equals what view shows of the file,
// except for line endings.
func (p *plan) equalsShown() bool {
	return strings.ReplaceAll(p.Content, "\r\n", "\n") == p.withLineFeeds(maskValues(string(p.oldText)))
}

// isValueMasked reports whether *** is the value of a line, instead of a part
// of a comment or of a longer value.
func isValueMasked(line string) bool {
	trimmed := strings.TrimSpace(line)
	if strings.HasPrefix(trimmed, "#") || strings.HasPrefix(trimmed, ";") {
		return false
	}
	return maskValues(line) == line || maskedValuePattern().MatchString(trimmed)
}

// maskedValuePattern matches *** as the value of a line, also in forms that
// masking does not produce.
var maskedValuePattern = lazyregexp.New("(^|[=:])[ \t]*[\"'`]?\\*{3,}[\"'`]?[ \t]*[;,]?([ \t]+[#;].*)?$")

// maskValues returns text with its secret values replaced by ***.
func maskValues(text string) string { return string(secret.Mask([]byte(text))) }
