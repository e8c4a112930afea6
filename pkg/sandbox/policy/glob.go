package policy

import (
	"strings"
)

// matchGlob says whether a pattern of literals and * matches text, in which NUL
// represents any text: maybe if that depends on the unknown text.
func matchGlob(pattern, text string) answer {
	if !strings.ContainsRune(text, 0) {
		if matchKnownText(pattern, text) {
			return yes
		}
		return no
	}
	head, tail := text[:strings.IndexByte(text, 0)], text[strings.LastIndexByte(text, 0)+1:]
	before, _, wild := strings.Cut(pattern, "*")
	after := pattern[strings.LastIndexByte(pattern, '*')+1:]
	switch {
	case !wild:
		if len(head)+len(tail) <= len(pattern) && strings.HasPrefix(pattern, head) && strings.HasSuffix(pattern, tail) {
			return maybe
		}
		return no
	case strings.HasPrefix(head, before) && strings.HasSuffix(tail, after) && strings.Count(pattern, "*") == 1:
		return yes
	case eitherContains(before, head, strings.HasPrefix) && eitherContains(after, tail, strings.HasSuffix):
		return maybe
	}
	return no
}

// eitherContains reports whether one text begins (or ends) with the other;
// contains is strings.HasPrefix or strings.HasSuffix.
func eitherContains(a, b string, contains func(string, string) bool) bool {
	return contains(a, b) || contains(b, a)
}

// matchKnownText reports whether a pattern of literals and * matches text
// without unknown parts. It takes time in proportion to len(pattern) ×
// len(text).
func matchKnownText(pattern, text string) bool {
	i, star, mark := 0, -1, 0
	for j := 0; j < len(text); {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			star, mark = i, j
			i++
		case i < len(pattern) && pattern[i] == text[j]:
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[i:], "*") == ""
}
