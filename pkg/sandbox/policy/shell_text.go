package policy

import (
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// shellText is one text of shell code under evaluation: the command itself, or
// code that it gives to eval, bash -c or another program.
type shellText struct {
	eval             *evaluation // the evaluation of the whole command, shared with inner texts
	text             string
	depth            int                   // texts around this one; 0: the command itself
	vars             *variables            // what variables may hold
	functionsHere    map[string]bool       // functions that are surely defined before the current statement
	positional       []field               // $1, $2, …; nil: not known
	setLists         [][]field             // lists that the builtin set may have assigned to $1, $2, …
	arg0             field                 // $0; empty: not known
	afterAssignments string                // source of the current statement after its assignments
	current          string                // source of the simple command being checked, for messages
	readFileNames    map[*syntax.Stmt]bool // statements whose input is a list of file names
	inputIsFileNames bool                  // the current statement is in readFileNames
	writtenFiles     map[string]bool       // base names of files that the text writes; nil: not computed yet
}

// checkText parses and checks a whole text. A text that is too long, nested too
// deep or not valid bash denies the command.
func (s *shellText) checkText(text string) {
	c := s.eval
	c.bytesLeft -= len(text)
	switch {
	case len(text) > maxTextBytes:
		c.denyOverBound(fmt.Sprintf("%d bytes of shell text, of at most %d", len(text), maxTextBytes))
		return
	case c.bytesLeft < 0 || s.depth > maxTextDepth || hasTooManyOpenParentheses(text):
		c.denyOverBound("shell text within shell text too deep or too much")
		return
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(false)).Parse(strings.NewReader(text), "")
	if err != nil {
		c.deny(finding{
			command: excerpt(text), rule: "must parse",
			why: fmt.Sprintf("it does not parse as bash (%s)", excerpt(err.Error())),
			instead: "Correct the quoting or the syntax: bash would run the commands before the error and stop there. " +
				"If bash accepts the command, it has one of the few forms that this check does not understand: quote subscripts (m[\"a b\"]), write ( ( for ((.",
		})
		return
	}
	s.text = text
	c.linesMayEnd = c.linesMayEnd || mayEndLine(text)
	if s.depth == 0 {
		s.denyInvisible(file)
	}
	s.checkSyntaxTree(file)
}

// sourceOf returns the source of a node as an excerpt for messages; "" for a
// node without a valid position.
func (s *shellText) sourceOf(node syntax.Node) string {
	from, to := int(node.Pos().Offset()), int(node.End().Offset())
	if from < 0 || to > len(s.text) || from > to {
		return ""
	}
	return excerpt(s.text[from:min(to, from+4*maxExcerpt)])
}
