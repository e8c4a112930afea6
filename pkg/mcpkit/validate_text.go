package mcpkit

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxQuotedRunes bounds a value quoted in a message, in characters.
const maxQuotedRunes = 80

// printable returns outside text so that it can be quoted in one line: with
// control and invisible characters escaped, and cut after maxQuotedRunes
// characters.
func printable(s string) string {
	plain := true
	for i, r := range s {
		if i >= maxQuotedRunes || r == utf8.RuneError || !unicode.IsPrint(r) {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	var b strings.Builder
	count := 0
	for i, r := range s {
		if count++; count > maxQuotedRunes {
			b.WriteString("…")
			break
		}
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}

// describe describes a value for a message: `string "abc"`, "number 5", "null",
// "a list".
func (n *jsonNode) describe() string {
	switch n.kind {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "string " + inQuotes(n.str)
	case '0':
		return "number " + printable(string(n.raw))
	case 't':
		return "boolean " + string(n.raw)
	}
	return "null"
}

// inQuotes returns outside text in double quotes, made printable.
func inQuotes(s string) string { return `"` + printable(s) + `"` }

// typeWithArticle returns the name of a schema's type with its article, for use
// in a sentence.
func typeWithArticle(s *schema) string {
	words := s.typeName()
	switch words {
	case "boolean":
		return "a boolean (true or false)"
	case "duration":
		return `a duration like "30s" or "1m30s"`
	case "integer", "object":
		return "an " + words
	}
	if strings.HasPrefix(words, "object") || strings.HasPrefix(words, "any") {
		return "an " + words
	}
	return "a " + words
}

// argumentList returns the names and types of all visible arguments on one
// line, cut after about 600 bytes, for the end of an error: the model's next
// step is to call again with them.
func (s *schema) argumentList() string {
	const limit = 600
	var b strings.Builder
	for i, p := range s.properties {
		if p.hidden {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		if b.Len() > limit {
			fmt.Fprintf(&b, "and %d more", len(s.properties)-i)
			break
		}
		required := ""
		if p.required {
			required = ", required"
		}
		fmt.Fprintf(&b, "%s (%s%s)", p.name, p.typeName(), required)
	}
	return b.String()
}
