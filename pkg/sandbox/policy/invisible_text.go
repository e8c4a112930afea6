package policy

import (
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// denyInvisible denies characters that make a command look different from what
// it is: NUL anywhere, other control and invisible characters outside quotes.
// It adds a doubt about Unicode spaces, which bash takes for part of a word.
func (s *shellText) denyInvisible(file *syntax.File) {
	quoted := quotedSpans(file)
	at := 0
	for offset, r := range s.text {
		for at < len(quoted) && offset >= quoted[at][1] {
			at++
		}
		inQuotes := at < len(quoted) && offset >= quoted[at][0]
		suspect := r == 0 || !inQuotes && s.isInvisible(offset, r)
		if suspect {
			s.eval.deny(finding{
				command: excerpt(s.text), rule: "visible text",
				why:     fmt.Sprintf("it holds the invisible character U+%04X outside quotes, at byte %d", r, offset),
				instead: "Write the command without it.",
			})
			return
		}
		if !inQuotes && r > unicode.MaxASCII && unicode.IsSpace(r) {
			s.current = excerpt(s.text)
			s.addDoubt(true, "U+%04X looks like a space, but bash takes it for part of a word", r)
		}
	}
}

// isInvisible reports whether r, at the byte offset of the text, cannot be seen
// and is no ordinary white space or line end.
func (s *shellText) isInvisible(offset int, r rune) bool {
	switch {
	case r == '\t' || r == '\n':
		return false
	case r == '\r':
		return offset+1 >= len(s.text) || s.text[offset+1] != '\n'
	case r == 0x85 || r == 0x2028 || r == 0x2029:
		return true
	case r == utf8.RuneError || r == 0xFE0E || r == 0xFE0F: // emoji presentation
		return false
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) || r == 0x2800
}

// quotedSpans returns the byte ranges [from, to) of quoted literals and
// here-documents, in order.
func quotedSpans(file *syntax.File) [][2]int {
	var spans [][2]int
	add := func(node syntax.Node) {
		spans = append(spans, [2]int{int(node.Pos().Offset()), int(node.End().Offset())})
	}
	literals := func(parts []syntax.WordPart) {
		for _, part := range parts {
			if lit, ok := part.(*syntax.Lit); ok {
				add(lit)
			}
		}
	}
	syntax.Walk(file, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.SglQuoted:
			add(node)
		case *syntax.DblQuoted:
			literals(node.Parts)
		case *syntax.Redirect:
			if node.Hdoc != nil {
				literals(node.Hdoc.Parts)
			}
		}
		return true
	})
	sortSpans(spans)
	return spans
}

// sortSpans sorts byte ranges by their beginning, in place.
func sortSpans(spans [][2]int) {
	slices.SortFunc(spans, func(a, b [2]int) int { return a[0] - b[0] })
}
