package mcpkit

import (
	"fmt"
	"strings"
)

// instructionsWithRoots returns the server's instructions, with as many of the
// roots as fit and the number of the others.
func (c *Command) instructionsWithRoots() string {
	var roots []string
	if c.Roots != nil {
		roots = c.Roots()
	}
	for shown := len(roots); shown > 0; shown-- {
		text := describeRoots(roots, shown)
		if c.Instructions != "" {
			text = c.Instructions + " " + text
		}
		if len(text) <= maxInstructions {
			return text
		}
	}
	return c.Instructions
}

// describeRoots returns a sentence with the first shown roots and the number of
// the others.
func describeRoots(roots []string, shown int) string {
	if len(roots) == 1 {
		return "The root directory is " + roots[0] + "."
	}
	text := "Root directories (relative paths start at the first): " + strings.Join(roots[:shown], ", ")
	if shown < len(roots) {
		text += fmt.Sprintf(" and %d more", len(roots)-shown)
	}
	return text + "."
}
