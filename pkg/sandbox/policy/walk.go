package policy

import (
	"fmt"
	"maps"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const (
	maxText    = 64 << 10
	maxTexts   = 512 << 10 // of all texts within texts
	maxNodes   = 20_000
	maxNesting = 100  // syntax in syntax
	maxOpen    = 1000 // parentheses, before parsing
	maxDepth   = 6    // texts in texts
	maxPasses  = 3    // through one text, whose variables turn out to be others
)

// check is the work on one command.
type check struct {
	policy *Policy
	nodes  int // still to be looked at, over all texts
	bytes  int // still to be parsed
	denied *finding
	asked  *finding
	doubts []Doubt
	unsets bool // something may take functions away again
	hides  bool // a name or shell code may be hidden somewhere
	sure   bool // only what surely breaks a rule counts
}

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

// Check judges a command as bash -c would run it. It never runs anything,
// and takes time and memory in proportion to the command's length.
func (p *Policy) Check(command string) Verdict {
	c := &check{policy: p, nodes: maxNodes, bytes: maxTexts}
	s := &scope{
		check: c, vars: newVariables(), functions: map[string]bool{},
		positional: []field{}, zero: field{text: "bash"},
	}
	s.parse(command)
	return c.verdict()
}

func (c *check) deny(f finding) {
	if c.denied == nil {
		f.name = excerpt(f.name)
		c.denied = &f
	}
}

func (c *check) tooMuch(why string) {
	c.deny(finding{rule: "bounds", why: why, instead: "Run it in smaller parts, or write a script file and run that."})
}

// doubt notes that something cannot be told from the text. hides says that a
// name or shell code may be hidden there: with deny rules the command is then
// denied, with ask rules the user is asked.
func (s *scope) doubt(hides bool, format string, args ...any) {
	reason := printable(fmt.Sprintf(format, args...), maxReason)
	c := s.check
	c.hides = c.hides || hides
	hides = hides && !c.sure
	if hides && len(c.policy.deny) > 0 {
		r := c.policy.deny[0]
		c.deny(finding{
			command: s.at, rule: r.String(),
			why:     "it may hide a command that a deny rule names: " + reason,
			instead: "Write the commands out, each by its name.",
		})
	}
	if hides && len(c.policy.ask) > 0 && c.asked == nil {
		c.asked = &finding{
			command: s.at, rule: c.policy.ask[0].String(),
			why: "it may hide a command that an ask rule names: " + reason,
		}
	}
	d := Doubt{Command: s.at, Reason: reason}
	for _, old := range c.doubts {
		if old == d {
			return
		}
	}
	if len(c.doubts) < maxDoubts {
		c.doubts = append(c.doubts, d)
	}
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

// nested checks a text that the command gives to another shell. Unknown parts of
// the text are skipped; the known parts are still checked.
func (s *scope) nested(text field, positional []field, zero field) {
	s.within(text, &scope{
		check: s.check, depth: s.depth + 1, vars: s.vars.within(), functions: map[string]bool{},
		positional: positional, zero: zero, at: s.at,
	})
}

// evalText checks a text that runs in this very shell, with its functions.
func (s *scope) evalText(text field) {
	inner := &scope{
		check: s.check, depth: s.depth + 1, vars: s.vars.within(), functions: maps.Clone(s.functions),
		positional: s.positional, zero: s.zero, at: s.at,
	}
	s.within(text, inner)
	if inner.positional == nil {
		s.positional = nil
	}
}

func (s *scope) within(text field, inner *scope) {
	if !text.unknown() && !text.many {
		inner.parse(text.text)
		return
	}
	s.doubt(true, "shell code that is put together at run time")
	s.guess(text, inner)
}

// guess checks a text of which not all is known, or not in this grammar: that
// it does not parse means nothing.
func (s *scope) guess(text field, inner *scope) {
	script := strings.ReplaceAll(text.text, anything, "${__}")
	trial := s.check.apart()
	inner.check = trial
	inner.parse(script)
	s.check.nodes, s.check.bytes = trial.nodes, trial.bytes
	if trial.denied != nil && trial.denied.rule == "must parse" {
		return // with the unknown part filled in it may well parse
	}
	s.check.merge(trial)
}

// apart returns a check of the same policy whose findings are kept separate.
func (c *check) apart() *check {
	return &check{policy: c.policy, nodes: c.nodes, bytes: c.bytes, sure: c.sure}
}

// merge takes over what another check found.
func (c *check) merge(other *check) {
	c.hides = c.hides || other.hides
	if c.denied == nil {
		c.denied = other.denied
	}
	if c.asked == nil {
		c.asked = other.asked
	}
	for _, d := range other.doubts {
		if len(c.doubts) < maxDoubts {
			c.doubts = append(c.doubts, d)
		}
	}
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

// tooNested reports whether parentheses are open so deep, in whatever quotes,
// that parsing them would take seconds.
func tooNested(text string) bool {
	open := 0
	for i := range len(text) {
		switch text[i] {
		case '(':
			open++
		case ')':
			open = max(0, open-1)
		}
		if open > maxOpen {
			return true
		}
	}
	return false
}
