package match

import (
	"slices"
	"strings"
)

// shift is the difference between a model's indentation and the file's, the
// same for every line. The zero value changes nothing.
type indentShift struct {
	add, remove string     // at the start of every line, or
	from, to    indentUnit // units of one level, and
	levels      int        // the number of additional levels
}

// unit is one level of indentation: 0 is a tab, otherwise the number of blanks.
type indentUnit int

var indentUnits = []indentUnit{0, 4, 2, 8, 3}

// parse splits an indentation into levels and remaining blanks, which align a
// line by characters.
func (u indentUnit) split(indent string) (levels, rest int, ok bool) {
	if u == 0 {
		levels = len(indent) - len(strings.TrimLeft(indent, "\t"))
		rest = len(indent) - levels
		return levels, rest, strings.Count(indent, " ") == rest
	}
	return len(indent) / int(u), len(indent) % int(u), strings.Count(indent, " ") == len(indent)
}

func (u indentUnit) indentation(levels, rest int) string {
	one := "\t"
	if u > 0 {
		one = strings.Repeat(" ", int(u))
	}
	return strings.Repeat(one, levels) + strings.Repeat(" ", rest)
}

// apply converts an indentation to the file's; false if it is smaller than the
// part to remove. An unindented line, such as a preprocessor directive, then
// stays unindented.
func (s indentShift) apply(indent string) (string, bool) {
	switch {
	case s.add != "":
		return s.add + indent, true
	case s.remove != "":
		rest, ok := strings.CutPrefix(indent, s.remove)
		return rest, ok || indent == ""
	case s.from == s.to:
		return indent, true
	}
	levels, rest, ok := s.from.split(indent)
	if levels += s.levels; levels < 0 {
		return "", ok && indent == ""
	}
	return s.to.indentation(levels, rest), ok
}

// foreign reports whether an indentation is in the file's unit although the
// shift is from another: the model copied it from the file.
func (s indentShift) isFileIndent(indent string) bool {
	switch {
	case s.from == s.to || s.add != "" || s.remove != "":
		return false
	case s.to == 0:
		return indent != "" && strings.Trim(indent, "\t") == ""
	}
	return s.from == 0 && len(indent) >= int(s.to) && strings.Trim(indent, " ") == ""
}

// dent is the indentation of an old line in the model's text and in the file.
type indentPair struct {
	model, file string
	oldLine     int // of the old text
}

// findShift returns the single shift that fits all lines. Of several, it is the
// one with the likeliest units: the model's by the lines of the new text, the
// file's by those around the place. If others is nil, any fitting shift is
// returned.
func commonShift(pairs []indentPair, others func() (model, file []string)) (indentShift, bool) {
	if len(pairs) == 0 {
		return indentShift{}, false
	}
	fits := func(s indentShift) bool {
		return !slices.ContainsFunc(pairs, func(d indentPair) bool {
			got, ok := s.apply(d.model)
			return !ok || got != d.file
		})
	}
	first := pairs[0]
	likelyModel, likelyFile := indentUnit(-1), indentUnit(-1)
	if others != nil {
		model, file := others()
		likelyModel, likelyFile = guessUnit(model), guessUnit(file)
	}
	if add, ok := strings.CutSuffix(first.file, first.model); ok && fits(indentShift{add: add}) {
		s := indentShift{from: likelyModel, to: likelyFile, levels: len(add)}
		if likelyFile > 0 {
			s.levels /= int(likelyFile)
		}
		if mixed := min(likelyModel, likelyFile) == 0 && max(likelyModel, likelyFile) > 0; mixed && add != "" && fits(s) {
			return s, true // deeper lines of the new text get the file's unit
		}
		return indentShift{add: add}, true
	}
	if remove, ok := strings.CutSuffix(first.model, first.file); ok && !slices.ContainsFunc(pairs, func(d indentPair) bool { return d.model == "" }) {
		if s := (indentShift{remove: remove}); fits(s) {
			return s, true
		}
	}
	best, found := indentShift{}, false
	rank := func(s indentShift) (n int) {
		if s.from == likelyModel {
			n += 4
		}
		if s.to == likelyFile {
			n += 2
		}
		if s.levels == 0 {
			n++
		}
		return n
	}
	for _, from := range indentUnits {
		for _, to := range indentUnits {
			was, rest, ok1 := from.split(first.model)
			is, left, ok2 := to.split(first.file)
			s := indentShift{from: from, to: to, levels: is - was}
			if from == to || !ok1 || !ok2 || rest != left || !fits(s) {
				continue
			}
			if !found || rank(s) > rank(best) {
				best, found = s, true
			}
			if others == nil {
				return best, true
			}
		}
	}
	return best, found
}

// step returns the unit of indentations: a tab if any has one, otherwise the
// largest common divisor; -1 if they give none.
func guessUnit(indents []string) indentUnit {
	blanks := 0
	for _, indent := range indents {
		if strings.Contains(indent, "\t") {
			return 0
		}
		a, b := blanks, len(indent)
		for b > 0 {
			a, b = b, a%b
		}
		blanks = a
	}
	if blanks >= 2 && blanks <= 8 {
		return indentUnit(blanks)
	}
	return -1
}

// indents returns the indentations of the lines that are not blank.
func indents(lines []string) []string {
	var all []string
	for _, line := range lines {
		if strings.TrimSpace(line) != "" {
			all = append(all, line[:indentSize(line)])
		}
	}
	return all
}
