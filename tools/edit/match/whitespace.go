package match

import (
	"slices"
	"strings"
)

// trailingBlanks are the white space characters that the step Trailing ignores.
const trailingBlanks = " \t\f\v\r"

// trimTrailingBlanks returns a line without trailing blanks.
func trimTrailingBlanks(line []byte) []byte {
	for len(line) > 0 && strings.IndexByte(trailingBlanks, line[len(line)-1]) >= 0 {
		line = line[:len(line)-1]
	}
	return line
}

// indentSize returns the number of spaces and tabs at the start of a line.
func indentSize[T string | []byte](line T) int {
	n := 0
	for n < len(line) && (line[n] == ' ' || line[n] == '\t') {
		n++
	}
	return n
}

// isBlank reports whether a line has only white space.
func isBlank(line string) bool { return strings.TrimSpace(line) == "" }

// firstNonBlank returns the index of the first line that is not blank, or -1.
func firstNonBlank(lines []string) int {
	return slices.IndexFunc(lines, func(line string) bool { return !isBlank(line) })
}
