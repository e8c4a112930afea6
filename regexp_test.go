package toolroom_test

import (
	"go/ast"
	"go/constant"
	"go/token"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRegularExpressions compiles each expression that is compiled at its first use
// (lazyregexp.New), and finds those of programs that are compiled at every start.
func TestRegularExpressions(t *testing.T) {
	compiled := 0
	for _, file := range goFiles(t) {
		if file.test || file.dir == "pkg/sandbox/sandboxtest" || !strings.HasPrefix(file.path, "pkg/") && !strings.HasPrefix(file.path, "internal/") &&
			!strings.HasPrefix(file.path, "tools/") && !strings.HasPrefix(file.path, "host/") {
			continue
		}
		for _, declared := range file.tree.Decls {
			of, ok := declared.(*ast.GenDecl)
			if !ok {
				continue
			}
			ast.Inspect(of, func(n ast.Node) bool {
				if _, ok := n.(*ast.FuncLit); ok {
					return false // runs when it is called
				}
				called, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				function, ok := called.Fun.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				at := file.set.Position(called.Pos())
				pkg, _ := function.X.(*ast.Ident)
				require.False(t, pkg != nil && pkg.Name == "regexp", "%s: use lazyregexp.New: this is compiled at each start", at)
				if pkg != nil && pkg.Name == "lazyregexp" {
					expression, known := constantText(called.Args[0], file.tree)
					require.True(t, known, "%s: the expression has parts that this test cannot evaluate", at)
					_, err := regexp.Compile(expression)
					require.NoError(t, err, at)
					compiled++
				}
				return true
			})
		}
	}
	require.Greater(t, compiled, 90)
}

// constantText returns the value of a string expression: literals, constants of the same
// file, and their sums. known is false if it has other parts.
func constantText(e ast.Expr, file *ast.File) (text string, known bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		value := constant.MakeFromLiteral(e.Value, e.Kind, 0)
		return constant.StringVal(value), e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, ok := constantText(e.X, file)
		right, too := constantText(e.Y, file)
		return left + right, ok && too && e.Op == token.ADD
	case *ast.ParenExpr:
		return constantText(e.X, file)
	case *ast.Ident:
		for _, declared := range file.Decls {
			of, ok := declared.(*ast.GenDecl)
			if !ok || of.Tok != token.CONST {
				continue
			}
			for _, spec := range of.Specs {
				spec := spec.(*ast.ValueSpec)
				for i, name := range spec.Names {
					if name.Name == e.Name && i < len(spec.Values) {
						return constantText(spec.Values[i], file)
					}
				}
			}
		}
	}
	return "", false
}
