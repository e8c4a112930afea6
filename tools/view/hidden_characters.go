package main

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
)

// strange counts characters that are invisible or change how others are
// displayed. They are shown unchanged; only the count tells a reader about
// them.
type strange struct {
	total int
	kinds map[rune]int
	order []rune
	first map[rune]int64
}

func (s *strange) count(l textfile.Line) {
	before := rune(0)
	for _, r := range l.Text {
		if hidden(r, before) {
			if s.kinds == nil {
				s.kinds, s.first = map[rune]int{}, map[rune]int64{}
			}
			if s.kinds[r]++; s.kinds[r] == 1 {
				s.order, s.first[r] = append(s.order, r), l.Number
			}
			s.total++
		}
		before = r
	}
}

func (s *strange) notes() []string {
	if s.total == 0 {
		return nil
	}
	const named = 6
	var kinds []string
	for _, r := range s.order[:min(named, len(s.order))] {
		kinds = append(kinds, fmt.Sprintf("U+%04X %d (first in line %d)", r, s.kinds[r], s.first[r]))
	}
	if more := len(s.order) - named; more > 0 {
		kinds = append(kinds, fmt.Sprintf("%d other kinds", more))
	}
	return []string{fmt.Sprintf("%s in these lines: %s", textfmt.Count(s.total, "control or invisible character"), strings.Join(kinds, ", "))}
}

// hidden reports whether r is a control or invisible character. Zero-width
// joiners are ordinary text, except next to an ASCII character.
func hidden(r, before rune) bool {
	switch {
	case r < 0x20:
		return r != '\t'
	case r < 0x7F:
		return false
	case r < 0xA0, r == 0xAD, r == 0x180E, r >= 0xE0000 && r < 0xE0080:
		return true
	case r == 0x200C, r == 0x200D:
		return before < 0x80
	}
	return r >= 0x2000 && unicode.Is(unicode.Cf, r)
}
