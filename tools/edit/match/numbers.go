package match

import (
	"slices"
	"strconv"
	"strings"
)

// separators are what stands between a pasted line number and its line, by
// the tool that printed it. All numbers of a text have the same.
var separators = [][]string{
	{"\t"},                 // view, cat -n
	{"→"},                  // other agents' view
	{": ", "- ", ":", "-"}, // grep, with a blank as this one or without as others
	{" | ", "| ", "|"},     // reports of compilers
}

// number is a line with a number taken off.
type number struct {
	value int
	rest  string
	bare  bool // nothing but digits, which may be the line itself
}

// numberOf reads the number in front of a line. The longer of two separators
// may be cut short by trimming where the line is empty.
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

// unnumbered returns lines without the numbers that they were pasted with,
// and new lines likewise. All lines have one, ascending by one; the first may
// have lost it, and empty lines theirs.
func unnumbered(old, new []string) (oldPlain, newPlain []string, ok bool) {
	for _, family := range separators {
		for _, seps := range narrowed(family) {
			if plain, first, last, ok := withoutNumbers(old, seps); ok {
				return plain, newWithout(new, seps, first, last), true
			}
		}
	}
	return nil, nil, false
}

// narrowed returns the separators to try in turn: with the blank behind them,
// then without, never both in one text.
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

// newWithout takes the numbers off new lines: off every line that has one
// which the old text's numbers, or the lines added to them, can have. Where
// all that have one are digits alone, these are the lines themselves.
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
