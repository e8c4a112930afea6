package policy

import (
	"slices"
	"strings"
	"unicode"

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
			case *syntax.BinaryArithm:
				switch node.Op {
				case syntax.Assgn, syntax.AddAssgn, syntax.SubAssgn, syntax.MulAssgn, syntax.QuoAssgn, syntax.RemAssgn, syntax.AndAssgn,
					syntax.OrAssgn, syntax.XorAssgn, syntax.ShlAssgn, syntax.ShrAssgn:
					s.recordComputed(node.X)
				}
			case *syntax.UnaryArithm:
				if node.Op == syntax.Inc || node.Op == syntax.Dec {
					s.recordComputed(node.X)
				}
			case *syntax.LetClause:
				s.recordLet(node)
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
// besides plain assignments: local a empties it, export "a=b" assigns, and
// attributes change or prevent assignments (see recordAttributes).
func (s *shellText) recordDeclaration(d *syntax.DeclClause) {
	letters := ""
	for _, a := range d.Args {
		if !a.Naked {
			s.recordAttributes(a.Name.Value, letters)
			if a.Array == nil {
				s.recordElementsInText(a.Name.Value, s.expandText(a.Value, nil))
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
			if d.Variant.Value != "export" { // its -n is no attribute
				letters += f.text[1:]
			}
			continue
		}
		name, value, assigns := strings.Cut(f.text, "=")
		if !syntax.ValidName(name) {
			s.recordSetByBuiltin("declare", f.text)
			continue
		}
		if assigns || d.Variant.Value != "export" && d.Variant.Value != "readonly" {
			s.vars.addValue(name, field{text: value})
			s.recordElementsInText(name, field{text: value})
		}
		s.recordAttributes(name, letters)
		if !assigns && (d.Variant.Value == "readonly" || strings.Contains(letters, "r")) {
			s.vars.getOrAdd(name).mayBeOther = true // later assignments fail
		}
	}
}

// recordAttributes records how the attributes in letters, the options of declare and
// the like, change the values that name gets, now or in later statements: -l, -u and -c
// change the case, -n assigns to another variable, -A takes every second element
// as a key, -i computes. Letters that are not known may be any of these.
func (s *shellText) recordAttributes(name, letters string) {
	if strings.ContainsAny(letters, "lucnA"+unknownText) {
		s.vars.getOrAdd(name).mayBeOther = true
	}
	if strings.Contains(letters, "i") {
		s.vars.getOrAdd(name).mayBeNumber = true
	}
}

// recordElementsInText records that name may have other values than value if that is
// text such as "(a b)", which declare and the like take for the elements of an array.
func (s *shellText) recordElementsInText(name string, value field) {
	if strings.HasPrefix(value.text, "(") {
		s.vars.getOrAdd(name).mayBeOther = true
	}
}

// recordComputed records that arithmetic may give the variable x a number. It ignores
// other expressions.
func (s *shellText) recordComputed(x syntax.ArithmExpr) {
	if word, ok := x.(*syntax.Word); ok && syntax.ValidName(word.Lit()) {
		s.vars.getOrAdd(word.Lit()).mayBeNumber = true
	}
}

// recordLet records the variables that the quoted arguments of let may assign.
func (s *shellText) recordLet(let *syntax.LetClause) {
	for _, x := range let.Exprs {
		word, ok := x.(*syntax.Word)
		if !ok || word.Lit() != "" {
			continue
		}
		text := s.expandText(word, nil).text
		if !strings.ContainsAny(text, "=+-") {
			continue
		}
		for _, name := range strings.FieldsFunc(text, func(r rune) bool { return r > unicode.MaxASCII || !isNameByte(byte(r)) }) {
			if syntax.ValidName(name) {
				s.vars.getOrAdd(name).mayBeNumber = true
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

// recordSetByBuiltin records that a builtin gives the variable in text, NAME,
// NAME=VALUE, NAME+=VALUE or NAME[…], an unknown value; unset NAME gives it the
// empty value. If the name is not known, any variable may have been set.
func (s *shellText) recordSetByBuiltin(builtin, text string) {
	target, _, _ := strings.Cut(text, "=")
	name, _, isElement := strings.Cut(strings.TrimSuffix(target, "+"), "[")
	switch {
	case strings.Contains(target, unknownText):
		s.vars.getOrAdd(unknownText).mayBeOther = true
	case !syntax.ValidName(name):
	case builtin == "unset" && !isElement:
		s.vars.addValue(name, field{})
	default:
		s.vars.getOrAdd(name).mayBeOther = true
	}
}

// markSurelyAssigned marks the variables that a statement at the top level of a text
// certainly assigns when it runs. It returns those that were not marked before, and the
// number of assignments. NAME+= marks none: it keeps a value from elsewhere. A builtin
// whose redirection fails assigns nothing.
func (v *variables) markSurelyAssigned(stmt *syntax.Stmt) (added []string, count int) {
	if stmt.Background || stmt.Coprocess {
		return nil, 0
	}
	var assigns []*syntax.Assign
	switch cmd := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		if len(cmd.Args) == 0 {
			assigns = cmd.Assigns
		}
	case *syntax.DeclClause:
		if hasValidOptions(cmd) && len(stmt.Redirs) == 0 {
			assigns = cmd.Args
		}
	}
	for _, a := range assigns {
		if a.Name == nil || a.Naked {
			continue
		}
		count++
		if name := a.Name.Value; !v.assigned[name] && !a.Append {
			v.assigned[name] = true
			added = append(added, name)
		}
	}
	return added, count
}

// hasValidOptions reports whether declare, export and the like surely take all options
// before the first name, and thus assign: after declare -Z a=b, or local outside of
// functions, the next command runs with a as it was. It returns false for options
// that cannot assign every value (-A, -f), and if it cannot tell.
func hasValidOptions(d *syntax.DeclClause) bool {
	valid, ok := map[string]string{"declare": "-acgilrtux", "typeset": "-acgilrtux", "export": "-n", "readonly": "-a"}[d.Variant.Value]
	for _, a := range d.Args {
		if a.Name != nil || !ok {
			break
		}
		option := a.Value.Lit()
		ok = strings.HasPrefix(option, "-") && strings.Trim(option[1:], valid) == ""
	}
	return ok
}
