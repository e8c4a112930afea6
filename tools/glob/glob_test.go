package main

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// epoch is the modification time of the first file that tree creates; each
// following file is one second newer.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// tree creates files in a new root, each newer than the one before. A name that
// ends in a slash is a directory, a name with " -> " a symbolic link.
func tree(t testing.TB, names ...string) string {
	t.Helper()
	root := t.TempDir()
	for i, name := range names {
		full := filepath.Join(root, filepath.FromSlash(name))
		if link, target, ok := strings.Cut(name, " -> "); ok {
			full = filepath.Join(root, filepath.FromSlash(link))
			require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o755))
			require.NoError(t, os.Symlink(target, full))
			continue
		}
		if strings.HasSuffix(name, "/") {
			require.NoError(t, os.MkdirAll(full, 0o755))
			continue
		}
		name, text, _ := strings.Cut(full, "=")
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
		when := epoch.Add(time.Duration(i) * time.Second)
		require.NoError(t, os.Chtimes(name, when, when))
	}
	return root
}

// defaults returns the arguments of a call that gives only a pattern.
func defaults(pattern string) arguments {
	return arguments{Pattern: pattern, Hidden: true, Type: "f", Limit: 100, Sort: "mtime"}
}

func runGlob(t testing.TB, args arguments, roots ...string) (*mcpkit.Result, error) {
	t.Helper()
	box, err := sandbox.New(sandbox.Config{Roots: roots}).FS(t.Context())
	require.NoError(t, err)
	return run(t.Context(), box, nil, args)
}

func text(t testing.TB, args arguments, roots ...string) string {
	t.Helper()
	r, err := runGlob(t, args, roots...)
	require.NoError(t, err)
	return r.Text
}

// paths returns the paths of an answer, sorted.
func paths(t testing.TB, args arguments, roots ...string) []string {
	t.Helper()
	r, err := runGlob(t, args, roots...)
	require.NoError(t, err)
	list := []string{}
	if makeRows, ok := r.Rows.(func() any); ok {
		for _, row := range makeRows().([]row) {
			list = append(list, row.Path)
		}
	}
	slices.Sort(list)
	return list
}

func lines(s ...string) string { return strings.Join(s, "\n") + "\n" }

func TestNewestFirstAndPages(t *testing.T) {
	root := tree(t, "a.go", "sub/b.go", "c.txt", "sub/deep/d.go", "e.go")
	args := defaults("*.go")
	require.Equal(t, lines("4 files, newest first", "e.go", "sub/deep/d.go", "sub/b.go", "a.go"), text(t, args, root))
	args.Limit = 2
	require.Equal(t, lines("2 of 4 files, newest first (offset=2 for more)", "e.go", "sub/deep/d.go"), text(t, args, root))
	args.Offset = 2
	require.Equal(t, lines("3-4 of 4 files, newest first", "sub/b.go", "a.go"), text(t, args, root))
	args.Offset = 4
	require.Equal(t, lines("0 of 4 files from offset 4, newest first"), text(t, args, root))
	args = defaults("*.go")
	args.Sort, args.Path = "path", "sub"
	require.Equal(t, lines("2 files, by path", "sub/b.go", "sub/deep/d.go"), text(t, args, root))
	args.Absolute = true
	resolved, err := filepath.EvalSymlinks(root)
	require.NoError(t, err)
	require.Equal(t, lines("2 files, by path", filepath.ToSlash(resolved)+"/sub/b.go", filepath.ToSlash(resolved)+"/sub/deep/d.go"), text(t, args, root))
}

func TestIgnoredAreCounted(t *testing.T) {
	root := tree(t, ".ignore=node_modules\n*.o\n", "a.js", "node_modules/x/1.js", "node_modules/2.js", "b.o", ".git/x.js", ".hid/h.js")
	require.Equal(t, lines("2 files, newest first (3 ignored paths skipped, no_ignore=true to include)", ".hid/h.js", "a.js"), text(t, defaults("*.js"), root))
	args := defaults("*.js")
	args.NoIgnore, args.Hidden = true, false
	require.Equal(t, []string{"a.js", "node_modules/2.js", "node_modules/x/1.js"}, paths(t, args, root))
	require.Equal(t, []string{"a.js"}, paths(t, defaults("./*.js"), root))
}

func TestTypes(t *testing.T) {
	root := tree(t, "dir/x", "dir/sub/", "file -> dir/x", "tree -> dir", "broken -> nothing", "out -> /", "other")
	args := defaults("*")
	require.Equal(t, []string{"dir/x", "file", "other"}, paths(t, args, root))
	args.Type = "d"
	require.Equal(t, []string{"dir", "dir/sub", "tree"}, paths(t, args, root))
	require.Equal(t, lines("2 directories, newest first", "dir/", "dir/sub/"), sortLines(text(t, func() arguments { a := args; a.Pattern = "d*/**"; return a }(), root)))
	args.Type = "any"
	require.Len(t, paths(t, args, root), 8)
	require.Equal(t, []string{"dir/sub"}, paths(t, defaults("sub/"), root), "a slash at the end asks for directories")
}

// sortLines sorts all lines except the first.
func sortLines(s string) string {
	list := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	slices.Sort(list[1:])
	return lines(list...)
}

func TestBracketsAndBraces(t *testing.T) {
	root := tree(t, "app/[id]/page.tsx", "app/[id]/other.ts", "app/i/page.tsx", "[...slug].tsx", "{{name}}.txt", "we[ird.txt", "a*b", "axb")
	require.Equal(t, []string{"app/[id]/page.tsx", "app/i/page.tsx"}, paths(t, defaults("app/[id]/page.tsx"), root))
	require.Equal(t, []string{"app/[id]/other.ts", "app/[id]/page.tsx", "app/i/page.tsx"}, paths(t, defaults("app/[id]/*.{ts,tsx}"), root))
	require.Equal(t, []string{"[...slug].tsx"}, paths(t, defaults("[...slug].tsx"), root))
	require.Equal(t, []string{"{{name}}.txt"}, paths(t, defaults("{{name}}.txt"), root))
	require.Equal(t, []string{"we[ird.txt"}, paths(t, defaults("we[ird.txt"), root), "no valid glob, but a file's name")
	require.Equal(t, []string{"a*b", "axb"}, paths(t, defaults("a*b"), root))
	require.Equal(t, []string{"a*b"}, paths(t, defaults(`a\*b`), root))
}

func TestFaults(t *testing.T) {
	root := tree(t, "a")
	for pattern, code := range map[string]toolerr.Code{
		"src/a[.go": toolerr.BadPattern, "{a,b": toolerr.BadPattern, "": toolerr.BadPattern,
		"../*.go": toolerr.OutsideRoot, "a/../../x": toolerr.OutsideRoot, "/nowhere-at-all/*.go": toolerr.OutsideRoot, "/**": toolerr.OutsideRoot,
	} {
		_, err := runGlob(t, defaults(pattern), root)
		require.Equal(t, code, toolerr.CodeOf(err), pattern)
	}
	_, err := runGlob(t, defaults("src/a[.go"), root)
	require.ErrorContains(t, err, "at character 6")
	for _, args := range []arguments{{Pattern: "*", Path: "no", Limit: 1}, {Pattern: "*", Path: "a", Limit: 1}, {Pattern: "*", Exclude: []string{"["}}} {
		_, err := runGlob(t, args, root)
		require.Error(t, err)
		require.NotEqual(t, toolerr.ExecutionError, toolerr.CodeOf(err))
	}
}

func TestAbsolutePatterns(t *testing.T) {
	first, second := tree(t, "a.go", "sub/b.go"), tree(t, "c.go", "x/d.go")
	resolved, err := filepath.EvalSymlinks(second)
	require.NoError(t, err)
	slash := filepath.ToSlash(resolved)
	require.Equal(t, []string{slash + "/c.go"}, paths(t, defaults(slash+"/*.go"), first, second))
	require.Equal(t, []string{slash + "/c.go", slash + "/x/d.go"}, paths(t, defaults(slash+"/**/*.go"), first, second))
	require.Equal(t, []string{slash + "/x/d.go"}, paths(t, defaults(slash+"/x/d.go"), first, second))
	require.Equal(t, []string{"sub/b.go"}, paths(t, defaults(filepath.ToSlash(first)+"/sub/*"), first, second))
	require.Equal(t, lines("1 directory, newest first", slash+"/x/"), text(t, defaults(slash+"/x/"), first, second))
}

func TestLinksThatTheCallerNames(t *testing.T) {
	root := tree(t, "real/sub/a.go", "link -> real", "top.go")
	require.Equal(t, []string{"real/sub/a.go"}, paths(t, defaults("**/a.go"), root), "no link is followed")
	require.Equal(t, []string{"link/sub/a.go"}, paths(t, defaults("link/**/*.go"), root), "but for one that is named")
	require.Equal(t, []string{"link/sub/a.go"}, paths(t, defaults("link/sub/a.go"), root))
}

func TestExclude(t *testing.T) {
	root := tree(t, "a.go", "a_test.go", "vendor/v.go", "gen/x.go", "gen/y.txt", "sub/gen", "sub/gen.go")
	args := defaults("**")
	args.Exclude = []string{"vendor", "*_test.go", "gen/"}
	require.Equal(t, []string{"a.go", "sub/gen", "sub/gen.go"}, paths(t, args, root))
	args.Exclude = []string{"gen/**", "sub/*.go", "*.txt"}
	require.Equal(t, []string{"a.go", "a_test.go", "sub/gen", "vendor/v.go"}, paths(t, args, root))
}

func TestNothingSaysWhatComesClose(t *testing.T) {
	root := tree(t, ".ignore=out\n", "out/x.log", "README.md", ".secret.cfg", "src/a.go", "keep/b.tmp")
	require.Equal(t, lines("0 files match *.log in . (searched 7 paths; 1 ignored path skipped, no_ignore=true to include)",
		"1 ignored match (no_ignore=true to include): out/x.log"), text(t, defaults("*.log"), root))
	require.Contains(t, text(t, defaults("readme.MD"), root), "1 match with different case: README.md\n")
	require.Contains(t, text(t, defaults("src"), root), `src is a directory: "src/**" lists the files in it`)
	args := defaults("*.cfg")
	args.Hidden = false
	require.Contains(t, text(t, args, root), "1 hidden match (hidden=true to include): .secret.cfg\n")
	args = defaults("*.tmp")
	args.Exclude = []string{"keep"}
	require.Contains(t, text(t, args, root), "1 match excluded by exclude: keep/b.tmp\n")
	args = defaults("a.go")
	args.Type = "d"
	require.Contains(t, text(t, args, root), "1 match of another type (type=any to include): src/a.go\n")
	require.Contains(t, text(t, defaults("scr/*.go"), root), "In the pattern, scr does not exist")
	require.Contains(t, text(t, defaults(`src\\*.go`), root), "write / between directories")
	require.Contains(t, text(t, defaults("*.nothing"), root), "0 files match *.nothing in . (searched 7 paths")
}

func TestSecretsAndOddNames(t *testing.T) {
	root := tree(t, ".ssh/config", "keys/id_rsa", "we\x1bird\n.go")
	require.Equal(t, lines("1 file, newest first", "keys/id_rsa  (secret, not readable)"), text(t, defaults("**/{id_rsa,config}"), root))
	require.Equal(t, lines("1 file, newest first", `we\x1bird\n.go`), text(t, defaults("*.go"), root))
}

func TestBudget(t *testing.T) {
	var names []string
	for i := range 300 {
		names = append(names, fmt.Sprintf("%s%d", strings.Repeat("n", 100), i))
	}
	root := tree(t, names...)
	box, err := sandbox.New(sandbox.Config{Roots: []string{root}}).FS(t.Context())
	require.NoError(t, err)
	seen := 0
	for offset := 0; ; {
		args := defaults("*")
		args.Limit, args.Offset = 1000, offset
		r, err := run(wire.WithBudget(t.Context(), 2000), box, nil, args)
		require.NoError(t, err)
		require.LessOrEqual(t, len(r.Text), 8000)
		m := r.Meta.(meta)
		seen += m.Count
		if !m.Truncated {
			break
		}
		offset = m.NextOffset
		require.Contains(t, r.Text, fmt.Sprintf("offset=%d for more", offset))
	}
	require.Equal(t, 300, seen)
}

// TestLikeDoublestar compares random searches with doublestar over a plain
// listing, with pages of all sizes.
func TestLikeDoublestar(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	pieces := []string{"a", "b", "*", "?", "[ab]", "{a,b}", "a*", "**", "*.x", "**/", "a/", "b/", "*/"}
	for range 4 {
		root, all := randomTree(t, r)
		for range 60 {
			var pattern strings.Builder
			for range 1 + r.IntN(4) {
				pattern.WriteString(pieces[r.IntN(len(pieces))])
			}
			compare(t, r, root, pattern.String(), all)
		}
	}
}

func compare(t *testing.T, r *rand.Rand, root, pattern string, all []string) {
	t.Helper()
	if strings.HasSuffix(pattern, "/") || strings.Contains(pattern, "***") || strings.Contains(pattern, "//") {
		return
	}
	full := pattern
	if !strings.Contains(pattern, "/") {
		full = "**/" + pattern
	}
	want := []string{}
	for _, p := range all {
		if ok, err := doublestar.Match(full, p); err == nil && ok {
			want = append(want, p)
		}
	}
	args := defaults(pattern)
	args.Limit, args.Sort = 1+r.IntN(40), []string{"mtime", "path"}[r.IntN(2)]
	got := []string{}
	for len(got) < len(want) {
		args.Offset = len(got)
		page := paths(t, args, root)
		require.NotEmpty(t, page, "%s: %v of %v", pattern, got, want)
		got = append(got, page...)
	}
	slices.Sort(got)
	require.Equal(t, want, got, pattern)
	args.Offset = len(want)
	require.Empty(t, paths(t, args, root), pattern)
}

func randomTree(t *testing.T, r *rand.Rand) (root string, files []string) {
	root = t.TempDir()
	names := []string{"a", "b", "ab", "ba", "a.x", "b.x", "c"}
	for range 120 {
		dir := root
		for range r.IntN(4) {
			dir = filepath.Join(dir, names[r.IntN(3)])
		}
		if os.MkdirAll(dir, 0o755) == nil {
			if f, err := os.OpenFile(filepath.Join(dir, names[r.IntN(len(names))]), os.O_CREATE|os.O_EXCL, 0o644); err == nil {
				require.NoError(t, f.Close())
			}
		}
	}
	require.NoError(t, filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, name)
		files = append(files, filepath.ToSlash(rel))
		return err
	}))
	slices.Sort(files)
	return root, files
}

func TestDeadlineAndCancel(t *testing.T) {
	root := tree(t, "a/b/c.go")
	box, err := sandbox.New(sandbox.Config{Roots: []string{root}}).FS(t.Context())
	require.NoError(t, err)
	late, stop := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer stop()
	r, err := run(late, box, nil, defaults("*.go"))
	require.NoError(t, err, "what was found so far is an answer")
	require.True(t, r.Meta.(meta).Partial)
	require.Contains(t, r.Text, "no files so far, newest first (stopped after")
	require.Contains(t, r.Text, "narrow path or pattern")

	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = run(cancelled, box, nil, defaults("*.go"))
	require.ErrorIs(t, err, context.Canceled)
}
