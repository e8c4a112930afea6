package match

import (
	"slices"
	"strconv"
	"strings"
)

// numberSeparators lists the text between a pasted line number and its line,
// grouped by the tool that prints it. All numbers of a text have separators of
// the same group.
var numberSeparators = [][]string{
	{"\t"},                 // view, cat -n
	{"→"},                  // other agents' view
	{": ", "- ", ":", "-"}, // grep: this one with a blank, others without
	{" | ", "| ", "|"},     // compilers' reports
}

// numberedLine is a line split into its line number and its text.
type numberedLine struct {
	number     int
	text       string
	onlyDigits bool // the line has only digits, which may be its text instead of a number
}

// splitLineNumber splits a line into its number and its text; ok is false if it
// does not begin with a number and one of the separators. For an empty line,
// the separator's trailing blank may be missing.
func splitLineNumber(line string, seps []string) (split numberedLine, ok bool) {
	digits := strings.TrimLeft(line, " \t")
	n := 0
	for n < len(digits) && digits[n] >= '0' && digits[n] <= '9' {
		n++
	}
	value, err := strconv.Atoi(digits[:n])
	if err != nil || value == 0 {
		return numberedLine{}, false
	}
	for _, sep := range seps {
		rest, ok := strings.CutPrefix(digits[n:], sep)
		if ok {
			return numberedLine{number: value, text: rest}, true
		}
		if digits[n:] == strings.TrimRight(sep, " \t") { // an empty line
			return numberedLine{number: value, onlyDigits: digits[n:] == ""}, true
		}
	}
	return numberedLine{}, false
}

// removeLineNumbers returns the old and the new lines without pasted line
// numbers. Each old line must have a number, ascending by one, except that the
// first line and empty lines may lack it. ok is false if the old lines have no
// such numbers.
func removeLineNumbers(old, newLines []string) (oldPlain, newPlain []string, ok bool) {
	for _, group := range numberSeparators {
		for _, seps := range separatorSets(group) {
			if plain, first, last, ok := removeConsecutiveNumbers(old, seps); ok {
				return plain, removeContinuedNumbers(newLines, seps, first, last), true
			}
		}
	}
	return nil, nil, false
}

// separatorSets returns the sets of separators to try in turn for the line numbers of one
// text: those of seps with a trailing blank, then those without. A text does not mix
// them.
func separatorSets(seps []string) [][]string {
	if len(seps) < 4 {
		return [][]string{seps}
	}
	return [][]string{seps[:2], seps[2:]}
}

// removeConsecutiveNumbers returns the lines without their numbers, which must
// ascend by one, and the first and the last number. ok is false if they do not,
// or if no line has text after its number.
func removeConsecutiveNumbers(lines, seps []string) (plain []string, first, last int, ok bool) {
	expect, found := 0, 0
	for i, line := range lines {
		n, ok := splitLineNumber(line, seps)
		switch {
		case ok && (expect == 0 || n.number == expect):
			if first == 0 {
				first = n.number
			}
			expect, last = n.number+1, n.number
			plain = append(plain, n.text)
			if !n.onlyDigits {
				found++
			}
			continue
		case strings.TrimSpace(line) == "":
			if expect > 0 && i < len(lines)-1 {
				expect++
			}
		case i > 0:
			return nil, 0, 0, false
		}
		plain = append(plain, line)
	}
	return plain, first, last, found > 0 && strings.TrimSpace(strings.Join(plain, "")) != ""
}

// removeContinuedNumbers returns new lines without the numbers that continue
// those of the old text, from first on. If all such lines have only digits,
// these are their text and stay.
func removeContinuedNumbers(lines, seps []string, first, last int) []string {
	taken := func(line string) (numberedLine, bool) {
		n, ok := splitLineNumber(line, seps)
		return n, ok && n.number >= first && n.number <= last+len(lines)
	}
	pasted := slices.ContainsFunc(lines, func(line string) bool {
		n, ok := taken(line)
		return ok && !n.onlyDigits
	})
	plain := slices.Clone(lines)
	for i, line := range lines {
		if n, ok := taken(line); ok && pasted {
			plain[i] = n.text
		}
	}
	return plain
}
