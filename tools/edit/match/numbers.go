package match

import (
	"slices"
	"strconv"
	"strings"
)

// separators lists the text between a pasted line number and its line, by the
// tool that printed it. All numbers of a text have the same separator.
var numberSeparators = [][]string{
	{"\t"},                 // view, cat -n
	{"→"},                  // other agents' view
	{": ", "- ", ":", "-"}, // grep: this one with a blank, others without
	{" | ", "| ", "|"},     // compilers' reports
}

// number is a line split from its number.
type numberedLine struct {
	number     int
	text       string
	onlyDigits bool // only digits, which may be the line itself
}

// numberOf parses the number before a line. For an empty line the separator's
// trailing blank may be missing.
func splitLineNumber(line string, seps []string) (numberedLine, bool) {
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

// unnumbered returns the old and the new lines without pasted line numbers.
// Each old line must have a number, ascending by one, except that the first
// line and empty lines may lack it.
func removeLineNumbers(old, newLines []string) (oldPlain, newPlain []string, ok bool) {
	for _, family := range numberSeparators {
		for _, seps := range splitByBlank(family) {
			if plain, first, last, ok := removeConsecutiveNumbers(old, seps); ok {
				return plain, removeContinuedNumbers(newLines, seps, first, last), true
			}
		}
	}
	return nil, nil, false
}

// narrowed returns the separators to try in turn: with a blank after them, then
// without; a text does not mix them.
func splitByBlank(family []string) [][]string {
	if len(family) < 4 {
		return [][]string{family}
	}
	return [][]string{family[:2], family[2:]}
}

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

// newWithout removes the numbers of new lines that can continue those of the
// old text. If all candidates are only digits, they are the lines themselves
// and stay.
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
