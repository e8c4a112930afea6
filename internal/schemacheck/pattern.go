package schemacheck

import (
	"regexp"
	"regexp/syntax"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxProgramSize bounds the size of a pattern with its repetitions expanded, in
// instructions.
const maxProgramSize = 10_000

// compilePattern compiles JavaScript patterns that Go supports; other patterns, and
// patterns that are too large, match every text.
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

// chargedPattern is a pattern that charges the budget for matches.
type chargedPattern struct {
	*regexp.Regexp
	budget *budget
	size   int // in instructions
}

// instructionsPerStep is the number of instructions, each for one byte, that count as a
// step.
const instructionsPerStep = 16

func (p *chargedPattern) MatchString(text string) bool {
	p.budget.spend(1 + p.size*len(text)/instructionsPerStep)
	return p.Regexp.MatchString(text)
}

type matchAll string

func (matchAll) MatchString(string) bool { return true }

func (a matchAll) String() string { return string(a) }
