package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// checkDeclaration checks declare, export, local and the like. It adds a doubt
// about words put together at run time, which may assign to any variable, about
// -n, and about values evaluated as arithmetic (-i).
func (s *shellText) checkDeclaration(d *syntax.DeclClause) {
	s.current = s.sourceOf(d)
	integer, list := false, false
	for _, a := range d.Args {
		if !a.Naked && a.Array == nil {
			for _, reading := range s.readings(a.Value) {
				s.checkArrayValue(d.Variant.Value, s.expandText(a.Value, reading), list)
			}
		}
		if !a.Naked && integer {
			s.checkArithmVariable(a.Name.Value)
		}
		if a.Naked && a.Name != nil && integer {
			s.checkArithmVariable(a.Name.Value)
		}
		if !a.Naked || a.Value == nil {
			continue
		}
		for _, reading := range s.readings(a.Value) {
			word := s.expandText(a.Value, reading)
			if option := word.text; strings.HasPrefix(option, "-") {
				list = list || strings.ContainsAny(option, "aA"+unknownText)
				if d.Variant.Value != "export" && d.Variant.Value != "readonly" {
					integer = integer || strings.ContainsAny(option, "i"+unknownText)
					if strings.ContainsAny(option, "n"+unknownText) {
						s.addDoubt(true, "%s %s makes one variable an alias of another", d.Variant.Value, excerpt(strings.ReplaceAll(option, unknownText, "…")))
					}
				}
			}
			s.checkAssignedName(d.Variant.Value, word)
		}
	}
}

// checkArrayValue adds a doubt about a value that declare and the like take for
// array elements and expand a second time: a='($(code))'; declare -a b=$a.
// isArray says that an option declares an array.
func (s *shellText) checkArrayValue(builtin string, value field, isArray bool) {
	runs := strings.HasPrefix(value.text, "(") && strings.ContainsAny(value.text, "$`"+unknownText)
	if runs || isArray && strings.HasPrefix(value.text, unknownText) {
		s.addDoubt(true, "%s expands the elements in %s once more", builtin, excerpt(strings.ReplaceAll(value.text, unknownText, "…")))
	}
}

// checkLoopValues checks the values that for and select give to their variable.
func (s *shellText) checkLoopValues(iter *syntax.WordIter) {
	for _, reading := range s.readings(iter.Items...) {
		for _, value := range s.expandFields(iter.Items, reading) {
			s.checkVariableValue(iter.Name.Value, value, "for")
		}
	}
}

// checkExpansion checks a parameter expansion that assigns, ${a:=value}, or
// that evaluates a value as code: ${a@P}, ${!a} with a subscript in a, and
// arithmetic in subscripts and slices.
func (s *shellText) checkExpansion(p *syntax.ParamExp) {
	if p.Exp != nil && p.Param != nil && (p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull) {
		for _, reading := range s.readings(p.Exp.Word) {
			s.checkVariableValue(p.Param.Value, s.expandText(p.Exp.Word, reading), ":=")
		}
	}
	if p.Exp != nil && p.Exp.Op == syntax.OtherParamOps && p.Exp.Word != nil && p.Exp.Word.Lit() == "P" {
		s.current = s.sourceOf(p)
		s.addDoubt(true, "${…@P} runs the commands in a value")
	}
	if p.Excl && p.Names == 0 && p.Index == nil && p.Param != nil {
		s.current = s.sourceOf(p)
		for _, option := range s.vars.possibleValues(p.Param.Value, false) {
			if option.state != valueKnown || !syntax.ValidName(option.text) {
				s.addDoubt(true, "${!…} evaluates a name that is not known")
				break
			}
		}
	}
	if p.Index != nil {
		s.checkArithmExpr(p.Index)
	}
	if p.Slice != nil {
		for _, x := range []syntax.ArithmExpr{p.Slice.Offset, p.Slice.Length} {
			if x != nil {
				s.checkArithmExpr(x)
			}
		}
	}
}
