package schemacheck

import (
	"regexp"
	"regexp/syntax"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxProgramSize bounds the size of a pattern, in instructions, with its
// repetitions expanded.
const maxProgramSize = 10_000

// compilePattern compiles a pattern of a schema, written for JavaScript.
// Patterns that Go does not support, and patterns that are too large, match
// every text. The error is always nil.
func (b *budget) compilePattern(pattern string) (jsonschema.Regexp, error) {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil || programSize(tree) > maxProgramSize {
		return matchAll(pattern), nil //nolint:nilerr // see above
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return matchAll(pattern), nil //nolint:nilerr // see above
	}
	return &chargedPattern{re, b, programSize(tree)}, nil
}

// programSize returns the approximate number of instructions of a pattern.
func programSize(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		n += programSize(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(1, re.Min, re.Max)
	}
	return min(n, maxProgramSize+1)
}

// chargedPattern is a pattern that charges the budget for each match.
type chargedPattern struct {
	*regexp.Regexp
	budget *budget
	size   int // in instructions
}

// instructionsPerStep is the number of instructions, each run for one byte,
// that cost one step.
const instructionsPerStep = 16

// MatchString reports whether the pattern matches, after it has charged the budget by
// the sizes of pattern and text.
func (p *chargedPattern) MatchString(text string) bool {
	p.budget.spend(1 + p.size*len(text)/instructionsPerStep)
	return p.Regexp.MatchString(text)
}

// matchAll is used instead of a pattern that Go does not support or that is too
// large: it matches every text.
type matchAll string

// MatchString returns true.
func (matchAll) MatchString(string) bool { return true }

// String returns the pattern's text.
func (a matchAll) String() string { return string(a) }
