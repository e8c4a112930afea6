package policy

import (
	"maps"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// checkSyntaxTree checks all statements of a parsed text in order. It repeats
// this, up to maxPasses times, as long as inner texts add assignments that
// earlier statements may use.
func (s *shellText) checkSyntaxTree(file *syntax.File) {
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
		// Text given to eval or trap assigned variables that earlier statements
		// use: they may run again.
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
		s.vars.markSurelyAssigned(stmt)
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

// visitNode checks one node of the syntax tree. It returns false, which ends
// the walk, once the command is denied.
func (s *shellText) visitNode(node syntax.Node) (proceed bool) {
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
