package policy

// Bounds of one evaluation. A command that exceeds one of them is denied.
const (
	maxTextBytes       = 64 << 10  // of one text
	maxAllTextBytes    = 512 << 10 // of the command and all texts within it
	maxSyntaxNodes     = 20_000
	maxSyntaxNesting   = 100  // depth of the syntax tree
	maxOpenParentheses = 1000 // in a text, before it is parsed
	maxTextDepth       = 6    // texts within texts
	maxPasses          = 3    // repeated checks of a text with more values of its variables
)

// hasTooManyOpenParentheses reports whether more than maxOpenParentheses
// parentheses are open at some point, quoted or not: parsing them would take
// seconds.
func hasTooManyOpenParentheses(text string) bool {
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
