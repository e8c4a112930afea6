package toolroom_test

import (
	"go/ast"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// codeName is a name in docs/architecture.md: package.Name or package.Type.Name,
// with at most one dot after the package.
var codeName = regexp.MustCompile("`([a-z]+)\\.([A-Za-z]+(?:\\.[A-Za-z]+)?)`")

// Every function and type that docs/architecture.md names exists.
func TestArchitectureNamesExist(t *testing.T) {
	declared := map[string]bool{}
	for _, f := range goFiles(t) {
		if f.test {
			continue
		}
		for _, d := range f.tree.Decls {
			for _, name := range declaredNames(d) {
				declared[path.Base(f.dir)+"."+name] = true
			}
		}
	}
	text, err := os.ReadFile("docs/architecture.md")
	require.NoError(t, err)
	found := 0
	for _, m := range codeName.FindAllStringSubmatch(string(text), -1) {
		name := m[1] + "." + m[2]
		if strings.HasSuffix(name, ".go") || strings.HasSuffix(name, ".md") || strings.HasSuffix(name, ".yaml") {
			continue
		}
		found++
		require.True(t, declared[name], "docs/architecture.md names %s, which does not exist", name)
	}
	require.Greater(t, found, 30)
}

// declaredNames returns the names of a declaration: Func, Type.Method or Type.
func declaredNames(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return []string{d.Name.Name}
		}
		receiver := d.Recv.List[0].Type
		if star, ok := receiver.(*ast.StarExpr); ok {
			receiver = star.X
		}
		if id, ok := receiver.(*ast.Ident); ok {
			return []string{id.Name + "." + d.Name.Name}
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if s, ok := spec.(*ast.TypeSpec); ok {
				names = append(names, s.Name.Name)
			}
		}
	}
	return names
}
