package policy

const (
	maxText    = 64 << 10
	maxTexts   = 512 << 10 // of all texts within texts
	maxNodes   = 20_000
	maxNesting = 100  // syntax in syntax
	maxOpen    = 1000 // parentheses, before parsing
	maxDepth   = 6    // texts in texts
	maxPasses  = 3    // through one text, whose variables turn out to be others
)

// tooNested reports whether parentheses are open so deep, in whatever quotes,
// that parsing them would take seconds.
func tooNested(text string) bool {
	open := 0
	for i := range len(text) {
		switch text[i] {
		case '(':
			open++
		case ')':
			open = max(0, open-1)
		}
		if open > maxOpen {
			return true
		}
	}
	return false
}
