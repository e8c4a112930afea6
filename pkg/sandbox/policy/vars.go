package policy

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// variables holds the assignments of a text, in any order: every constant that a
// variable may hold somewhere in the text.
type variables struct {
	known map[string]*variable
	sure  map[string]bool // assigned on every way to where the check stands
	// presumed: what is assigned anywhere counts as assigned for sure.
	presumed bool
}

type variable struct {
	values []string
	open   bool    // may hold something else, too
	number bool    // may hold a number that arithmetic made
	array  []field // as assigned by the one a=(…)
	arrays int
}

const (
	maxValues     = 16
	maxValueBytes = 1 << 16
	maxRounds     = 8 // through assignments that use each other
)

// ofBash are variables that bash itself sets, whatever the text assigns.
var ofBash = strings.Fields(`_ REPLY MAPFILE OPTARG OPTIND BASH_REMATCH COPROC PWD OLDPWD DIRSTACK PIPESTATUS FUNCNAME RANDOM SRANDOM
	SECONDS LINENO EPOCHSECONDS EPOCHREALTIME BASH_COMMAND BASH_ARGV BASH_ARGC BASH_SOURCE BASH_LINENO BASH_SUBSHELL BASHPID BASH_EXECUTION_STRING
	HISTCMD GROUPS COLUMNS LINES BASH_ALIASES BASH_CMDS`)

// initial holds the values that variables most likely have before a text
// assigns them.
var initial = map[string]string{"IFS": " \t\n", "BASH": "/bin/bash", "SHELL": "/bin/bash"}

// binding is one reading of the variables in a command.
type binding map[string]bound

type bound struct {
	state valueState
	text  string
}

type valueState int

const (
	valueUnknown valueState = iota
	valueKnown
	valueUnset
)

func newVariables() *variables {
	return &variables{known: map[string]*variable{}, sure: map[string]bool{}}
}

// within returns the variables for a text inside: assignments are shared,
// what is sure there is not sure outside.
func (v *variables) within() *variables {
	sure := make(map[string]bool, len(v.sure))
	for name := range v.sure {
		sure[name] = true
	}
	return &variables{known: v.known, sure: sure}
}

func (v *variables) get(name string) *variable {
	if v.known[name] == nil {
		v.known[name] = &variable{}
	}
	return v.known[name]
}

func (v *variables) set(name string, value field) {
	target := v.get(name)
	switch {
	case value.unknown() || len(target.values) >= maxValues || len(value.text) > maxValueBytes:
		target.open = true
	case !slices.Contains(target.values, value.text):
		target.values = append(target.values, value.text)
	}
}

// array returns an array that is assigned once, as a whole.
func (v *variables) array(name string) ([]field, bool) {
	target := v.known[name]
	if target == nil || target.arrays != 1 || target.open || !v.sure[name] || v.elsewhere(name) {
		return nil, false
	}
	return target.array, true
}

// elsewhere reports whether a variable may be set without its name in the text:
// by bash itself, or by a builtin that is given a name that is not known.
func (v *variables) elsewhere(name string) bool {
	return v.known[anything] != nil || slices.Contains(ofBash, name)
}

// size grows with all that is learnt about the variables.
func (v *variables) size() (n int) {
	for _, one := range v.known {
		n += 1 + len(one.values)
		for _, more := range []bool{one.open, one.number} {
			if more {
				n++
			}
		}
	}
	return n
}

// options returns what the variable may be.
func (v *variables) options(name string, withDefault bool) []bound {
	var options []bound
	target := v.known[name]
	if target != nil {
		for _, text := range target.values {
			options = append(options, bound{valueKnown, text})
		}
	}
	if text, ok := initial[name]; ok && (target == nil || !v.sure[name]) && v.known[anything] == nil {
		options = append(options, bound{valueKnown, text})
		if target == nil {
			return options
		}
	}
	if target == nil || target.open || target.number || !v.sure[name] && !v.presumed || v.elsewhere(name) {
		options = append(options, bound{state: valueUnknown})
		if withDefault {
			options = append(options, bound{state: valueUnset})
		}
	}
	return options
}

// variants returns the ways to read the words: every combination of their
// variables' values, or with those unknown that would make them too many.
func (s *scope) variants(words ...*syntax.Word) []binding {
	var names []string
	withDefault := map[string]bool{}
	for _, word := range words {
		if word == nil {
			continue
		}
		for _, part := range word.Parts {
			collectNames(part, func(p *syntax.ParamExp) {
				name := p.Param.Value
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
				withDefault[name] = withDefault[name] || defaults(p)
			})
		}
	}
	all := []binding{{}}
	for _, name := range names {
		options := s.vars.options(name, withDefault[name])
		if len(all)*len(options) > maxVariants {
			options = []bound{{state: valueUnknown}}
		}
		next := make([]binding, 0, len(all)*len(options))
		for _, base := range all {
			for _, option := range options {
				reading := make(binding, len(base)+1)
				for key, value := range base {
					reading[key] = value
				}
				reading[name] = option
				next = append(next, reading)
			}
		}
		all = next
	}
	return all
}

// collectNames visits the variables whose values become part of a word.
func collectNames(part syntax.WordPart, visit func(*syntax.ParamExp)) {
	switch part := part.(type) {
	case *syntax.DblQuoted:
		for _, inner := range part.Parts {
			collectNames(inner, visit)
		}
	case *syntax.ParamExp:
		if part.Param != nil && (part.Exp == nil || defaults(part)) {
			visit(part)
			if part.Exp != nil && part.Exp.Word != nil {
				for _, inner := range part.Exp.Word.Parts {
					collectNames(inner, visit)
				}
			}
		}
	}
}

// collect reads every assignment in the file, again and again while those
// that use each other tell something new. What adds to a value does so in round
// 0 only.
func (s *scope) collect(file *syntax.File, round int) {
	for size := -1; s.vars.size() != size; round++ {
		if size = s.vars.size(); round == maxRounds {
			s.doubt(true, "its assignments use each other in too many ways")
			return
		}
		syntax.Walk(file, func(node syntax.Node) bool {
			switch node := node.(type) {
			case *syntax.Assign:
				s.assign(node, round == 0)
			case *syntax.WordIter:
				s.iterate(node)
			case *syntax.ParamExp:
				if node.Exp != nil && node.Param != nil && (node.Exp.Op == syntax.AssignUnset || node.Exp.Op == syntax.AssignUnsetOrNull) {
					s.assignText(node.Param.Value, node.Exp.Word, "")
				}
			case *syntax.CallExpr:
				if len(node.Args) > 0 {
					s.assignedByBuiltin(node)
				}
			case *syntax.DeclClause:
				s.declared(node)
			case *syntax.FuncDecl:
				s.positional = nil // $1 and $@ are the function's in it
			}
			return true
		})
	}
}

func (s *scope) assign(a *syntax.Assign, first bool) {
	if a.Name == nil || a.Naked {
		return
	}
	target := s.vars.get(a.Name.Value)
	switch {
	case a.Array != nil:
		if first {
			target.arrays++
			var words []*syntax.Word
			for _, elem := range a.Array.Elems {
				words = append(words, elem.Value)
				target.open = target.open || elem.Index != nil || a.Append
			}
			words = slices.DeleteFunc(words, func(w *syntax.Word) bool { return w == nil })
			variants := s.variants(words...)
			target.array = s.fieldsOf(words, variants[0])
			target.open = target.open || len(variants) > 1
			if len(target.array) > 0 {
				s.vars.set(a.Name.Value, target.array[0])
			}
		}
	case a.Index != nil:
		target.open = true
	case a.Append:
		if first {
			for _, old := range append([]string{""}, target.values...) {
				s.assignText(a.Name.Value, a.Value, old)
			}
		}
	default:
		s.assignText(a.Name.Value, a.Value, "")
	}
}

func (s *scope) assignText(name string, word *syntax.Word, before string) {
	if before == "" && isNumber(word) {
		s.vars.get(name).number = true
		return
	}
	for _, reading := range s.variants(word) {
		value := s.textOf(word, reading)
		value.text = before + value.text
		s.vars.set(name, value)
	}
}

// isNumber reports whether a word is one $((…)) or ${#…}, quoted or not.
func isNumber(word *syntax.Word) bool {
	if word == nil || len(word.Parts) != 1 {
		return false
	}
	part := word.Parts[0]
	if quoted, ok := part.(*syntax.DblQuoted); ok && len(quoted.Parts) == 1 {
		part = quoted.Parts[0]
	}
	switch part := part.(type) {
	case *syntax.ArithmExp:
		return true
	case *syntax.ParamExp:
		return part.Length
	}
	return false
}

func (s *scope) iterate(w *syntax.WordIter) {
	if w.Name == nil {
		return
	}
	if !w.InPos.IsValid() && s.positional == nil {
		s.vars.get(w.Name.Value).open = true
		return
	}
	for _, reading := range s.variants(w.Items...) {
		for _, item := range s.fieldsOf(w.Items, reading) {
			s.vars.set(w.Name.Value, item)
		}
	}
}

// declared notes what declare, local and their kin do to variables besides
// plain assignments: local a makes it empty, declare -l a changes its case,
// export "a=b" assigns.
func (s *scope) declared(d *syntax.DeclClause) {
	letters := ""
	for _, a := range d.Args {
		if !a.Naked {
			if strings.ContainsAny(letters, "lucn") {
				s.vars.get(a.Name.Value).open = true
			}
			continue
		}
		var f field
		if a.Name != nil {
			f.text = a.Name.Value
		} else {
			f = s.textOf(a.Value, nil)
		}
		if strings.HasPrefix(f.text, "-") || strings.HasPrefix(f.text, "+") {
			letters += f.text[1:]
			continue
		}
		if name, value, assigns := strings.Cut(f.text, "="); strings.Contains(name, anything) {
			s.opened("declare", name)
		} else if syntax.ValidName(name) {
			if assigns || d.Variant.Value != "export" && d.Variant.Value != "readonly" {
				s.vars.set(name, field{text: value})
			}
		}
	}
}

// assigners are the builtins that put something into variables: their options
// with a value, and those whose value is the name of one. All operands are
// names, but for those of printf, wait and getopts.
var assigners = map[string]struct {
	grammar grammar
	named   string
}{
	"read": {grammar{short: "adinNptu"}, "-a"}, "mapfile": {grammar{short: "dnOsuCc"}, ""}, "readarray": {grammar{short: "dnOsuCc"}, ""},
	"printf": {grammar{short: "v"}, "-v"}, "wait": {grammar{short: "p"}, "-p"}, "getopts": {},
	"local": {}, "declare": {}, "typeset": {}, "export": {}, "readonly": {}, "unset": {},
}

// assignedByBuiltin notes what a builtin may put into variables.
func (s *scope) assignedByBuiltin(call *syntax.CallExpr) {
	s.vars.presumed = true
	readings := s.variants(call.Args...)
	for _, reading := range readings {
		s.assignedBy(s.fieldsOf(call.Args, reading))
	}
	s.vars.presumed = false
}

func (s *scope) assignedBy(fields []field) {
	for len(fields) > 0 && fields[0].is("command", "builtin") {
		_, fields, _ = grammar{}.options(fields[1:])
	}
	if len(fields) == 0 {
		return
	}
	name := fields[0].text
	if slices.Contains([]string{"set", "shift", "source", "."}, name) {
		s.positional = nil
		s.setTo(name, fields[1:])
	}
	if name == "source" || name == "." { // the file may assign to any
		s.vars.get(anything).open = true
	}
	builtin, ok := assigners[name]
	if !ok {
		return
	}
	s.check.unsets = s.check.unsets || name == "unset"
	options, names, sure := builtin.grammar.options(fields[1:])
	switch {
	case name == "getopts":
		names = names[min(1, len(names)):min(2, len(names))]
	case name == "wait", name == "printf" && sure:
		names = nil
	case name == "printf": // what is not known may be its option
		names = names[:min(2, len(names))]
	}
	for _, o := range options {
		if o.name == builtin.named {
			names = append(names, o.value)
		}
	}
	for _, f := range names {
		s.opened(name, f.text)
	}
}

// opened notes a variable that a builtin sets, by its name or NAME=VALUE. One
// whose name is not known may be any.
func (s *scope) opened(builtin, text string) {
	name, _, _ := strings.Cut(text, "=")
	switch {
	case strings.Contains(name, anything):
		s.vars.get(anything).open = true
	case !syntax.ValidName(name):
	case builtin == "unset":
		s.vars.set(name, field{})
	default:
		s.vars.get(name).open = true
	}
}

// pass marks what a statement at the top of a text assigns for sure.
func (v *variables) pass(stmt *syntax.Stmt) {
	if stmt.Background || stmt.Coprocess {
		return
	}
	var assigns []*syntax.Assign
	switch cmd := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		if len(cmd.Args) == 0 {
			assigns = cmd.Assigns
		}
	case *syntax.DeclClause:
		assigns = cmd.Args
	}
	for _, a := range assigns {
		if a.Name != nil && !a.Naked && !(a.Append && !v.sure[a.Name.Value]) {
			v.sure[a.Name.Value] = true
		}
	}
}
