package policy

import (
	"fmt"
	"maps"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// scope is one text under check: the command itself, or what is given to
// eval or bash -c in it.
type scope struct {
	check      *check
	text       string
	depth      int
	vars       *variables
	functions  map[string]bool       // defined for sure before where the check stands
	positional []field               // $1…; nil where not known
	set        [][]field             // what set may make of them
	zero       field                 // $0
	follow     string                // the statement after its assignments
	at         string                // the simple command that is being looked at
	listed     map[*syntax.Stmt]bool // their input is a list of files
	files      bool                  // and so is the present command's
	written    map[string]bool       // names of files that the text writes; nil: not known yet
}

// parse checks a whole text.
func (s *scope) parse(text string) {
	c := s.check
	c.bytes -= len(text)
	switch {
	case len(text) > maxText:
		c.tooMuch(fmt.Sprintf("%d bytes of shell text, of at most %d", len(text), maxText))
		return
	case c.bytes < 0 || s.depth > maxDepth || tooNested(text):
		c.tooMuch("shell text within shell text too deep or too much")
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
		s.invisible(file)
	}
	s.file(file)
}

// file checks every statement, in the order of the text.
func (s *scope) file(file *syntax.File) {
	nesting, over := 0, false
	syntax.Walk(file, func(node syntax.Node) bool {
		if node == nil {
			nesting--
			return true
		}
		nesting++
		s.check.nodes--
		over = over || nesting > maxNesting || s.check.nodes < 0
		if over {
			nesting-- // Walk makes no closing call where it does not go in
		}
		return !over
	})
	if over {
		s.check.tooMuch("more than 20 000 syntax nodes, or nested deeper than 100")
		return
	}
	s.collect(file, 0)
	sure, functions := s.vars.sure, s.functions
	for pass := 0; ; pass++ {
		known, positional := s.vars.size(), s.positional != nil
		s.vars.sure, s.functions = maps.Clone(sure), maps.Clone(functions)
		s.statements(file)
		if s.vars.size() == known && (s.positional != nil) == positional || s.check.denied != nil {
			return
		}
		// Text given to eval or trap assigned what statements before it use:
		// they may run again.
		if pass == maxPasses {
			s.doubt(true, "its assignments use each other in too many ways")
			return
		}
		s.collect(file, 1)
	}
}

func (s *scope) statements(file *syntax.File) {
	for _, stmt := range file.Stmts {
		sure := maps.Clone(s.vars.sure)
		syntax.Walk(stmt, s.visit)
		s.vars.sure = sure // without the variables of loops
		s.vars.pass(stmt)
		s.defined(stmt)
	}
}

// defined notes a function that is there from here on.
func (s *scope) defined(stmt *syntax.Stmt) {
	if f, ok := stmt.Cmd.(*syntax.FuncDecl); ok && f.Name != nil && !stmt.Background && len(stmt.Redirs) == 0 {
		s.functions[f.Name.Value] = true
	}
}

func (s *scope) visit(node syntax.Node) bool {
	switch node := node.(type) {
	case *syntax.BinaryCmd:
		s.pipe(node)
	case *syntax.Stmt:
		s.statement(node)
	case *syntax.DeclClause:
		s.declaration(node)
	case *syntax.Assign:
		s.assignment(node)
	case *syntax.ForClause:
		if iter, ok := node.Loop.(*syntax.WordIter); ok && iter.Name != nil {
			s.vars.sure[iter.Name.Value] = true
			s.loop(iter)
		}
	case *syntax.ParamExp:
		s.expansion(node)
	case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause, *syntax.CStyleLoop, *syntax.TestClause:
		s.arithmetic(node)
	}
	return s.check.denied == nil
}

// source returns the text of a node, fit for a message.
func (s *scope) source(node syntax.Node) string {
	from, to := int(node.Pos().Offset()), int(node.End().Offset())
	if from < 0 || to > len(s.text) || from > to {
		return ""
	}
	return excerpt(s.text[from:min(to, from+4*maxExcerpt)])
}

func (s *scope) statement(stmt *syntax.Stmt) {
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	s.at = s.source(stmt)
	s.redirections(stmt)
	s.follow = ""
	if ok && len(call.Args) > 0 {
		s.follow = s.text[call.Args[0].Pos().Offset():]
	}
	if !ok || len(call.Args) == 0 {
		return
	}
	for _, reading := range s.variants(call.Args...) {
		fields := s.fieldsOf(call.Args, reading)
		s.check.nodes -= len(fields)
		if s.check.nodes < 0 {
			s.check.tooMuch("too many words after expansion")
			return
		}
		s.files = s.listed[stmt]
		s.simple(fields, stmt.Redirs, true)
		s.files = false
	}
	s.afterSet(call.Args)
}

// redirections looks for bash's own network devices.
func (s *scope) redirections(stmt *syntax.Stmt) {
	for _, redirect := range stmt.Redirs {
		if redirect.Hdoc != nil || redirect.Op == syntax.WordHdoc || redirect.Word == nil {
			continue
		}
		for _, reading := range s.variants(redirect.Word) {
			target := s.textOf(redirect.Word, reading)
			switch {
			case strings.HasPrefix(target.text, "/dev/tcp/") || strings.HasPrefix(target.text, "/dev/udp/"):
				s.networkDevice(target)
			case strings.HasPrefix(target.text, anything) && redirect.Op == syntax.RdrInOut,
				strings.HasPrefix(target.text, "/dev/") && glob("/dev/tcp/*", target.text) != no,
				strings.HasPrefix(target.text, "/dev/") && glob("/dev/udp/*", target.text) != no:
				s.doubt(false, "a redirection to a name that is not known, which may be /dev/tcp")
			}
		}
	}
}
