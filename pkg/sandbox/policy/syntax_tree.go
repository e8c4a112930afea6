package policy

import (
	"maps"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
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
// variables it surely assigns and which function it defines. For the next line,
// these count only if bash cannot have skipped the statement (see mayEndLine).
func (s *shellText) checkStatements(file *syntax.File) {
	var vars, functions []string // of this line, that count only on it
	for i, stmt := range file.Stmts {
		beginsLine := i == 0 || stmt.Pos().Line() > file.Stmts[i-1].End().Line()
		if beginsLine {
			if s.eval.linesMayEnd {
				deleteAll(s.vars.assigned, vars)
				deleteAll(s.functionsHere, functions)
			}
			vars, functions = nil, nil
		}
		syntax.Walk(stmt, s.visitNode)
		added, count := s.vars.markSurelyAssigned(stmt)
		if !beginsLine || count > 1 {
			vars = append(vars, added...)
		}
		if name := s.recordFunction(stmt); name != "" && !beginsLine {
			functions = append(functions, name)
		}
	}
}

// deleteAll deletes names from m.
func deleteAll(m map[string]bool, names []string) {
	for _, name := range names {
		delete(m, name)
	}
}

// lineEnder matches texts with an expansion, assignment or setting that can make
// bash skip the rest of a line.
var lineEnder = lazyregexp.New(`\$\(\(|\$\[|\$\{[^}]*[][!:@]|[\w'"]\[|\b(?:E?UID|PPID|SHELLOPTS|BASHOPTS|BASH_VERSINFO|readonly|declare|typeset|local|shopt|failglob)\b`)

// mayEndLine reports whether bash may skip the rest of a line of text, and go on
// with the next line. It does so after an assignment to a readonly variable, a
// division by zero and other errors in expansions.
func mayEndLine(text string) bool {
	return strings.Contains(text, "\n") && lineEnder().MatchString(text)
}

// recordFunction records the function that a statement surely defines. It returns
// its name, "" if the statement defines none or it was recorded before.
func (s *shellText) recordFunction(stmt *syntax.Stmt) (added string) {
	f, ok := stmt.Cmd.(*syntax.FuncDecl)
	if !ok || f.Name == nil || stmt.Background || len(stmt.Redirs) > 0 || s.functionsHere[f.Name.Value] {
		return ""
	}
	s.functionsHere[f.Name.Value] = true
	return f.Name.Value
}

// visitNode checks one node of the syntax tree. It returns false, which ends
// the walk, once the command is denied.
func (s *shellText) visitNode(node syntax.Node) (proceed bool) {
	switch node := node.(type) {
	case *syntax.BinaryCmd:
		s.recordReaderOfFileNames(node)
	case *syntax.Stmt:
		s.checkStatement(node)
	case *syntax.DeclClause:
		s.checkDeclaration(node)
	case *syntax.Assign:
		s.checkAssignment(node)
	case *syntax.ForClause:
		if iter, ok := node.Loop.(*syntax.WordIter); ok && iter.Name != nil {
			s.checkLoop(node, iter)
			return false
		}
	case *syntax.ParamExp:
		s.checkExpansion(node)
	case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause, *syntax.CStyleLoop, *syntax.TestClause:
		s.checkArithmetic(node)
	}
	return s.eval.denial == nil
}

// checkLoop checks a for or select loop. In its body, and only there, the variable is
// surely assigned.
func (s *shellText) checkLoop(loop *syntax.ForClause, iter *syntax.WordIter) {
	syntax.Walk(iter, s.visitNode)
	s.checkLoopValues(iter)
	before := s.vars.assigned[iter.Name.Value]
	s.vars.assigned[iter.Name.Value] = true
	for _, stmt := range loop.Do {
		syntax.Walk(stmt, s.visitNode)
	}
	s.vars.assigned[iter.Name.Value] = before
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
