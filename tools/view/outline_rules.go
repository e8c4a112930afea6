package main

import (
	"regexp"
	"strings"
)

// maxRuleBytes bounds the part of a line that is matched against the rules.
const maxRuleBytes = 500

// keywordsBeforeParen are words that look like a function's name before "(".
var keywordsBeforeParen = map[string]bool{
	"if": true, "for": true, "while": true, "switch": true, "catch": true, "return": true, "else": true,
	"function": true, "new": true, "throw": true, "await": true, "do": true, "try": true, "case": true,
	"sizeof": true, "using": true, "lock": true, "fixed": true, "foreach": true, "when": true, "with": true,
	"assert": true, "super": true, "this": true, "typeof": true, "yield": true, "delete": true, "defined": true,
	"default": true, "in": true, "of": true, "and": true, "or": true, "not": true, "elif": true, "until": true,
}

// scannedLine is a source line with the lexer's state before and after it.
type scannedLine struct {
	text         string // the whole line, with comments, without its ending
	startsInside bool   // the line starts in a comment or string
	depthBefore  int    // open braces at the start of the line
	depthAfter   int    // open braces at the end of the line
	indent       int    // columns of leading white space, with tab stops every 8; -1 for a blank line
}

// findSymbols returns the symbols of a text.
func (l *language) findSymbols(text []byte) []symbol {
	lines := l.scanLines(string(text))
	rules := l.rules()
	var found []symbol
	for i, line := range lines {
		if line.startsInside || line.indent < 0 || l.isCommentLine(line.text) {
			continue
		}
		if s, ok := matchRules(rules, line.text); ok {
			s.Line, s.Start = i+1, l.startLine(lines, i)
			s.End = l.endLine(lines, i)
			found = append(found, s)
		}
	}
	if l.end == byNext {
		for i := range found {
			found[i].End = len(lines)
			if i+1 < len(found) {
				found[i].End = max(found[i].Line, found[i+1].Start-1)
			}
		}
	}
	for i := range found {
		for found[i].End > found[i].Line && lines[found[i].End-1].indent < 0 {
			found[i].End--
		}
	}
	return found
}

// matchRules returns the symbol that a line declares according to the first
// matching rule. It has no line numbers yet. matchRules returns false if the
// line declares none.
func matchRules(rules []*regexp.Regexp, line string) (symbol, bool) {
	part := line[:min(len(line), maxRuleBytes)]
	for _, rule := range rules {
		groups := rule.FindStringSubmatch(part)
		if groups == nil {
			continue
		}
		s := symbol{Kind: "symbol", Text: strings.ToValidUTF8(strings.TrimSpace(part), "\uFFFD")}
		if i := rule.SubexpIndex("kind"); i >= 0 && groups[i] != "" {
			s.Kind = groups[i]
		}
		if i := rule.SubexpIndex("name"); i >= 0 {
			s.Name = strings.TrimSpace(groups[i])
		}
		if s.Name == "" || keywordsBeforeParen[s.Name] || keywordsBeforeParen[firstWord(part)] && s.Kind == "symbol" {
			return symbol{}, false
		}
		return s, true
	}
	return symbol{}, false
}

// firstWord returns the first word of a line without indentation, up to a blank
// or "(".
func firstWord(line string) string {
	word, _, _ := strings.Cut(strings.TrimLeft(line, " \t}"), " ")
	word, _, _ = strings.Cut(word, "(")
	return word
}

// isCommentLine reports whether a line begins with a comment.
func (l *language) isCommentLine(line string) bool {
	line = strings.TrimLeft(line, " \t")
	for start := range strings.FieldsSeq(l.comments) {
		if strings.HasPrefix(line, start) {
			// "*" starts the lines of a block comment; "*p = f()"
			// is code.
			return start != "*" || line == "*" || strings.HasPrefix(line, "* ") || strings.HasPrefix(line, "*/")
		}
	}
	return false
}

// startLine returns the first line (from 1) of the comments, decorators and
// attributes directly above lines[i].
func (l *language) startLine(lines []scannedLine, i int) int {
	first := i
	for first > 0 && i-first < 100 {
		line := lines[first-1]
		text := strings.TrimLeft(line.text, " \t")
		if line.indent < 0 || !l.isCommentLine(text) && !strings.HasPrefix(text, "@") && !strings.HasPrefix(text, "#[") && !line.startsInside {
			break
		}
		if strings.HasPrefix(text, "#!") {
			break
		}
		first--
	}
	return first + 1
}

// endLine returns the last line (from 1) of the symbol that lines[i] declares.
func (l *language) endLine(lines []scannedLine, i int) int {
	switch l.end {
	case byBraces:
		return braceEndLine(lines, i)
	case byEnd:
		if text := strings.TrimRight(lines[i].text, " \t"); strings.HasSuffix(text, " end") || strings.HasSuffix(text, ";end") {
			return i + 1
		}
		for j := i + 1; j < len(lines); j++ {
			text := strings.TrimLeft(lines[j].text, " \t")
			if lines[j].indent >= 0 && lines[j].indent <= lines[i].indent && !lines[j].startsInside {
				if strings.HasPrefix(text, "end") && lines[j].indent == lines[i].indent {
					return j + 1
				}
				return j
			}
		}
		return len(lines)
	case byIndent:
		for j := i + 1; j < len(lines); j++ {
			text := strings.TrimLeft(lines[j].text, " \t")
			closes := text != "" && strings.Contains(")]}", text[:1]) // end of a long header
			if lines[j].indent >= 0 && lines[j].indent <= lines[i].indent && !lines[j].startsInside && !closes &&
				!(strings.HasPrefix(text, "- ") && lines[j].indent == lines[i].indent) {
				return j
			}
		}
		return len(lines)
	}
	return i + 1
}

// braceEndLine returns the last line (from 1) of a declaration: the line with
// the closing brace if a block opens within 40 lines, otherwise the line with a
// semicolon or before a blank line.
func braceEndLine(lines []scannedLine, i int) int {
	depth := lines[i].depthBefore
	opened := false
	for j := i; j < len(lines); j++ {
		after := lines[j].depthAfter
		text := strings.TrimRight(lines[j].text, " \t\r")
		if !opened {
			oneLiner := strings.HasSuffix(text, "}") || strings.HasSuffix(text, "};") || strings.HasSuffix(text, ";")
			switch {
			case after > depth:
				opened = true
				continue
			case after < depth && j > i: // the enclosing block ends
				return j
			case after < depth, oneLiner:
				return j + 1
			case lines[j].indent < 0, j-i > 40:
				return max(i+1, j)
			case j > i && lines[j].indent <= lines[i].indent && text != "" && !strings.ContainsAny(text[:1], "{)") && !strings.Contains(text, "{"):
				return j
			}
			continue
		}
		if after <= depth {
			return j + 1
		}
	}
	return len(lines)
}
