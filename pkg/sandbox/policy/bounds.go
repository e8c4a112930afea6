package policy

const (
	maxTextBytes       = 64 << 10
	maxAllTextBytes    = 512 << 10 // of all texts within texts
	maxSyntaxNodes     = 20_000
	maxSyntaxNesting   = 100  // syntax in syntax
	maxOpenParentheses = 1000 // parentheses, before parsing
	maxTextDepth       = 6    // texts in texts
	maxPasses          = 3    // through one text, whose variables turn out to be others
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
		if open > maxOpenParentheses {
			return true
		}
	}
	return false
}
