package policy

import (
	"fmt"
	"maps"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// scope is one text under check: the command itself, or what is given to
// eval or bash -c in it.
type shellText struct {
	eval             *evaluation
	text             string
	depth            int
	vars             *variables
	functionsHere    map[string]bool       // defined for sure before where the check stands
	positional       []field               // $1…; nil where not known
	setLists         [][]field             // what set may make of them
	arg0             field                 // $0
	afterAssignments string                // the statement after its assignments
	current          string                // the simple command that is being looked at
	readFileNames    map[*syntax.Stmt]bool // their input is a list of files
	inputIsFileNames bool                  // and so is the present command's
	writtenFiles     map[string]bool       // names of files that the text writes; nil: not known yet
}

// parse checks a whole text.
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

// file checks every statement, in the order of the text.
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

func (s *shellText) checkStatements(file *syntax.File) {
	for _, stmt := range file.Stmts {
		sure := maps.Clone(s.vars.assigned)
		syntax.Walk(stmt, s.visitNode)
		s.vars.assigned = sure // without the variables of loops
		s.vars.markAssigned(stmt)
		s.noteFunction(stmt)
	}
}

// defined notes a function that is there from here on.
func (s *shellText) noteFunction(stmt *syntax.Stmt) {
	if f, ok := stmt.Cmd.(*syntax.FuncDecl); ok && f.Name != nil && !stmt.Background && len(stmt.Redirs) == 0 {
		s.functionsHere[f.Name.Value] = true
	}
}

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

// source returns the text of a node, fit for a message.
func (s *shellText) sourceOf(node syntax.Node) string {
	from, to := int(node.Pos().Offset()), int(node.End().Offset())
	if from < 0 || to > len(s.text) || from > to {
		return ""
	}
	return excerpt(s.text[from:min(to, from+4*maxExcerpt)])
}

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

// redirections looks for bash's own network devices.
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
