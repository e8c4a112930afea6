package match

import (
	"slices"
	"strconv"
	"strings"
)

// separators lists the text between a pasted line number and its line, by the
// tool that printed it. All numbers of a text have the same separator.
var separators = [][]string{
	{"\t"},                 // view, cat -n
	{"→"},                  // other agents' view
	{": ", "- ", ":", "-"}, // grep: this one with a blank, others without
	{" | ", "| ", "|"},     // compilers' reports
}

// number is a line split from its number.
type number struct {
	value int
	rest  string
	bare  bool // only digits, which may be the line itself
}

// numberOf parses the number before a line. For an empty line the separator's
// trailing blank may be missing.
func numberOf(line string, seps []string) (number, bool) {
	digits := strings.TrimLeft(line, " \t")
	n := 0
	for n < len(digits) && digits[n] >= '0' && digits[n] <= '9' {
		n++
	}
	value, err := strconv.Atoi(digits[:n])
	if err != nil || value == 0 {
		return number{}, false
	}
	for _, sep := range seps {
		rest, ok := strings.CutPrefix(digits[n:], sep)
		if ok {
			return number{value: value, rest: rest}, true
		}
		if digits[n:] == strings.TrimRight(sep, " \t") { // an empty line
			return number{value: value, bare: digits[n:] == ""}, true
		}
	}
	return number{}, false
}

// unnumbered returns the old and the new lines without pasted line numbers.
// Each old line must have a number, ascending by one, except that the first
// line and empty lines may lack it.
func unnumbered(old, newLines []string) (oldPlain, newPlain []string, ok bool) {
	for _, family := range separators {
		for _, seps := range narrowed(family) {
			if plain, first, last, ok := withoutNumbers(old, seps); ok {
				return plain, newWithout(newLines, seps, first, last), true
			}
		}
	}
	return nil, nil, false
}

// narrowed returns the separators to try in turn: with a blank after them, then
// without; a text does not mix them.
func narrowed(family []string) [][]string {
	if len(family) < 4 {
		return [][]string{family}
	}
	return [][]string{family[:2], family[2:]}
}

func withoutNumbers(lines, seps []string) (plain []string, first, last int, ok bool) {
	expect, found := 0, 0
	for i, line := range lines {
		n, ok := numberOf(line, seps)
		switch {
		case ok && (expect == 0 || n.value == expect):
			if first == 0 {
				first = n.value
			}
			expect, last = n.value+1, n.value
			plain = append(plain, n.rest)
			if !n.bare {
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
func newWithout(lines, seps []string, first, last int) []string {
	taken := func(line string) (number, bool) {
		n, ok := numberOf(line, seps)
		return n, ok && n.value >= first && n.value <= last+len(lines)
	}
	pasted := slices.ContainsFunc(lines, func(line string) bool {
		n, ok := taken(line)
		return ok && !n.bare
	})
	plain := slices.Clone(lines)
	for i, line := range lines {
		if n, ok := taken(line); ok && pasted {
			plain[i] = n.rest
		}
	}
	return plain
}
