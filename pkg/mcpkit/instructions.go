package mcpkit

import (
	"fmt"
	"strings"
)

// instructions returns the server's instructions with its roots: as many as
// fit, and the number of omitted ones.
func (c *Command) instructionsWithRoots() string {
	var roots []string
	if c.Roots != nil {
		roots = c.Roots()
	}
	for shown := len(roots); shown > 0; shown-- {
		said := describeRoots(roots, shown)
		if c.Instructions != "" {
			said = c.Instructions + " " + said
		}
		if len(said) <= maxInstructions {
			return said
		}
	}
	return c.Instructions
}

// rootsText names the first roots and counts the rest.
func describeRoots(roots []string, shown int) string {
	if len(roots) == 1 {
		return "The root directory is " + roots[0] + "."
	}
	said := "Root directories (relative paths start at the first): " + strings.Join(roots[:shown], ", ")
	if shown < len(roots) {
		said += fmt.Sprintf(" and %d more", len(roots)-shown)
	}
	return said + "."
}
