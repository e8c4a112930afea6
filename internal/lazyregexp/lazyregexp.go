// Package lazyregexp compiles regular expressions at their first use. Compiling all
// expressions of a program at its start would delay its first answer.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that compiles the expression when it is first called, and returns
// the same result from then on. It is safe for concurrent use. The function panics if the
// expression is not valid; TestRegularExpressions compiles all of them.
func New(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
