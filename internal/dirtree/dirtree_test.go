package dirtree_test

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/dirtree"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// tree creates files in a new root directory: path → content. A path with a
// final slash is a directory.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		full := filepath.Join(root, filepath.FromSlash(name))
		if strings.HasSuffix(name, "/") {
			require.NoError(t, os.MkdirAll(full, 0o755))
			continue
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o755))
		require.NoError(t, os.WriteFile(full, []byte(text), 0o644))
	}
	return root
}

func open(t testing.TB, roots ...string) *sandbox.FS {
	t.Helper()
	box, err := sandbox.New(sandbox.Config{Roots: roots}).FS(t.Context())
	require.NoError(t, err)
	return box
}

func list(t testing.TB, root, name string, opts dirtree.Options) *dirtree.Result {
	t.Helper()
	if opts.GitWait == 0 {
		opts.GitWait = -1
	}
	result, err := dirtree.Tree(t.Context(), open(t, root), name, opts)
	require.NoError(t, err)
	return result
}

func text(t testing.TB, root, name string, opts dirtree.Options) string {
	t.Helper()
	return dirtree.Render(list(t, root, name, opts))
}

func lines(s ...string) string { return strings.Join(s, "\n") + "\n" }

func paths(r *dirtree.Result) []string {
	var all []string
	for _, row := range r.Rows {
		all = append(all, row.Path)
	}
	return all
}

func TestTree(t *testing.T) {
	root := tree(t, map[string]string{
		"src/main.go":     "package main\n\nfunc main() {}\n",
		"src/a10.go":      "x",
		"src/a9.go":       "",
		"src/deep/er/x":   "not shown at depth 2",
		"docs/":           "",
		".env.example":    "A=1\n",
		"README.md":       strings.Repeat("line\n", 300),
		"blob":            "\x00\x01",
		"app.min.js":      strings.Repeat("x", 4000) + "\n",
		"wide.txt":        "\xff\xfea\x00\n\x00b\x00",
		"big.txt":         strings.Repeat("x", 3<<20),
		"run.sh":          "#!/bin/sh\n",
		"wei\x1brd\nname": "",
	})
	require.NoError(t, os.Chmod(filepath.Join(root, "run.sh"), 0o755))
	require.NoError(t, os.Symlink("src/main.go", filepath.Join(root, "link")))
	require.NoError(t, os.Symlink(".", filepath.Join(root, "src/loop")))
	require.Equal(t, lines(
		`.: 16 entries, depth 2`,
		`docs/  (empty)`,
		`src/`,
		`  deep/`,
		`  a9.go  [0]`,
		`  a10.go  [1]`,
		`  loop -> .`,
		`  main.go  [3]`,
		`.env.example  [1]`,
		`app.min.js  [1] 3.9K`, // a line count says little about minified text
		`big.txt  3.0M`,
		`blob  2B`,
		`link -> src/main.go`,
		`README.md  [300]`,
		`run.sh*  [1]`,
		`wei\x1brd\nname  [0]`,
		`wide.txt  [2]`,
	), text(t, root, "", dirtree.Options{}))
}

func TestLong(t *testing.T) {
	root := tree(t, map[string]string{"a": "x\n", "d/": ""})
	require.Regexp(t, `(?m)^\.: 2 entries, depth 2
d/  \(empty\) drwxr-xr-x \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)
a  \[1\] 2B -rw-r--r-- \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)$`, text(t, root, ".", dirtree.Options{Long: true}))
}

func TestFileAnswersItsRow(t *testing.T) {
	root := tree(t, map[string]string{"src/main.go": "a\nb\n", "src/other.go": ""})
	require.Equal(t, "src/main.go: file\nsrc/main.go  [2] 4B\n", text(t, root, "src/main.go", dirtree.Options{}))
	require.Equal(t, "src/main.go: file\nsrc/main.go  [2] 4B\n", text(t, root, filepath.Join(root, "src", "main.go"), dirtree.Options{}))
}

func TestEmptyAndPastTheEnd(t *testing.T) {
	root := tree(t, map[string]string{"empty/": "", "one/a": ""})
	require.Equal(t, "empty: empty, depth 2\n", text(t, root, "empty", dirtree.Options{}))
	require.Equal(t, "one: no entries from offset 5, 1 entry in total, depth 2\n", text(t, root, "one", dirtree.Options{Offset: 5}))
}

func TestMissing(t *testing.T) {
	root := tree(t, map[string]string{"a": ""})
	for name, code := range map[string]toolerr.Code{"nothing": toolerr.NotFound, "../x": toolerr.OutsideRoot, "a\x00": toolerr.InvalidParams} {
		_, err := dirtree.Tree(t.Context(), open(t, root), name, dirtree.Options{})
		require.Equal(t, code, toolerr.CodeOf(err), name)
	}
	_, err := dirtree.Tree(t.Context(), open(t, root), ".", dirtree.Options{Ignore: []string{"a["}})
	require.Equal(t, toolerr.BadPattern, toolerr.CodeOf(err))
}

func TestIgnoreRules(t *testing.T) {
	root := tree(t, map[string]string{
		".ignore":             "node_modules/\n*.o\nout\n",
		"node_modules/a/1.js": "", "node_modules/b.js": "", "node_modules/.hid": "",
		"out/only.txt": "",
		"a.o":          "", "src/b.o": "", "src/c.c": "",
		"obj/x.o":   "",
		".git/HEAD": "ref", ".hidden": "",
	})
	require.Equal(t, lines(
		`.: 7 entries, depth 2 (3 ignored files not shown, no_ignore=true to include)`,
		`node_modules/  (ignored, 3 files)`,
		`obj/  (only 1 ignored file)`,
		`out/  (ignored, 1 file)`,
		`src/`,
		`  c.c  [0]`,
		`.hidden  [0]`,
		`.ignore  [3]`,
	), text(t, root, ".", dirtree.Options{}))

	all := text(t, root, ".", dirtree.Options{NoIgnore: true})
	require.NotContains(t, all, ".git")
	require.NotContains(t, all, "ignored")
	require.Contains(t, all, "  b.o")
	require.Contains(t, all, "  only.txt")

	visible := text(t, root, ".", dirtree.Options{SkipHidden: true, Ignore: []string{"src", "*.txt"}})
	require.NotContains(t, visible, ".hidden")
	require.NotContains(t, visible, "src")
	require.Contains(t, visible, "excluded by ignore")
	require.Contains(t, visible, "2 hidden not shown")
}

func TestIgnoreList(t *testing.T) {
	root := tree(t, map[string]string{"a/x.go": "", "a/x.md": "", "b/x.go": "", "gen": "", "c/gen/y": ""})
	require.Equal(t, []string{"a", "a/x.md", "b", "c", "gen"},
		sorted(paths(list(t, root, "", dirtree.Options{Ignore: []string{"*.go", "gen/"}}))))
	require.Equal(t, []string{"a", "a/x.md", "b", "b/x.go", "c"},
		sorted(paths(list(t, root, "", dirtree.Options{Ignore: []string{"a/*.go", "gen"}}))))
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}

func TestSecretsAreMarkedAndStayClosed(t *testing.T) {
	root := tree(t, map[string]string{".ssh/config": "x", "keys/id_rsa": "key\n", "keys/id_rsa.pub": "pub\n"})
	got := text(t, root, "", dirtree.Options{Depth: 3})
	require.Contains(t, got, ".ssh/  (secret, not readable)\n")
	require.NotContains(t, got, "config")
	require.Contains(t, got, "  id_rsa  (secret, not readable) 4B\n")
	require.Contains(t, got, "  id_rsa.pub  [1]\n")
}

func TestFairShare(t *testing.T) {
	files := map[string]string{"top.txt": ""}
	for i := range 1000 {
		files[fmt.Sprintf("big/f%d", i)] = ""
	}
	for i := range 5 {
		files[fmt.Sprintf("small/f%d", i)] = ""
		files[fmt.Sprintf("other/f%d", i)] = ""
	}
	got := text(t, tree(t, files), "", dirtree.Options{Limit: 50})
	require.Contains(t, got, ".: entries 1-50 of 1014, depth 2 (offset=50 for more)\n")
	require.Contains(t, got, "big/  (first 36 of 1000)\n")
	for i := range 5 {
		require.Equal(t, 3, strings.Count(got, fmt.Sprintf("  f%d  [0]\n", i)))
	}
	require.Contains(t, got, "top.txt")
	next := text(t, tree(t, files), "", dirtree.Options{Limit: 50, Offset: 50})
	require.Contains(t, next, ".: entries 51-100 of 1014, depth 2 (offset=100 for more)\n")
	require.Contains(t, next, "big/ (37-86 of 1000)\n  f36")
	require.NotContains(t, next, "small")
}

func TestLeftOutIsSaidBesideItsDirectory(t *testing.T) {
	files := map[string]string{}
	for i := range 12 {
		for j := range 12 {
			files[fmt.Sprintf("d%d/f%d", i, j)] = ""
		}
	}
	got := text(t, tree(t, files), "", dirtree.Options{Limit: 25})
	require.Contains(t, got, "d0/  (first 10 of 12)\n")
	require.Contains(t, got, "d1/  (first 3 of 12)\n")
	require.Contains(t, got, "d11/  (12 entries left out)\n")
}

func TestBudget(t *testing.T) {
	files := map[string]string{}
	for i := range 400 {
		files[fmt.Sprintf("dir%d/%s%d", i%7, strings.Repeat("long", 20), i)] = "x"
	}
	root := tree(t, files)
	seen := map[string]bool{}
	for offset, pages := 0, 0; ; pages++ {
		r := list(t, root, "", dirtree.Options{Budget: 4000, Offset: offset})
		require.LessOrEqual(t, len(dirtree.Render(r)), 4000)
		require.Less(t, pages, 100)
		for _, p := range paths(r) {
			require.False(t, seen[p], p)
			seen[p] = true
		}
		if r.NextOffset == 0 {
			break
		}
		require.Equal(t, offset+len(r.Rows), r.NextOffset)
		offset = r.NextOffset
	}
	require.Len(t, seen, 407)
}

// TestPagesAreTheWholeListing compares pages of random trees with a plain
// walk.
func TestPagesAreTheWholeListing(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 9))
	for range 4 {
		root := randomTree(t, r)
		for _, depth := range []int{1, 2, 4, 20} {
			want := plainWalk(t, root, depth)
			for _, limit := range []int{1, 7, 60, 5000} {
				if len(want)/limit > 30 {
					continue
				}
				var got []string
				for offset := 0; ; {
					page := list(t, root, "", dirtree.Options{Depth: depth, Limit: limit, Offset: offset})
					require.LessOrEqual(t, len(page.Rows), limit)
					if page.TotalExact { // false if there was not enough time for counting
						require.Equal(t, len(want), page.Total)
					}
					require.Equal(t, len(page.Rows), treeLines(dirtree.Render(page)))
					got = append(got, paths(page)...)
					if page.NextOffset == 0 {
						break
					}
					require.Equal(t, offset+limit, page.NextOffset)
					offset = page.NextOffset
				}
				require.Equal(t, want, sorted(got), "depth %d, limit %d", depth, limit)
			}
		}
	}
}

// treeLines counts the lines that represent rows. It skips the lines of
// directories of earlier pages ("d/ (…)", with one space).
func treeLines(text string) int {
	n := -1
	for line := range strings.Lines(text) {
		if !strings.Contains(line, "/ (") {
			n++
		}
	}
	return n
}

func randomTree(t *testing.T, r *rand.Rand) string {
	files := map[string]string{}
	var fill func(dir string, depth int)
	fill = func(dir string, depth int) {
		for i := range r.IntN(14) {
			files[path.Join(dir, fmt.Sprintf("f%d", i))] = ""
		}
		for i := range r.IntN(4) {
			sub := path.Join(dir, fmt.Sprintf("d%d", i))
			files[sub+"/"] = ""
			if depth < 4 {
				fill(sub, depth+1)
			}
		}
	}
	fill("", 0)
	return tree(t, files)
}

func plainWalk(t *testing.T, root string, depth int) []string {
	t.Helper()
	var all []string
	require.NoError(t, filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, name)
		if err != nil || rel == "." {
			return err
		}
		all = append(all, filepath.ToSlash(rel))
		if d.IsDir() && strings.Count(rel, string(filepath.Separator))+1 >= depth {
			return fs.SkipDir
		}
		return nil
	}))
	return sorted(all)
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := dirtree.Tree(ctx, open(t, tree(t, map[string]string{"a/b": ""})), "", dirtree.Options{})
	require.ErrorIs(t, err, context.Canceled)
}

func TestOtherRootsAreShownAbsolute(t *testing.T) {
	first, second := tree(t, map[string]string{"a": ""}), tree(t, map[string]string{"b/c": ""})
	r, err := dirtree.Tree(t.Context(), open(t, first, second), filepath.Join(second, "b"), dirtree.Options{GitWait: -1})
	require.NoError(t, err)
	require.True(t, filepath.IsAbs(filepath.FromSlash(r.Rows[0].Path)))
	require.True(t, strings.HasSuffix(r.Rows[0].Path, "/b/c"))
}

func TestManyDirectories(t *testing.T) {
	files := map[string]string{}
	for i := range 150 { // more than stay open at once
		files[fmt.Sprintf("d%d/e/f/g", i)] = ""
	}
	r := list(t, tree(t, files), "", dirtree.Options{Depth: 20, Limit: 5000, Budget: 1 << 20})
	require.Equal(t, 600, len(r.Rows))
	require.Zero(t, r.Unreadable)
}
