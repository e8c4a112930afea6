package mcpkittest

import (
	"fmt"
	"strings"
)

// diffLines returns the lines in which two texts differ, between their common
// beginning and end, with up to a few lines around them; "" if they are equal.
func diffLines(want, got string) string {
	if want == got {
		return ""
	}
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	const context, most = 2, 40
	var out strings.Builder
	show := func(mark string, lines []string) {
		for i, line := range lines {
			if i == most {
				fmt.Fprintf(&out, "%s … %d more lines\n", mark, len(lines)-i)
				break
			}
			fmt.Fprintf(&out, "%s %s\n", mark, line)
		}
	}
	show(" ", a[max(head-context, 0):head])
	show("-", a[head:len(a)-tail])
	show("+", b[head:len(b)-tail])
	show(" ", a[len(a)-tail:min(len(a)-tail+context, len(a))])
	return out.String()
}
