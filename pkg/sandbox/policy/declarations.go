package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// declaration judges declare, export, local and their kin: words that are
// put together at run time may assign to anything.
func (s *scope) declaration(d *syntax.DeclClause) {
	s.at = s.source(d)
	integer, list := false, false
	for _, a := range d.Args {
		if !a.Naked && a.Array == nil {
			for _, reading := range s.variants(a.Value) {
				s.compound(d.Variant.Value, s.textOf(a.Value, reading), list)
			}
		}
		if !a.Naked && integer {
			s.arithmeticVariable(a.Name.Value)
		}
		if a.Naked && a.Name != nil && integer {
			s.arithmeticVariable(a.Name.Value)
		}
		if !a.Naked || a.Value == nil {
			continue
		}
		option := s.textOf(a.Value, nil).text
		list = list || strings.HasPrefix(option, "-") && strings.ContainsAny(option, "aA"+anything)
		if strings.HasPrefix(option, "-") && d.Variant.Value != "export" && d.Variant.Value != "readonly" {
			integer = integer || strings.Contains(option, "i")
			if strings.Contains(option, "n") {
				s.doubt(true, "%s %s makes one variable an alias of another", d.Variant.Value, option)
			}
		}
		for _, reading := range s.variants(a.Value) {
			s.variableName(d.Variant.Value, s.textOf(a.Value, reading))
		}
	}
}

// compound judges a value that declare and its kin take for the elements of
// an array, and expand once more: a='($(code))'; declare -a b=$a.
func (s *scope) compound(builtin string, value field, list bool) {
	runs := strings.HasPrefix(value.text, "(") && strings.ContainsAny(value.text, "$`"+anything)
	if runs || list && strings.HasPrefix(value.text, anything) {
		s.doubt(true, "%s expands the elements in %s once more", builtin, excerpt(strings.ReplaceAll(value.text, anything, "…")))
	}
}

// loop judges the values that for and select give to their variable.
func (s *scope) loop(iter *syntax.WordIter) {
	for _, reading := range s.variants(iter.Items...) {
		for _, value := range s.fieldsOf(iter.Items, reading) {
			s.environment(iter.Name.Value, value, "for")
		}
	}
}

// expansion judges what assigns, ${a:=value}, and what evaluates a value as
// code: ${a@P}, and ${!a} where a may hold a subscript.
func (s *scope) expansion(p *syntax.ParamExp) {
	if p.Exp != nil && p.Param != nil && (p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull) {
		for _, reading := range s.variants(p.Exp.Word) {
			s.environment(p.Param.Value, s.textOf(p.Exp.Word, reading), ":=")
		}
	}
	if p.Exp != nil && p.Exp.Op == syntax.OtherParamOps && p.Exp.Word != nil && p.Exp.Word.Lit() == "P" {
		s.at = s.source(p)
		s.doubt(true, "${…@P} runs the commands in a value")
	}
	if p.Excl && p.Names == 0 && p.Index == nil && p.Param != nil {
		s.at = s.source(p)
		for _, option := range s.vars.options(p.Param.Value, false) {
			if option.state != valueKnown || !syntax.ValidName(option.text) {
				s.doubt(true, "${!…} evaluates a name that is not known")
				break
			}
		}
	}
	if p.Index != nil {
		s.subscript(p.Index)
	}
	if p.Slice != nil {
		for _, x := range []syntax.ArithmExpr{p.Slice.Offset, p.Slice.Length} {
			if x != nil {
				s.subscript(x)
			}
		}
	}
}
