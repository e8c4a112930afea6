package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// literals returns the string literals of the programs' sources.
func literals(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, dir := range []string{"../tools", "../pkg", "../host", "../internal"} {
		err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
					text, err := strconv.Unquote(literal.Value)
					require.NoError(t, err)
					found = append(found, text)
				}
				return true
			})
			return nil
		})
		require.NoError(t, err)
	}
	return found
}

// The messages that troubleshooting.md quotes are in the programs: each part
// between … is in a string literal.
func TestMessagesExist(t *testing.T) {
	texts := literals(t)
	count := 0
	for _, line := range regexp.MustCompile("(?m)^Messages?: (.+)$").FindAllStringSubmatch(read(t, "troubleshooting.md"), -1) {
		for _, message := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(line[1], -1) {
			for part := range strings.SplitSeq(message[1], "…") {
				part = strings.TrimSpace(part)
				count++
				require.True(t, slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, part) }),
					"no program prints %q; write its present message into troubleshooting.md", part)
			}
		}
	}
	require.Greater(t, count, 10)
}
