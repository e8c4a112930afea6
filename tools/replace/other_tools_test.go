package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// room is a root served by several tools, each in a separate process, with a
// shared state directory.
type room struct {
	t       *testing.T
	root    string
	state   string
	clients map[string]*mcpkittest.Client
}

func newRoom(t *testing.T, names ...string) *room {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	r := &room{t: t, root: root, state: t.TempDir(), clients: map[string]*mcpkittest.Client{}}
	for _, name := range names {
		r.clients[name] = mcpkittest.Start(t, mcpkittest.Build(t, "./tools/"+name), root, "--state", r.state)
	}
	return r
}

func (r *room) put(name, content string) {
	r.t.Helper()
	require.NoError(r.t, os.WriteFile(filepath.Join(r.root, name), []byte(content), 0o644))
}

func (r *room) content(name string) string {
	r.t.Helper()
	data, err := os.ReadFile(filepath.Join(r.root, name))
	require.NoError(r.t, err)
	return string(data)
}

type args = map[string]any

// ok calls a tool, which must succeed, and returns its text.
func (r *room) ok(tool string, a args) string {
	r.t.Helper()
	got := r.clients[tool].Call(tool, a)
	require.False(r.t, got.IsError, got.Text)
	return got.Text
}

// refused calls a tool, which must fail with a code, and returns its text.
func (r *room) refused(code toolerr.Code, tool string, a args) string {
	r.t.Helper()
	got := r.clients[tool].Call(tool, a)
	require.True(r.t, got.IsError, got.Text)
	require.Equal(r.t, string(code), got.Code, got.Text)
	return got.Text
}

// TestChangedSinceItWasViewed: the error shows the change and the etag to
// continue with, and both suggested ways to continue work.
func TestChangedSinceItWasViewed(t *testing.T) {
	r := newRoom(t, "view", "replace")
	var lines []string
	for _, letter := range strings.Split("abcdefghijklmnopqrst", "") {
		lines = append(lines, "line "+letter)
	}
	r.put("a.txt", strings.Join(lines, "\n")+"\n")
	r.ok("view", args{"file_path": "a.txt"})
	lines[9] = "changed by somebody"
	lines = append(lines[:14], lines[15:]...)
	lines = append(lines, "added at the end")
	theirs := strings.Join(lines, "\n") + "\n"
	r.put("a.txt", theirs)
	text := r.refused(toolerr.Stale, "replace", args{"file_path": "a.txt", "content": "mine\n"})
	require.Equal(t, theirs, r.content("a.txt"))
	require.Contains(t, text, `Since you viewed it (+2 -2 lines):
@@ line 10 @@
 line h
 line i
-line 10 as you viewed it (text not recorded)
+changed by somebody
 line k
 line l
@@ before line 15 @@
 line m
 line n
-line 15 as you viewed it (text not recorded)
 line p
 line q
@@ line 20 @@
 line s
 line t
+added at the end`)
	etag := regexp.MustCompile(`again with etag=([0-9a-f]{8})`).FindStringSubmatch(text)
	require.NotNil(t, etag, text)
	r.ok("replace", args{"file_path": "a.txt", "content": "mine and theirs\n", "etag": etag[1]})
	require.Equal(t, "mine and theirs\n", r.content("a.txt"))

	r.put("a.txt", "theirs again\n")
	r.refused(toolerr.Stale, "replace", args{"file_path": "a.txt", "content": "mine\n"})
	require.Contains(t, r.ok("replace", args{"file_path": "a.txt", "content": "mine\n", "overwrite": true}), "undo=true")
	require.Equal(t, "mine\n", r.content("a.txt"))

	// A changed modification time alone does not make a file stale.
	later := time.Now().Add(time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(r.root, "a.txt"), later, later))
	require.NotContains(t, r.ok("replace", args{"file_path": "a.txt", "content": "mine too\n"}), "note:")

	// After another view, the file is fresh again.
	r.put("a.txt", "once more\n")
	r.ok("view", args{"file_path": "a.txt"})
	require.NotContains(t, r.ok("replace", args{"file_path": "a.txt", "content": "mine\n"}), "note:")
}

// TestOnlyPartsWereViewed: the answer says so if lines that were never shown
// may have changed.
func TestOnlyPartsWereViewed(t *testing.T) {
	r := newRoom(t, "view", "replace")
	lines := strings.Split(strings.TrimSpace(strings.Repeat("the same line\n", 30)), "\n")
	for i := range lines {
		lines[i] += strings.Repeat("!", i)
	}
	before := strings.Join(lines, "\n") + "\n"
	r.put("a.txt", before)
	r.ok("view", args{"file_path": "a.txt", "offset": 10, "limit": 5})
	r.put("a.txt", strings.Replace(before, lines[11]+"\n", "new\n", 1))
	text := r.refused(toolerr.Stale, "replace", args{"file_path": "a.txt", "content": "x\n"})
	require.Contains(t, text, "-line 12 as you viewed it (text not recorded)\n+new\n")
	require.Contains(t, text, "others may differ too")

	r.put("b.txt", before)
	r.ok("view", args{"file_path": "b.txt", "offset": 10, "limit": 5})
	r.put("b.txt", strings.Replace(before, lines[20]+"\n", "new\n", 1))
	text = r.refused(toolerr.Stale, "replace", args{"file_path": "b.txt", "content": "x\n"})
	require.Contains(t, text, "not in the lines you viewed")
}

// TestEditAndReplace: each tool knows the content that the other wrote, and
// undo reverts the writes of both.
func TestEditAndReplace(t *testing.T) {
	r := newRoom(t, "view", "edit", "replace")
	r.put("a.txt", "zero\n")
	r.ok("replace", args{"file_path": "a.txt", "content": "one\ntwo\n"})
	r.ok("edit", args{"file_path": "a.txt", "old_string": "two", "new_string": "2"})
	r.ok("replace", args{"file_path": "a.txt", "content": "one\n2\nthree\n"})
	r.ok("edit", args{"file_path": "a.txt", "old_string": "three", "new_string": "3"})
	for _, want := range []string{"one\n2\nthree\n", "one\n2\n", "one\ntwo\n", "zero\n"} {
		r.ok("edit", args{"file_path": "a.txt", "undo": true})
		require.Equal(t, want, r.content("a.txt"))
	}
	r.refused(toolerr.NotFound, "edit", args{"file_path": "a.txt", "undo": true})

	r.ok("replace", args{"file_path": "made/b.txt", "content": "x\n"})
	r.ok("edit", args{"file_path": "made/b.txt", "undo": true})
	require.NoFileExists(t, filepath.Join(r.root, "made", "b.txt"))

	// An edit next to a change that nobody viewed does not make that change
	// viewed.
	r.put("c.txt", "one\ntwo\nthree\nfour\n")
	r.ok("view", args{"file_path": "c.txt"})
	r.put("c.txt", "ONE\ntwo\nthree\nfour\n")
	r.ok("edit", args{"file_path": "c.txt", "old_string": "four", "new_string": "4"})
	text := r.refused(toolerr.Stale, "replace", args{"file_path": "c.txt", "content": "one\n"})
	require.Contains(t, text, "+ONE")
	r.ok("edit", args{"file_path": "c.txt", "old_string": "4\n", "new_string": "IV\n"})
}

// TestHiddenValues: the masked content of a .env file, as view shows it, can be
// written back.
func TestHiddenValues(t *testing.T) {
	r := newRoom(t, "view", "replace")
	const secret = "# x\nA=one two # why\nexport B='two\nlines'\nC=\"\"\nD = three\n"
	r.put(".env", secret)
	var shown strings.Builder
	for line := range strings.Lines(r.ok("view", args{"file_path": ".env"})) {
		if _, text, ok := strings.Cut(line, "\t"); ok {
			shown.WriteString(text)
		}
	}
	require.Contains(t, r.ok("replace", args{"file_path": ".env", "content": shown.String()}), "unchanged")
	require.Equal(t, secret, r.content(".env"))
	r.ok("replace", args{"file_path": ".env", "content": shown.String() + "E=new\n"})
	require.Equal(t, secret+"E=new\n", r.content(".env"))
	r.put(".env", "A=changed\n")
	text := r.refused(toolerr.Stale, "replace", args{"file_path": ".env", "content": "A=1\n"})
	require.NotContains(t, text, "changed\n")
	require.NotContains(t, text, "etag")
}

// TestWithoutState: without state, everything works except staleness checks and
// undo.
func TestWithoutState(t *testing.T) {
	r := newRoom(t)
	c := mcpkittest.Start(t, mcpkittest.Build(t, "./tools/replace"), r.root, "--no-state")
	r.put("a.txt", "one\n")
	text := c.Call("replace", args{"file_path": "a.txt", "content": "two\n"}).Text
	require.Contains(t, text, "note: no undo: no state is kept (--no-state)")
	require.NotContains(t, text, "undo=true")
	r.put("a.txt", "three\n")
	require.Contains(t, c.Call("replace", args{"file_path": "a.txt", "content": "four\n"}).Text, "-three")
}

// TestTwoRoots: paths in the second root are absolute, a root with :ro is not
// written, and links between the roots are followed.
func TestTwoRoots(t *testing.T) {
	r := newRoom(t)
	second, closed := t.TempDir(), t.TempDir()
	require.NoError(t, os.Symlink(filepath.Join(second, "b.txt"), filepath.Join(r.root, "to-second")))
	require.NoError(t, os.Symlink(filepath.Join(closed, "b.txt"), filepath.Join(r.root, "to-closed")))
	r.clients["replace"] = mcpkittest.Start(t, mcpkittest.Build(t, "./tools/replace"),
		"--root", r.root, "--root", second, "--root", closed+":ro", "--state", r.state)
	require.Contains(t, r.ok("replace", args{"file_path": filepath.Join(second, "sub", "a.txt"), "content": "x\n"}),
		"note: created the directory "+filepath.ToSlash(filepath.Join(second, "sub")))
	r.ok("replace", args{"file_path": "to-second", "content": "y\n"})
	data, err := os.ReadFile(filepath.Join(second, "b.txt"))
	require.NoError(t, err)
	require.Equal(t, "y\n", string(data))
	r.refused(toolerr.ReadOnly, "replace", args{"file_path": filepath.Join(closed, "a.txt"), "content": "x\n"})
	r.refused(toolerr.ReadOnly, "replace", args{"file_path": "to-closed", "content": "x\n"})
	r.refused(toolerr.DeniedPath, "replace", args{"file_path": ".codex/config.toml", "content": "x\n"})
}

// TestOwnStateIsProtected: the state directory cannot be written, even if it is
// in a root.
func TestOwnStateIsProtected(t *testing.T) {
	r := newRoom(t)
	c := mcpkittest.Start(t, mcpkittest.Build(t, "./tools/replace"), r.root, "--state", filepath.Join(r.root, "state"))
	got := c.Call("replace", args{"file_path": "state/seen-1/x", "content": "x"})
	require.Equal(t, string(toolerr.DeniedPath), got.Code, got.Text)
}

// TestModeIsKept: the mode is kept, even of a file that others may not read.
func TestModeIsKept(t *testing.T) {
	r := newRoom(t, "replace")
	r.put("a.txt", "one\n")
	file := filepath.Join(r.root, "a.txt")
	require.NoError(t, os.Chmod(file, 0o640))
	r.ok("replace", args{"file_path": "a.txt", "content": "two\n"})
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), info.Mode().Perm())
}

// TestLongAnswers: a diff of long lines, or of many lines, is truncated.
func TestLongAnswers(t *testing.T) {
	r := newRoom(t, "replace")
	r.put("a.txt", strings.Repeat(strings.Repeat("x", 5000)+"\n", 500))
	text := r.ok("replace", args{"file_path": "a.txt", "content": strings.Repeat(strings.Repeat("y", 5000)+"\n", 500)})
	require.Less(t, len(text), 24<<10)
	require.Contains(t, text, "more diff lines; +500 -500 in total)")
	body := 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "-x") || strings.HasPrefix(line, "+y") {
			body++
		}
	}
	require.LessOrEqual(t, body, 40)
}

// Equal calls have equal answers: the error names the first wrong line.
func TestRefusalsOfHiddenValuesAreTheSame(t *testing.T) {
	r := newRoom(t, "replace")
	r.put(".env", "A=1\nB=2\nC=3\nD=4\n")
	for range 20 {
		got := r.refused(toolerr.DeniedPath, "replace", args{"file_path": ".env", "content": "K=\"\"\"\nA=***\nB=***\nC=***\nD=***\n\"\"\"\n", "dry_run": true})
		require.Contains(t, got, "line 2 of content")
	}
}
