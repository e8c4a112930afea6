package main

import (
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// TestNothingNeverBlamesTheIgnoreRules: if paths only have another type, the
// answer does not suggest no_ignore=true, which would find nothing either.
func TestNothingNeverBlamesTheIgnoreRules(t *testing.T) {
	root := tree(t, "dir/", "dirlink -> dir", "gone -> nowhere", "out -> "+t.TempDir(), ".ignore=skipped\n", "skipped -> dir")
	for _, name := range []string{"dirlink", "gone", "out", "skipped"} {
		got := text(t, defaults(name), root)
		require.Contains(t, got, "1 match of another type (type=any to include): "+name)
		require.NotContains(t, got, "ignored match")
		args := defaults(name)
		args.Type, args.NoIgnore = "any", true
		require.Equal(t, []string{name}, paths(t, args, root))
	}
	args := defaults("skipped")
	args.Type = "d"
	require.Contains(t, text(t, args, root), "1 ignored match (no_ignore=true to include): skipped")
}

// TestShownNamesArePatterns: a name shown with escapes is found when it is used
// as a pattern, or as part of one.
func TestShownNamesArePatterns(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a backslash parts directories here, and no name holds a control character")
	}
	root := tree(t, "new\nline", "rtl\u202ename/a.go", `plain\qname`, "newnline.txt")
	for pattern, want := range map[string][]string{
		`new\nline`:          {`new\nline`},
		`new\n*`:             {`new\nline`, "newnline.txt"},
		`rtl\u202ename/*.go`: {`rtl\u202ename/a.go`},
		filepath.Join(root, `rtl\u202ename/*.go`): {`rtl\u202ename/a.go`},
		`plain\\qname`: {`plain\qname`},
		"new\nline":    {`new\nline`},
	} {
		require.Equal(t, want, paths(t, defaults(pattern), root), pattern)
	}
	require.Contains(t, text(t, defaults("\x1b\nno*"), root), `0 files match \x1b\nno* in .`)
}

// TestARootIsNoPattern: the error must not call the root outside the roots.
func TestARootIsNoPattern(t *testing.T) {
	root := tree(t, "a.go")
	for _, pattern := range []string{root, root + "/"} {
		_, err := runGlob(t, defaults(filepath.ToSlash(pattern)), root)
		require.Equal(t, toolerr.BadPattern, toolerr.CodeOf(err))
		require.ErrorContains(t, err, `/**" lists the files in it`)
	}
	require.Equal(t, []string{"a.go"}, paths(t, defaults(filepath.ToSlash(root)+"/**"), root))
	_, err := runGlob(t, defaults(filepath.ToSlash(t.TempDir())), root)
	require.Equal(t, toolerr.OutsideRoot, toolerr.CodeOf(err))
}

func TestGitDirectoryIsNamed(t *testing.T) {
	root := tree(t, ".git/config", ".git/hooks/pre-commit")
	require.Contains(t, text(t, defaults(".git/hooks/*"), root), ".git is only searched when path names it or a directory in it.")
	args := defaults("*")
	args.Path = ".git/hooks"
	require.Equal(t, []string{".git/hooks/pre-commit"}, paths(t, args, root))
}
