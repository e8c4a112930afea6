package policy

import (
	"fmt"
	"maps"
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
	case c.bytesLeft < 0 || s.depth > maxTextDepth || tooNested(text):
		c.denyOverBound("shell text within shell text too deep or too much")
		return
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(false)).Parse(strings.NewReader(text), "")
	if err != nil {
		c.deny(finding{
			command: excerpt(text), rule: "must parse",
			why: fmt.Sprintf("it does not parse as bash (%s)", excerpt(err.Error())),
			instead: "Mend the quoting or the syntax: bash would run what stands before and stop there. " +
				"If bash does take it, it is one of the few forms that are not understood here: quote subscripts (m[\"a b\"]), write ( ( for ((.",
		})
		return
	}
	s.text = text
	if s.depth == 0 {
		s.denyInvisible(file)
	}
	s.checkFile(file)
}

// checkFile checks all statements of a parsed text in order. It repeats this,
// up to maxPasses times, as long as inner texts add assignments that earlier
// statements may use.
func (s *shellText) checkFile(file *syntax.File) {
	nesting, over := 0, false
	syntax.Walk(file, func(node syntax.Node) bool {
		if node == nil {
			nesting--
			return true
		}
		nesting++
		s.eval.nodesLeft--
		over = over || nesting > maxSyntaxNesting || s.eval.nodesLeft < 0
		if over {
			nesting-- // Walk makes no closing call where it does not go in
		}
		return !over
	})
	if over {
		s.eval.denyOverBound("more than 20 000 syntax nodes, or nested deeper than 100")
		return
	}
	s.collectAssignments(file, 0)
	sure, functions := s.vars.assigned, s.functionsHere
	for pass := 0; ; pass++ {
		known, positional := s.vars.factCount(), s.positional != nil
		s.vars.assigned, s.functionsHere = maps.Clone(sure), maps.Clone(functions)
		s.checkStatements(file)
		if s.vars.factCount() == known && (s.positional != nil) == positional || s.eval.denial != nil {
			return
		}
		// Text given to eval or trap assigned what statements before it use:
		// they may run again.
		if pass == maxPasses {
			s.addDoubt(true, "its assignments use each other in too many ways")
			return
		}
		s.collectAssignments(file, 1)
	}
}

// checkStatements checks each statement once, and records after it which
// variables it surely assigns and which function it defines.
func (s *shellText) checkStatements(file *syntax.File) {
	for _, stmt := range file.Stmts {
		sure := maps.Clone(s.vars.assigned)
		syntax.Walk(stmt, s.visitNode)
		s.vars.assigned = sure // without the variables of loops
		s.vars.markAssigned(stmt)
		s.noteFunction(stmt)
	}
}

// noteFunction records the function that a statement surely defines, if it is a
// definition.
func (s *shellText) noteFunction(stmt *syntax.Stmt) {
	if f, ok := stmt.Cmd.(*syntax.FuncDecl); ok && f.Name != nil && !stmt.Background && len(stmt.Redirs) == 0 {
		s.functionsHere[f.Name.Value] = true
	}
}

// visitNode checks one node of the syntax tree. It returns false once the
// command is denied, which ends the walk.
func (s *shellText) visitNode(node syntax.Node) bool {
	switch node := node.(type) {
	case *syntax.BinaryCmd:
		s.noteReaderOfFileNames(node)
	case *syntax.Stmt:
		s.checkStatement(node)
	case *syntax.DeclClause:
		s.checkDeclaration(node)
	case *syntax.Assign:
		s.checkAssignment(node)
	case *syntax.ForClause:
		if iter, ok := node.Loop.(*syntax.WordIter); ok && iter.Name != nil {
			s.vars.assigned[iter.Name.Value] = true
			s.checkLoopValues(iter)
		}
	case *syntax.ParamExp:
		s.checkExpansion(node)
	case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause, *syntax.CStyleLoop, *syntax.TestClause:
		s.checkArithmetic(node)
	}
	return s.eval.denial == nil
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

// checkStatement checks a statement's redirections and, if it is a simple
// command, that command, once for each reading of its variables. Statements
// within it are left to visitNode.
func (s *shellText) checkStatement(stmt *syntax.Stmt) {
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	s.current = s.sourceOf(stmt)
	s.checkRedirections(stmt)
	s.afterAssignments = ""
	if ok && len(call.Args) > 0 {
		s.afterAssignments = s.text[call.Args[0].Pos().Offset():]
	}
	if !ok || len(call.Args) == 0 {
		return
	}
	for _, reading := range s.readings(call.Args...) {
		fields := s.expandFields(call.Args, reading)
		s.eval.nodesLeft -= len(fields)
		if s.eval.nodesLeft < 0 {
			s.eval.denyOverBound("too many words after expansion")
			return
		}
		s.inputIsFileNames = s.readFileNames[stmt]
		s.checkCommand(fields, stmt.Redirs, true)
		s.inputIsFileNames = false
	}
	s.checkWithSetLists(call.Args)
}

// checkRedirections denies redirections to bash's network devices, /dev/tcp and
// /dev/udp, and adds a doubt about targets that may be one of them.
func (s *shellText) checkRedirections(stmt *syntax.Stmt) {
	for _, redirect := range stmt.Redirs {
		if redirect.Hdoc != nil || redirect.Op == syntax.WordHdoc || redirect.Word == nil {
			continue
		}
		for _, reading := range s.readings(redirect.Word) {
			target := s.expandText(redirect.Word, reading)
			switch {
			case strings.HasPrefix(target.text, "/dev/tcp/") || strings.HasPrefix(target.text, "/dev/udp/"):
				s.denyNetworkDevice(target)
			case strings.HasPrefix(target.text, unknownText) && redirect.Op == syntax.RdrInOut,
				strings.HasPrefix(target.text, "/dev/") && matchGlob("/dev/tcp/*", target.text) != no,
				strings.HasPrefix(target.text, "/dev/") && matchGlob("/dev/udp/*", target.text) != no:
				s.addDoubt(false, "a redirection to a name that is not known, which may be /dev/tcp")
			}
		}
	}
}
