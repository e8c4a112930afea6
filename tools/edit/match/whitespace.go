package match

import (
	"slices"
	"strings"
)

// blanks are the white space characters that may end a line.
const trailingBlanks = " \t\f\v\r"

func trimTrailingBlanks(line []byte) []byte {
	for len(line) > 0 && strings.IndexByte(trailingBlanks, line[len(line)-1]) >= 0 {
		line = line[:len(line)-1]
	}
	return line
}

// indentSize returns the number of blanks and tabs at the start of a line.
func indentSize[T string | []byte](line T) int {
	n := 0
	for n < len(line) && (line[n] == ' ' || line[n] == '\t') {
		n++
	}
	return n
}

func isBlank(line string) bool { return strings.TrimSpace(line) == "" }

// firstLine returns the index of the first line that is not blank, or -1.
func firstNonBlank(lines []string) int {
	return slices.IndexFunc(lines, func(line string) bool { return !isBlank(line) })
}
