package main

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
)

// hiddenCharacters counts characters that are invisible or change how others
// are displayed. They are shown unchanged; only the count tells a reader about
// them.
type hiddenCharacters struct {
	total      int            // number of hidden characters
	counts     map[rune]int   // by character
	order      []rune         // the characters, by first occurrence
	firstLines map[rune]int64 // line number of the first occurrence
}

// count counts the hidden characters of a line.
func (s *hiddenCharacters) count(l textfile.Line) {
	before := rune(0)
	for _, r := range l.Text {
		if isHiddenCharacter(r, before) {
			if s.counts == nil {
				s.counts, s.firstLines = map[rune]int{}, map[rune]int64{}
			}
			if s.counts[r]++; s.counts[r] == 1 {
				s.order, s.firstLines[r] = append(s.order, r), l.Number
			}
			s.total++
		}
		before = r
	}
}

// notes returns a note on the counted characters, if there are any.
func (s *hiddenCharacters) notes() []string {
	if s.total == 0 {
		return nil
	}
	const named = 6
	var kinds []string
	for _, r := range s.order[:min(named, len(s.order))] {
		kinds = append(kinds, fmt.Sprintf("U+%04X %d (first in line %d)", r, s.counts[r], s.firstLines[r]))
	}
	if more := len(s.order) - named; more > 0 {
		kinds = append(kinds, fmt.Sprintf("%d other kinds", more))
	}
	return []string{fmt.Sprintf("%s in these lines: %s", textfmt.Count(s.total, "control or invisible character"), strings.Join(kinds, ", "))}
}

// isHiddenCharacter reports whether r is a control or invisible character.
// before is the character before it; 0: none. Zero-width joiners are ordinary
// text, except next to an ASCII character.
func isHiddenCharacter(r, before rune) bool {
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
