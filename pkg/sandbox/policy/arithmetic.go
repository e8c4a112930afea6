package policy

import (
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"
)

// checkArithmetic checks the variables in arithmetic. Bash evaluates their
// values again, so a value such as x[$(code)] runs the code.
func (s *shellText) checkArithmetic(node syntax.Node) {
	s.current = s.sourceOf(node)
	switch node := node.(type) {
	case *syntax.ArithmExp:
		s.checkArithmExpr(node.X)
	case *syntax.ArithmCmd:
		s.checkArithmExpr(node.X)
	case *syntax.LetClause:
		for _, x := range node.Exprs {
			s.checkArithmExpr(x)
		}
	case *syntax.CStyleLoop:
		for _, x := range []syntax.ArithmExpr{node.Init, node.Cond, node.Post} {
			if x != nil {
				s.checkArithmExpr(x)
			}
		}
	case *syntax.TestClause:
		syntax.Walk(node.X, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.BinaryTest:
				switch n.Op {
				case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
					s.checkTestOperand(n.X)
					s.checkTestOperand(n.Y)
				}
			case *syntax.UnaryTest:
				if n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar {
					s.checkTestOperand(n.X)
				}
			}
			return true
		})
	}
}

// checkTestOperand checks an operand of [[ … ]] that bash evaluates as
// arithmetic.
func (s *shellText) checkTestOperand(x syntax.TestExpr) {
	if word, ok := x.(*syntax.Word); ok {
		s.checkArithmExpr(word)
	}
}

// checkArithmExpr checks the variables and quoted texts that bash evaluates again in
// one arithmetic expression, such as a subscript (see checkArithmetic). The output of
// $(…) is not checked. x may be nil.
func (s *shellText) checkArithmExpr(x syntax.ArithmExpr) {
	if x == nil {
		return
	}
	syntax.Walk(x, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.Word:
			if name := node.Lit(); name != "" {
				if syntax.ValidName(name) {
					s.checkArithmVariable(name)
				}
				return false
			}
			for _, part := range node.Parts {
				if quoted, ok := part.(*syntax.SglQuoted); ok {
					s.checkArithmText(field{text: quoted.Value})
				}
			}
		case *syntax.ParamExp:
			if node.Param != nil && !node.Length {
				s.checkArithmVariable(node.Param.Value)
			}
		case *syntax.CmdSubst:
			return false // unlike a variable's value, its output is not checked
		}
		return true
	})
}

// checkArithmVariable checks the values of a variable that arithmetic
// evaluates, and of the variables that these values name. A variable that the
// command does not assign is taken to hold a number.
func (s *shellText) checkArithmVariable(name string) {
	for seen, left := map[string]bool{}, []string{name}; len(left) > 0; left = left[1:] {
		v := s.vars.byName[left[0]]
		if v == nil || seen[left[0]] {
			continue
		}
		seen[left[0]] = true
		if v.mayBeOther {
			s.addDoubt(strings.Contains(s.text, "[$(") || strings.Contains(s.text, "[`"), "arithmetic evaluates $%s, whose value is not known", excerpt(left[0]))
		}
		for _, value := range v.values {
			s.checkArithmText(field{text: value})
			left = append(left, strings.FieldsFunc(value, func(r rune) bool { return r > unicode.MaxASCII || !isNameByte(byte(r)) })...)
		}
	}
}

// isNameByte reports whether c may be part of a variable's name.
func isNameByte(c byte) bool { return isLetterByte(c) || c >= '0' && c <= '9' }

// checkArithmText adds a doubt about a text that arithmetic evaluates if
// evaluating it could run a command: it has an expansion or a subscript, or is
// partly unknown.
func (s *shellText) checkArithmText(f field) {
	if strings.ContainsAny(f.text, "$`[\x00") {
		s.addDoubt(true, "arithmetic evaluates the text %s", excerpt(strings.ReplaceAll(f.text, unknownText, "…")))
	}
}
