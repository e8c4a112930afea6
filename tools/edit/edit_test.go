package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// fixture is a root with a tool that serves it in this process.
type fixture struct {
	t    testing.TB
	root string
	kept state.Config
	tool *mcpkit.Tool
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	f := &fixture{t: t, root: root, kept: state.Config{Dir: t.TempDir()}}
	served, err := newTools(sandbox.Config{Roots: []string{f.root}}, f.kept, Config{})
	require.NoError(t, err)
	f.tool = served[0]
	return f
}

func (f *fixture) file(name string) string { return filepath.Join(f.root, name) }

func (f *fixture) write(name string, data []byte) {
	f.t.Helper()
	require.NoError(f.t, os.WriteFile(f.file(name), data, 0o644))
}

func (f *fixture) read(name string) []byte {
	f.t.Helper()
	data, err := os.ReadFile(f.file(name))
	require.NoError(f.t, err)
	return data
}

func (f *fixture) call(args map[string]any) *mcpkit.CallResult {
	f.t.Helper()
	raw, err := json.Marshal(args)
	require.NoError(f.t, err)
	return f.tool.Call(context.Background(), raw)
}

// edit makes one edit, which must succeed.
func (f *fixture) edit(name, old, newText string) (string, meta) {
	f.t.Helper()
	return f.done(map[string]any{"file_path": name, "old_string": old, "new_string": newText})
}

func (f *fixture) done(args map[string]any) (string, meta) {
	f.t.Helper()
	res := f.call(args)
	require.False(f.t, res.IsError, res.Text)
	var m meta
	require.NoError(f.t, json.Unmarshal(res.Details, &m))
	return res.Text, m
}

func TestDescriptionIsShort(t *testing.T) {
	require.LessOrEqual(t, len(description), 1536)
}

// TestFreshByContent: view and edit are two processes that share a state
// directory. The viewed version is compared by content: a change elsewhere does
// not matter, a change of the edited lines does.
func TestFreshByContent(t *testing.T) {
	f := newFixture(t)
	view := mcpkittest.Start(t, mcpkittest.Build(t, "./tools/view"), f.root, "--state", f.kept.Dir)
	edit := mcpkittest.Start(t, mcpkittest.Build(t, "./tools/edit"), f.root, "--state", f.kept.Dir)
	const elsewhere = "note: the file also changed elsewhere"
	const before = "alpha\nbeta\ngamma\ndelta\nepsilon\nzeta\n"
	for _, c := range []struct {
		name, now string // the file after somebody else's change
		old, new  string
		etag      bool // send the etag that view returned
		want      toolerr.Code
		says      string
	}{
		{"unchanged", before, "beta", "BETA", false, "", ""},
		{"unchanged, with etag", before, "beta", "BETA", true, "", ""},
		{"changed elsewhere", "alpha\nbeta\ngamma\ndelta\nepsilon\nzeta!\n", "beta", "BETA", false, "", elsewhere},
		{"changed elsewhere, with etag", "new\nalpha\nbeta\ngamma\ndelta\nepsilon\nzeta\n", "beta", "BETA", true, "", elsewhere},
		{"changed there", "alpha\nbeta 2\ngamma\ndelta\nepsilon\nzeta\n", "beta", "BETA", false, toolerr.Stale, "beta 2"},
		{"changed there, with etag", "alpha\nbeta 2\ngamma\ndelta\nepsilon\nzeta\n", "beta", "BETA", true, toolerr.Stale, "beta 2"},
		{"gone", "alpha\ngamma\ndelta\nepsilon\nzeta\n", "beta", "BETA", false, toolerr.NoMatch, "changed since you viewed it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f.write(c.name, []byte(before))
			seen := view.Call("view", map[string]any{"file_path": c.name})
			require.False(t, seen.IsError, seen.Text)
			f.write(c.name, []byte(c.now))
			args := map[string]any{"file_path": c.name, "old_string": c.old, "new_string": c.new}
			if c.etag {
				args["etag"] = seen.Meta["etag"]
			}
			got := edit.Call("edit", args)
			require.Equal(t, string(c.want), got.Code, got.Text)
			require.Contains(t, got.Text, c.says)
			require.Equal(t, c.says == elsewhere, strings.Contains(got.Text, elsewhere), got.Text)
			if c.want != "" {
				require.Equal(t, c.now, string(f.read(c.name)))
			}
			if c.want == toolerr.Stale { // with the etag in the error, the edit succeeds
				args["etag"] = got.Meta["etag"]
				got = edit.Call("edit", args)
				require.False(t, got.IsError, got.Text)
				require.NotContains(t, got.Text, elsewhere, "it is known")
			}
		})
	}

	f.write("never", []byte(before))
	got := edit.Call("edit", map[string]any{"file_path": "never", "old_string": "beta", "new_string": "BETA"})
	require.False(t, got.IsError, "a file never viewed may be edited: %s", got.Text)
	require.Equal(t, textfile.EtagOf(f.read("never")).String(), got.Meta["etag"])
	got = edit.Call("edit", map[string]any{"file_path": "never", "old_string": "BETA", "new_string": "b", "etag": got.Meta["etag"]})
	require.False(t, got.IsError, "the etag that an edit tells is good for the next: %s", got.Text)
}

// TestUndoOnlyWhatIsThere: undo does not revert somebody else's change.
func TestUndoOnlyWhatIsThere(t *testing.T) {
	f := newFixture(t)
	f.write("a.txt", []byte("one\ntwo\n"))
	f.edit("a.txt", "one", "1")
	f.write("a.txt", []byte("1\ntwo\nthree\n"))
	res := f.call(map[string]any{"file_path": "a.txt", "undo": true})
	require.Equal(t, toolerr.Stale, res.Code, res.Text)
	require.Equal(t, "1\ntwo\nthree\n", string(f.read("a.txt")))
	f.write("a.txt", []byte("1\ntwo\n"))
	f.done(map[string]any{"file_path": "a.txt", "undo": true})
	require.Equal(t, "one\ntwo\n", string(f.read("a.txt")), "as it was written again, it can be")
}

// TestWithoutState: everything except undo works the same.
func TestWithoutState(t *testing.T) {
	f := newFixture(t)
	served, err := newTools(sandbox.Config{Roots: []string{f.root}}, state.Config{Disabled: true}, Config{})
	require.NoError(t, err)
	f.tool = served[0]
	f.write("a.txt", []byte("one\n"))
	text, _ := f.edit("a.txt", "one", "two")
	require.Contains(t, text, "note: no undo")
	require.Equal(t, "two\n", string(f.read("a.txt")))
	res := f.call(map[string]any{"file_path": "a.txt", "undo": true})
	require.True(t, res.IsError)
}

// TestKeepsWhatTheFileIs: the mode, and bytes that are not text, are kept.
func TestKeepsWhatTheFileIs(t *testing.T) {
	f := newFixture(t)
	f.write("a.sh", []byte("#!/bin/sh\r\necho \xff\xfe caf\xc3\xa9 and more words in UTF-8: \xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\n\techo b"))
	require.NoError(t, os.Chmod(f.file("a.sh"), 0o751))
	f.edit("a.sh", "echo b", "echo c")
	require.Equal(t, "#!/bin/sh\r\necho \xff\xfe caf\xc3\xa9 and more words in UTF-8: \xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\n\techo c", string(f.read("a.sh")))
	info, err := os.Stat(f.file("a.sh"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o751), info.Mode().Perm())
}

// TestNamesTheOtherHardLinks: an edit says how many hard links keep the old content.
func TestNamesTheOtherHardLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("hard links are not recognized there")
	}
	f := newFixture(t)
	f.write("a.txt", []byte("one\n"))
	require.NoError(t, os.Link(f.file("a.txt"), f.file("b.txt")))
	require.NoError(t, os.Link(f.file("a.txt"), f.file("c.txt")))
	text, _ := f.edit("a.txt", "one", "two")
	require.Contains(t, text, "2 other hard links still have the old content: ")
	text, _ = f.edit("b.txt", "one", "two")
	require.Contains(t, text, "1 other hard link still has the old content: ")
}

// TestLongLines: a diff of enormous lines stays within the budget.
func TestLongLines(t *testing.T) {
	f := newFixture(t)
	line := make([]byte, 3<<20)
	for i := range line {
		line[i] = "abcdefghijklmnopqrstuvwxyz "[i%27]
	}
	copy(line[1<<20:], "NEEDLE")
	f.write("min.js", append(append([]byte("x\n"), line...), "\ny\n"...))
	text, m := f.edit("min.js", "NEEDLE", "needle")
	require.Less(t, len(text), 4*mcpkit.DefaultMaxTokens)
	require.Contains(t, text, "needle")
	require.Equal(t, []int{2}, m.Lines)

	var many, newText []byte
	for range 200 {
		many = append(append(many, line[:1500]...), '\n')
	}
	f.write("many", many)
	newText = append(newText, many...)
	for i := 0; i < len(newText); i += 1501 {
		newText[i] = 'X'
	}
	text, _ = f.edit("many", string(many), string(newText))
	require.Less(t, len(text), 4*mcpkit.DefaultMaxTokens)
	require.Contains(t, text, "diff cut")
	require.Equal(t, string(newText), string(f.read("many")))
}

// TestLateNULs: a log may have NULs far from its beginning and is text. A
// change that moves them near the beginning, where they make a file binary, is
// refused: no later edit would be possible, not even to remove them.
func TestLateNULs(t *testing.T) {
	for _, size := range []int{200 << 10, 9 << 20} {
		f := newFixture(t)
		head := "begin\n" + strings.Repeat("a line of a log\n", size/16)
		before := head + "crashed\x00\x00\nup again\n" + strings.Repeat("more\n", 2000)
		f.write("log", []byte(before))
		args := map[string]any{"file_path": "log", "old_string": head, "new_string": "cut\n"}
		res := f.call(args)
		require.Equal(t, toolerr.BinaryFile, res.Code, res.Text)
		require.Contains(t, res.Text, fmt.Sprintf("2 NUL characters, from line %d on", size/16+2))
		require.Equal(t, before, string(f.read("log")))

		f.edit("log", "crashed\x00\x00\n", "crashed\n")
		f.done(args)
		require.Equal(t, "cut\ncrashed\nup again\n", string(f.read("log")[:21]))
		f.edit("log", "crashed", "stopped")
	}
}

// A change in a long line is shown once, with 200 characters around it,
// whatever its surroundings.
func TestAChangeInALongLineIsShort(t *testing.T) {
	f := newFixture(t)
	words := strings.Repeat("some words ", 600)
	encoded, err := textfile.UTF16LE.Encode("\ufeff" + words + "NEEDLE" + words)
	require.NoError(t, err)
	utf16 := string(encoded)
	notebook := `{"cells":[{"cell_type":"code","source":["` + strings.Repeat(`print(\"x\")\n`, 700) + `NEEDLE"]}]}`
	for name, content := range map[string]string{
		"line.txt":    "a\n" + words + "NEEDLE" + words + "\nb\n",
		"around.txt":  strings.Repeat(words+"\n", 3) + "NEEDLE\n" + strings.Repeat(words+"\n", 3),
		"all.txt":     strings.Repeat(words+"\n", 3) + words + "NEEDLE\n" + strings.Repeat(words+"\n", 3),
		"cell.ipynb":  notebook,
		"utf16.txt":   utf16,
		"crlf.txt":    words + "NEEDLE\r\n" + words + "\r\n",
		"nothing.txt": "NEEDLE" + words,
	} {
		f.write(name, []byte(content))
		for _, dry := range []bool{true, false} {
			res := f.call(map[string]any{"file_path": name, "old_string": "NEEDLE", "new_string": "NEEDLES", "dry_run": dry})
			require.False(t, res.IsError, res.Text)
			require.Less(t, len(res.Text), 1200, "%s: %s", name, res.Text)
			require.Equal(t, 1, strings.Count(res.Text, "NEEDLES"), "%s: %s", name, res.Text)
		}
		res := f.call(map[string]any{"file_path": name, "old_string": words[:300] + "none", "new_string": "x"})
		require.Equal(t, "NO_MATCH", string(res.Code))
		require.Less(t, len(res.Text), 2000, "%s: %s", name, res.Text)
	}
	// A text of several lines is matched line by line.
	res := f.call(map[string]any{"file_path": "around.txt", "old_string": words + "\nNEEDLE\n" + words + "\n", "new_string": "x"})
	require.Equal(t, "NO_MATCH", string(res.Code))
	require.Less(t, len(res.Text), 2500, res.Text)
}

// The answer to an ordinary edit has at most 500 bytes.
func TestAnOrdinaryAnswerIsShort(t *testing.T) {
	f := newFixture(t)
	line := func(i int) string {
		return fmt.Sprintf("\t// line %d is one of many that explain how a server takes a connection.\n", i)
	}
	var content strings.Builder
	for i := range 2000 {
		content.WriteString(line(i))
	}
	f.write("server.go", []byte(content.String()))
	text, _ := f.edit("server.go", line(1000), "\t// changed, and explains how a server takes a connection it did not ask.\n")
	require.Less(t, len(text), 420)
	require.Contains(t, text, line(999))
	require.Contains(t, text, "-"+line(1000)+"+\t// changed")
	require.Contains(t, text, line(1001))

	f.write("short.txt", []byte("a\nb\nc\nd\ne\nf\ng\nh\n"))
	text, _ = f.edit("short.txt", "e", "E")
	require.Contains(t, text, "@@ -2,7 +2,7 @@\n b\n c\n d\n-e\n+E\n f\n g\n h\n", "three lines of context, as they are short")
}

// Each of the first changes in a long line is shown.
func TestSeveralChangesInALongLine(t *testing.T) {
	f := newFixture(t)
	words := strings.Repeat("some words ", 600)
	f.write("line.txt", []byte("a\n"+strings.Repeat(words+"NEEDLE", 3)+words+"\nb\n"))
	f.write("many.txt", []byte(strings.Repeat(words+"NEEDLE", 40)))
	for name, want := range map[string]int{"line.txt": 3, "many.txt": 5} {
		res := f.call(map[string]any{"file_path": name, "old_string": "NEEDLE", "new_string": "PINS", "replace_all": true})
		require.False(t, res.IsError, res.Text)
		require.Equal(t, want, strings.Count(res.Text, "PINS"), res.Text)
		require.Equal(t, want, strings.Count(res.Text, "NEEDLE"), res.Text)
		require.Less(t, len(res.Text), 1500, res.Text)
	}
	res := f.call(map[string]any{"file_path": "line.txt", "dry_run": true, "edits": []map[string]any{
		{"old_string": "a\nsome words some", "new_string": "a\nONE some"}, {"old_string": "words \nb", "new_string": "TWO \nb"},
	}})
	require.False(t, res.IsError, res.Text)
	require.Contains(t, res.Text, "\n+ONE some")
	require.Contains(t, res.Text, "some TWO \n")
}
