package conventions_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/tools/replace/conventions"
)

// tree creates files, and returns a function that calls ForNewFile with a file name.
func tree(t testing.TB, files map[string]string) func(name string) conventions.Settings {
	t.Helper()
	return treeIn(t, t.TempDir(), files)
}

func treeIn(t testing.TB, root string, files map[string]string) func(name string) conventions.Settings {
	t.Helper()
	root, err := filepath.EvalSymlinks(root)
	require.NoError(t, err)
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	fsys, err := sandbox.New(sandbox.Config{Roots: []string{filepath.Join(root, "root")}}).FS(context.Background())
	require.NoError(t, err)
	return func(name string) conventions.Settings {
		return conventions.ForNewFile(fsys, filepath.Join(root, "root", filepath.FromSlash(name)))
	}
}

// TestSections has the core of editorconfig's test suite for globs.
func TestSections(t *testing.T) {
	for _, c := range []struct {
		section string
		yes, no []string
	}{
		{"*", []string{"a.c", "dir/a.c", ".x"}, nil},
		{"a*e.c", []string{"ace.c", "abcde.c", "dir/ae.c"}, []string{"a/e.c", "abcd.c"}},
		{"Bar/*", []string{"Bar/foo.txt"}, []string{"Bar/a/foo.txt", "foo.txt", "x/Bar/foo.txt"}},
		{"/a.c", []string{"a.c"}, []string{"dir/a.c"}},
		{"a**z.c", []string{"a/z.c", "amnz.c", "am/nz.c", "a/mnz.c", "amn/z.c", "a/mn/z.c", "dir/az.c"}, []string{"z.c"}},
		{"b/**z.c", []string{"b/z.c", "b/mnz.c", "b/mn/z.c"}, []string{"bmnz.c", "bm/nz.c", "x/b/z.c"}},
		{"c/**/z.c", []string{"c/a/z.c", "c/a/b/z.c"}, []string{"cz.c"}},
		{"som?.c", []string{"some.c"}, []string{"som.c", "something.c", "som/.c"}},
		{"[ab].g", []string{"a.g", "b.g"}, []string{"ab.g", "c.g"}},
		{"[!ab].g", []string{"c.g"}, []string{"a.g", "b.g"}},
		{"[d-g].g", []string{"f.g"}, []string{"h.g"}},
		{"[-ab].g", []string{"-.g", "b.g"}, []string{"c.g"}},
		{`[\]ab].g`, []string{"].g", "b.g"}, []string{"c.g"}},
		{"[ab]].g", []string{"b].g"}, []string{"b.g"}},
		{"ab[e/]cd.i", []string{"ab[e/]cd.i"}, []string{"ab/cd.i", "abecd.i"}},
		{"ab[/c", []string{"ab[/c"}, nil},
		{"*.{py,js,html}", []string{"a.py", "dir/a.html"}, []string{"a.c", "a.py.c"}},
		{"{single}.b", []string{"{single}.b"}, []string{"single.b", ".b"}},
		{"{}.c", []string{"{}.c"}, []string{".c"}},
		{"a{b,c,}.d", []string{"a.d", "ab.d", "ac.d"}, []string{"a,.d", "abc.d"}},
		{"a{,b,,c,}.e", []string{"a.e", "ab.e", "ac.e"}, []string{"ad.e"}},
		{"{.f", []string{"{.f"}, []string{".f"}},
		{"{},b}.h", []string{"{},b}.h"}, []string{"b.h"}},
		{"{{,b,c{d}.i", []string{"{{,b,c{d}.i"}, []string{"b.i", "c{d.i"}},
		{`{a\,b,cd}.txt`, []string{"a,b.txt", "cd.txt"}, []string{"a.txt", "b.txt"}},
		{`{e,\},f}.txt`, []string{"e.txt", "}.txt", "f.txt"}, []string{".txt"}},
		{"{some,a{*c,b}[ef]}.j", []string{"some.j", "abe.j", "abf.j", "axxce.j"}, []string{"abg.j", "a.j"}},
		{"{3..120}", []string{"3", "15", "120", "dir/60"}, []string{"1", "060", "121", "5a", "a5", "-3"}},
		{"{-2..+2}.x", []string{"-1.x", "0.x", "2.x"}, []string{"3.x", "-3.x"}},
		{"{aardvark..antelope}", []string{"{aardvark..antelope}"}, []string{"aardvark"}},
		{"{a,{1..3}}", []string{"a", "2"}, []string{"4", "b"}},
		{"wörld?.c", []string{"wörldé.c"}, []string{"world1.c"}},
		{"(a|b)+.c", []string{"(a|b)+.c"}, []string{"a.c", "aa.c"}},
	} {
		ask := tree(t, map[string]string{"root/.editorconfig": "[" + c.section + "]\nend_of_line = crlf\n"})
		for _, name := range c.yes {
			require.Equal(t, "\r\n", ask(name).Ending, "[%s] matches %s", c.section, name)
		}
		for _, name := range c.no {
			require.Empty(t, ask(name).Ending, "[%s] does not match %s", c.section, name)
		}
	}
}

// TestNearestFirst: nearer files and later sections win; root=true and the
// roots end the search.
func TestNearestFirst(t *testing.T) {
	ask := tree(t, map[string]string{
		".editorconfig":             "[*]\ncharset = latin1\n",
		"root/.editorconfig":        "\ufeff; a comment\n# another\nroot = false\n[*]\r\nEnd_Of_Line = CRLF\ninsert_final_newline=true\n[*.txt]\nend_of_line = lf\n",
		"root/sub/.editorconfig":    "[*.txt]\nend_of_line = unset\n[x.*]\nend_of_line=cr\n",
		"root/top/.editorconfig":    "ROOT = true\n[*]\ncharset = utf-8-bom\n",
		"root/broken/.editorconfig": "[*\nend_of_line\n= lf\n[]\n]\n[{{{{,,}}]\nend_of_line = maybe\n",
	})
	require.Equal(t, conventions.Settings{Ending: "\r\n", EndingSource: ".editorconfig", FinalNewline: true}, ask("a.c"))
	require.Equal(t, "\n", ask("a.txt").Ending)
	require.Equal(t, "\r\n", ask("not/made/yet/a.c").Ending)
	require.Empty(t, ask("sub/a.txt").Ending, "unset")
	require.Equal(t, "\r", ask("sub/deep/x.c").Ending)
	require.Equal(t, conventions.Settings{Encoding: textfile.UTF8, BOM: true, EncodingSource: ".editorconfig"}, ask("top/a.c"))
	require.Equal(t, "\r\n", ask("broken/a.c").Ending)
}

func TestCharsets(t *testing.T) {
	ask := tree(t, map[string]string{
		"root/.editorconfig": "[a]\ncharset=latin1\n[b]\ncharset=utf-16be\n[c]\ncharset=utf-8\n[d]\ncharset=unset\n[e]\ncharset=klingon\n",
		"root/.gitattributes": "f working-tree-encoding=UTF-16LE-BOM eol=crlf\ng working-tree-encoding=UTF-16\nh working-tree-encoding=UTF-16LE\n" +
			"c working-tree-encoding=UTF-16\ni binary working-tree-encoding=UTF-16 eol=crlf\n",
	})
	type form struct {
		encoding textfile.Encoding
		bom      bool
	}
	for name, want := range map[string]form{
		"a": {textfile.Latin1, false}, "b": {textfile.UTF16BE, true}, "c": {textfile.UTF8, false}, "d": {}, "e": {},
		"f": {textfile.UTF16LE, true}, "g": {textfile.UTF16LE, true}, "h": {textfile.UTF16LE, false}, "i": {},
	} {
		got := ask(name)
		require.Equal(t, want, form{got.Encoding, got.BOM}, name)
	}
	require.Contains(t, ask("e").UnknownEncoding, "klingon")
	require.Equal(t, "\r\n", ask("f").Ending)
	require.Empty(t, ask("i").Ending)
}

func TestAttributes(t *testing.T) {
	ask := tree(t, map[string]string{
		".gitattributes":               "* eol=crlf\n",
		"root/.git/info/attributes":    "info.* eol=lf\n",
		"root/.gitattributes":          "*.bat eol=crlf\n\"with space.*\" eol=crlf\nsub/*.c eol=crlf\n**/deep/*.c eol=crlf\n!*.x eol=crlf\ndir/ eol=crlf\ninfo.* eol=crlf\n[attr]x eol=crlf\n*.{a,b} eol=crlf\n",
		"root/sub/.gitattributes":      "*.bat eol=lf\nlf.* -text\n",
		"root/other/.git":              "gitdir: elsewhere\n",
		"root/other/.gitattributes":    "*.c eol=lf\n",
		"root/both/.editorconfig":      "[*.bat]\nend_of_line=lf\n",
		"root/repeated/.gitattributes": "*.c eol=lf\n*.c !eol\n",
	})
	for name, want := range map[string]string{
		"x.bat": "\r\n", "a/b/x.bat": "\r\n", "sub/x.bat": "\n", "sub/a/x.bat": "\n", "with space.txt": "\r\n",
		"sub/x.c": "\r\n", "a/sub/x.c": "", "sub/a/x.c": "", "a/deep/x.c": "\r\n", "deep/x.c": "\r\n", "x.x": "", "dir/a": "",
		"info.bat": "\n", "other/x.bat": "", "other/x.c": "\n", "both/x.bat": "\n", "x.a": "", "x.{a,b}": "\r\n", "y": "",
	} {
		require.Equal(t, want, ask(name).Ending, name)
	}
}

// TestHostileFiles: files that an attacker fills with costly patterns do not
// make a call slow, and those for a usual repository are all read.
func TestHostileFiles(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	files, below := map[string]string{}, ""
	section := "[" + strings.Repeat("**", 500) + "b]\nend_of_line = lf\n"
	for range 60 {
		below += "a/"
		files["root/"+below+".editorconfig"] = strings.Repeat(section, 250)
	}
	files["root/many/.gitattributes"] = strings.Repeat("some/usual/name/*.txt eol=lf\n", 8000) + "*.c eol=crlf\n"
	ask := tree(t, files)
	require.Equal(t, "\r\n", ask("many/a/file/in/several/directories.c").Ending)
	answered := make(chan conventions.Settings, 1)
	go func() { answered <- ask(below + strings.Repeat("a", 250)) }()
	select {
	case got := <-answered:
		require.Empty(t, got.Ending)
	case <-time.After(time.Minute):
		require.Fail(t, "no answer within a minute")
	}
}

func FuzzFor(f *testing.F) {
	f.Add("[*.{a,b}]\nend_of_line = crlf\n", "*.c eol=lf\n", "x.a")
	f.Add("[{1..9}[!\\]a-]**]\ncharset=latin1", "\"a b\" -text\n[", "[]")
	// A shared tree for all runs: each run's roots would stay open until
	// garbage collection, and file descriptors are limited.
	root := f.TempDir()
	ask := treeIn(f, root, map[string]string{"root/.editorconfig": "", "root/.gitattributes": ""})
	f.Fuzz(func(t *testing.T, editor, git, name string) {
		if name == "" || len(name) > 200 || filepath.Base(name) != name || name == "." || name == ".." {
			return
		}
		if strings.ContainsAny(name, "\x00/") {
			return
		}
		require.NoError(t, os.WriteFile(filepath.Join(root, "root/.editorconfig"), []byte(editor), 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(root, "root/.gitattributes"), []byte(git), 0o644))
		require.Contains(t, []string{"", "\n", "\r\n", "\r"}, ask(name).Ending)
	})
}
