package policy

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// collectAssignments records every assignment in the file, repeatedly while
// assignments that use each other yield new values. round 0 also records
// assignments that append; pass 1 to leave them out.
func (s *shellText) collectAssignments(file *syntax.File, round int) {
	for size := -1; s.vars.factCount() != size; round++ {
		if size = s.vars.factCount(); round == maxCollectRounds {
			s.addDoubt(true, "its assignments use each other in too many ways")
			return
		}
		syntax.Walk(file, func(node syntax.Node) bool {
			switch node := node.(type) {
			case *syntax.Assign:
				s.recordAssign(node, round == 0)
			case *syntax.WordIter:
				s.recordLoopVariable(node)
			case *syntax.ParamExp:
				if node.Exp != nil && node.Param != nil && (node.Exp.Op == syntax.AssignUnset || node.Exp.Op == syntax.AssignUnsetOrNull) {
					s.recordValue(node.Param.Value, node.Exp.Word, "")
				}
			case *syntax.CallExpr:
				if len(node.Args) > 0 {
					s.recordBuiltinCall(node)
				}
			case *syntax.DeclClause:
				s.recordDeclaration(node)
			case *syntax.FuncDecl:
				s.positional = nil // $1 and $@ are the function's in it
			}
			return true
		})
	}
}

// recordAssign records one assignment: its values for a simple one, only that
// there may be other values for an element of an array. Assignments of an array and
// appending ones are recorded only if firstRound is set, since each round of
// collectAssignments would append again.
func (s *shellText) recordAssign(a *syntax.Assign, firstRound bool) {
	if a.Name == nil || a.Naked {
		return
	}
	target := s.vars.getOrAdd(a.Name.Value)
	switch {
	case a.Array != nil:
		if firstRound {
			target.arrayAssignments++
			var words []*syntax.Word
			for _, elem := range a.Array.Elems {
				words = append(words, elem.Value)
				target.mayBeOther = target.mayBeOther || elem.Index != nil || a.Append
			}
			words = slices.DeleteFunc(words, func(w *syntax.Word) bool { return w == nil })
			variants := s.readings(words...)
			target.array = s.expandFields(words, variants[0])
			target.mayBeOther = target.mayBeOther || len(variants) > 1
			if len(target.array) > 0 {
				s.vars.addValue(a.Name.Value, target.array[0])
			}
		}
	case a.Index != nil:
		target.mayBeOther = true
	case a.Append:
		if firstRound {
			for _, old := range append([]string{""}, target.values...) {
				s.recordValue(a.Name.Value, a.Value, old)
			}
		}
	default:
		s.recordValue(a.Name.Value, a.Value, "")
	}
}

// recordValue records prefix and word, in each reading of the word, as values
// of a variable.
func (s *shellText) recordValue(name string, word *syntax.Word, prefix string) {
	if prefix == "" && isNumericExpansion(word) {
		s.vars.getOrAdd(name).mayBeNumber = true
		return
	}
	for _, reading := range s.readings(word) {
		value := s.expandText(word, reading)
		value.text = prefix + value.text
		s.vars.addValue(name, value)
	}
}

// isNumericExpansion reports whether a word is exactly $((…)) or ${#…}, quoted
// or not.
func isNumericExpansion(word *syntax.Word) bool {
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

// recordLoopVariable records the values that for or select gives to its
// variable.
func (s *shellText) recordLoopVariable(w *syntax.WordIter) {
	if w.Name == nil {
		return
	}
	if !w.InPos.IsValid() && s.positional == nil {
		s.vars.getOrAdd(w.Name.Value).mayBeOther = true
		return
	}
	for _, reading := range s.readings(w.Items...) {
		for _, item := range s.expandFields(w.Items, reading) {
			s.vars.addValue(w.Name.Value, item)
		}
	}
}

// recordDeclaration records what declare, local and the like do to variables
// besides plain assignments: local a empties it, declare -l a changes its case,
// export "a=b" assigns.
func (s *shellText) recordDeclaration(d *syntax.DeclClause) {
	letters := ""
	for _, a := range d.Args {
		if !a.Naked {
			if strings.ContainsAny(letters, "lucn") {
				s.vars.getOrAdd(a.Name.Value).mayBeOther = true
			}
			continue
		}
		var f field
		if a.Name != nil {
			f.text = a.Name.Value
		} else {
			f = s.expandText(a.Value, nil)
		}
		if strings.HasPrefix(f.text, "-") || strings.HasPrefix(f.text, "+") {
			letters += f.text[1:]
			continue
		}
		if name, value, assigns := strings.Cut(f.text, "="); strings.Contains(name, unknownText) {
			s.recordSetByBuiltin("declare", name)
		} else if syntax.ValidName(name) {
			if assigns || d.Variant.Value != "export" && d.Variant.Value != "readonly" {
				s.vars.addValue(name, field{text: value})
			}
		}
	}
}

// assigningBuiltins are the builtins that assign to variables, with their options.
// named is the option whose value names a variable. All operands are names of variables
// too, except those of printf, wait and getopts.
var assigningBuiltins = map[string]struct {
	grammar grammar
	named   string
}{
	"read": {grammar{short: "adinNptu"}, "-a"}, "mapfile": {grammar{short: "dnOsuCc"}, ""}, "readarray": {grammar{short: "dnOsuCc"}, ""},
	"printf": {grammar{short: "v"}, "-v"}, "wait": {grammar{short: "p"}, "-p"}, "getopts": {},
	"local": {}, "declare": {}, "typeset": {}, "export": {}, "readonly": {}, "unset": {},
}

// recordBuiltinCall records, in each reading of a simple command, the variables
// that it sets if it is a builtin.
func (s *shellText) recordBuiltinCall(call *syntax.CallExpr) {
	s.vars.assumeAssigned = true
	readings := s.readings(call.Args...)
	for _, reading := range readings {
		s.recordBuiltinWords(s.expandFields(call.Args, reading))
	}
	s.vars.assumeAssigned = false
}

// recordBuiltinWords records the variables, and the positional parameters, that
// a builtin sets. It ignores other commands.
func (s *shellText) recordBuiltinWords(fields []field) {
	for len(fields) > 0 && fields[0].is("command", "builtin") {
		_, fields, _ = grammar{}.leadingOptions(fields[1:])
	}
	if len(fields) == 0 {
		return
	}
	name := fields[0].text
	if slices.Contains([]string{"set", "shift", "source", "."}, name) {
		s.positional = nil
		s.recordSet(name, fields[1:])
	}
	if name == "source" || name == "." { // the file may assign to any
		s.vars.getOrAdd(unknownText).mayBeOther = true
	}
	builtin, ok := assigningBuiltins[name]
	if !ok {
		return
	}
	s.eval.unsetsFunctions = s.eval.unsetsFunctions || name == "unset"
	options, names, sure := builtin.grammar.leadingOptions(fields[1:])
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
		s.recordSetByBuiltin(name, f.text)
	}
}

// recordSetByBuiltin records that a builtin gives the variable in text, NAME or
// NAME=VALUE, an unknown value; unset gives it the empty value. If the name is
// not known, any variable may have been set.
func (s *shellText) recordSetByBuiltin(builtin, text string) {
	name, _, _ := strings.Cut(text, "=")
	switch {
	case strings.Contains(name, unknownText):
		s.vars.getOrAdd(unknownText).mayBeOther = true
	case !syntax.ValidName(name):
	case builtin == "unset":
		s.vars.addValue(name, field{})
	default:
		s.vars.getOrAdd(name).mayBeOther = true
	}
}

// markSurelyAssigned marks the variables that a statement at the top level of a text
// certainly assigns when it runs. NAME+= marks none: it keeps a value from elsewhere.
func (v *variables) markSurelyAssigned(stmt *syntax.Stmt) {
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
		if a.Name != nil && !a.Naked && !(a.Append && !v.assigned[a.Name.Value]) {
			v.assigned[a.Name.Value] = true
		}
	}
}
