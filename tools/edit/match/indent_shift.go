package match

import (
	"slices"
	"strings"
)

// indentShift is the difference between the indentation of a model's text and
// the file's, the same for every line. The zero value changes nothing.
type indentShift struct {
	add, remove string     // text added or removed at the start of every line, or
	from, to    indentUnit // the units of one level in the model's text and in the file, and
	levels      int        // the number of levels added, which may be negative
}

// indentUnit is the text of one level of indentation: 0 is a tab, otherwise the
// number of spaces.
type indentUnit int

// indentUnits lists the units to try, in order of preference.
var indentUnits = []indentUnit{0, 4, 2, 8, 3}

// split splits an indentation into levels and remaining spaces, which align a
// line by characters. ok is false if it has other characters, or tabs that are
// not units.
func (u indentUnit) split(indent string) (levels, rest int, ok bool) {
	if u == 0 {
		levels = len(indent) - len(strings.TrimLeft(indent, "\t"))
		rest = len(indent) - levels
		return levels, rest, strings.Count(indent, " ") == rest
	}
	return len(indent) / int(u), len(indent) % int(u), strings.Count(indent, " ") == len(indent)
}

// indentation returns the text of a number of levels and remaining spaces.
func (u indentUnit) indentation(levels, rest int) string {
	one := "\t"
	if u > 0 {
		one = strings.Repeat(" ", int(u))
	}
	return strings.Repeat(one, levels) + strings.Repeat(" ", rest)
}

// apply converts an indentation of the model's text to the file's. ok is false
// if the indentation is smaller than the part to remove. An empty indentation,
// as of a preprocessor directive, stays empty then, and ok is true.
func (s indentShift) apply(indent string) (shifted string, ok bool) {
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

// isFileIndent reports whether an indentation of the model's text is in the
// file's unit although the shift is from another unit: the model copied it from
// the file.
func (s indentShift) isFileIndent(indent string) bool {
	switch {
	case s.from == s.to || s.add != "" || s.remove != "":
		return false
	case s.to == 0:
		return indent != "" && strings.Trim(indent, "\t") == ""
	}
	return s.from == 0 && len(indent) >= int(s.to) && strings.Trim(indent, " ") == ""
}

// indentPair is the indentation of an old line, as the model sent it and as the
// file has it.
type indentPair struct {
	model, file string
	oldLine     int // index of the line in the old text
}

// commonShift returns the shift that fits all lines; ok is false if no shift
// does. If several fit, it returns the one with the likeliest units: the
// model's by the lines of the new text, the file's by the lines around the
// place. others returns the indentations of both. If others is nil, commonShift
// returns any shift that fits.
func commonShift(pairs []indentPair, others func() (model, file []string)) (common indentShift, ok bool) {
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

// guessUnit returns the unit of indentations: a tab if one of them has a tab,
// otherwise the largest common divisor of their lengths. It returns -1 if that
// is not between 2 and 8.
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

// indents returns the indentation of each line that is not blank.
func indents(lines []string) []string {
	var all []string
	for _, line := range lines {
		if strings.TrimSpace(line) != "" {
			all = append(all, line[:indentSize(line)])
		}
	}
	return all
}
