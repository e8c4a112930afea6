package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/tools/grep/index"
)

// settle waits until earlier changes are old enough for the index.
func settle() { time.Sleep(index.Settled + 200*time.Millisecond) }

// TestWarmAnswersAreFresh edits, renames, truncates and replaces files, sets
// their times back, and after each change compares a server with an index to
// one without.
func TestWarmAnswersAreFresh(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	if testing.Short() {
		t.Skip("waits for files to settle")
	}
	bin := mcpkittest.Build(t, "./tools/grep")
	root := t.TempDir()
	r := &edits{Rand: rand.New(rand.NewPCG(3, 4)), t: t, root: root}
	for range 60 {
		r.write(r.name())
	}
	warm := mcpkittest.Start(t, bin, "--no-state", root)
	cold := mcpkittest.Start(t, bin, "--no-state", "--no-index", root)
	for range 3 {
		settle()
		for range 3 { // the first call reads, then the builder works, the others use the index
			r.compare(warm, cold)
			time.Sleep(50 * time.Millisecond)
		}
		for range 60 {
			r.change()
			r.compare(warm, cold)
		}
	}
	require.Zero(t, warm.Close())
	require.Zero(t, cold.Close())
}

// edits changes the files of a tree at random.
type edits struct {
	*rand.Rand
	t    *testing.T
	root string
}

func (r *edits) name() string {
	return filepath.Join(r.root, fmt.Sprintf("d%d", r.IntN(3)), fmt.Sprintf("f%d", r.IntN(40)))
}

var editWords = [...]string{"alpha", "beta", "gamma", "Delta", "ſtraße", "KELVIN", "needle", "hay"}

func (r *edits) word() string { return editWords[r.IntN(len(editWords))] }

// content returns content of fixed length, so that only times and bytes differ.
func (r *edits) content() []byte {
	var b strings.Builder
	for range 4 {
		fmt.Fprintf(&b, "%-10s\n", r.word())
	}
	text := b.String()
	switch r.IntN(12) {
	case 0:
		return append([]byte{0}, text[1:]...)
	case 1:
		return utf16le(text)
	case 2:
		return []byte("-----BEGIN PRIVATE KEY-----\n" + text)
	}
	return []byte(text)
}

func (r *edits) write(name string) {
	require.NoError(r.t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(r.t, os.WriteFile(name, r.content(), 0o644))
}

// change makes one random change. It does nothing if its file does not exist.
func (r *edits) change() {
	name, other := r.name(), r.name()
	old, err := os.Stat(name)
	switch r.IntN(8) {
	case 0, 1:
		r.write(name)
	case 2: // in place, and the modification time set back
		r.write(name)
		if err == nil {
			require.NoError(r.t, os.Chtimes(name, old.ModTime(), old.ModTime()))
		}
	case 3: // a new inode with the old name and times
		r.write(name + "~")
		if err == nil {
			require.NoError(r.t, os.Chtimes(name+"~", old.ModTime(), old.ModTime()))
		}
		require.NoError(r.t, os.Rename(name+"~", name))
	case 4:
		_ = os.Rename(name, other)
	case 5: // deleted; its inode is free for the next file
		_ = os.Remove(name)
		r.write(other)
	case 6:
		_ = os.Truncate(name, int64(r.IntN(30)))
	case 7:
		_ = os.Remove(other)
		if os.Link(name, other) == nil && r.IntN(2) == 0 {
			f, err := os.OpenFile(other, os.O_WRONLY|os.O_APPEND, 0)
			require.NoError(r.t, err)
			fmt.Fprintln(f, r.word())
			require.NoError(r.t, f.Close())
		}
	}
}

func (r *edits) compare(warm, cold *mcpkittest.Client) {
	args := map[string]any{"pattern": r.word(), "sort": []string{"path", "mtime"}[r.IntN(2)], "-i": r.IntN(2) == 0, "-C": 0}
	if r.IntN(4) == 0 {
		args["output_mode"] = []string{modeFiles, modeCount}[r.IntN(2)]
	}
	want := cold.Call("grep", args)
	require.Equal(r.t, want.Text, warm.Call("grep", args).Text, "%v", args)
}

// TestWarmReadsLess: the second search reads no file that cannot match.
func TestWarmReadsLess(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for files to settle")
	}
	root := tree(t, "a=needle in hay\n", "b=hay\n", "c=hay\n", "bin=\x00\n", ".env=A=needle\n", "key=-----BEGIN PRIVATE KEY-----\nneedle\n")
	settle()
	g, fsys := newTest(t, DefaultConfig(), root)
	first, err := g.run(t.Context(), fsys, defaults("needle"))
	require.NoError(t, err)
	require.NoError(t, g.cache.waitIdle(t.Context()))
	if runtime.GOOS == "windows" {
		t.Skip("files have no numbers here")
	}
	known, _ := g.cache.index.Stats()
	require.Equal(t, 5, known, "not what is masked; of the key, that it has to be read")
	q, err := g.newQuery(t.Context(), fsys, defaults("needle"))
	require.NoError(t, err)
	f, err := q.searchTree(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, f.filesRead, "the one that matches, the key, and what is masked")
	require.Empty(t, f.unknown, "nothing is read behind the answer again")
	q, err = g.newQuery(t.Context(), fsys, defaults("need"))
	require.NoError(t, err)
	f, err = q.searchTree(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, f.filesRead, "what has matched is in memory")
	require.Equal(t, 1, f.matchingFiles)
	second, err := g.run(t.Context(), fsys, defaults("needle"))
	require.NoError(t, err)
	require.Equal(t, first.Text, second.Text)
}

// TestWhatIsKeptIsShownAsItIsRead: a text kept by the index gives the same
// answers as the file, at any offset.
func TestWhatIsKeptIsShownAsItIsRead(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for files to settle")
	}
	filler := strings.Repeat("neither this nor that\n", partSize/20)
	root := tree(t,
		"late.txt="+filler+filler+"needle\nneed le\n\n"+filler+"one more needle",
		"early.txt=needle\n"+filler+"needle needle\r\nafter\r\n",
		"wide.txt=\xff\xfex\x00\n\x00n\x00e\x00e\x00d\x00l\x00e\x00\n\x00",
		"mark.txt=\xef\xbb\xbfneedle\n",
		"vain.txt=eedle needl need dle",
		"vain.bin="+filler+"eedle needl need dle\x00needle",
		"bin=needle\n"+filler+"\x00",
		"key=-----BEGIN PRIVATE KEY-----\nneedle\n")
	settle()
	warm, fsys := newTest(t, DefaultConfig(), root)
	without := DefaultConfig()
	without.NoIndex = true
	cold, _ := newTest(t, without, root)
	number := func(n int) *int { return &n }
	for round := range 3 { // read, kept, shown
		for i, change := range []func(*arguments){
			func(*arguments) {},
			func(a *arguments) { a.Context = number(3) },
			func(a *arguments) { a.Before, a.Offset = number(2), 1 },
			func(a *arguments) { a.Offset, a.HeadLimit = 2, 2 },
			func(a *arguments) { a.Only = true },
			func(a *arguments) { a.Only, a.Offset = true, 3 },
			func(a *arguments) { a.MaxPerFile = 1 },
			func(a *arguments) { a.Path = "late.txt" },
			func(a *arguments) { a.Multiline, a.Pattern = true, `that\nneedle` },
			func(a *arguments) { a.Pattern = `\Aneedle|^one more needle$` },
			func(a *arguments) { a.IgnoreCase, a.OutputMode = true, modeCount },
			func(a *arguments) { a.OutputMode = modeFiles },
		} {
			args := defaults("needle")
			args.Sort = "path"
			change(&args)
			want, err := cold.run(t.Context(), fsys, args)
			require.NoError(t, err)
			got, err := warm.run(t.Context(), fsys, args)
			require.NoError(t, err)
			require.Equal(t, want.Text, got.Text, "round %d, %d", round, i)
			require.Equal(t, want.Meta, got.Meta, "round %d, %d", round, i)
			require.NoError(t, warm.cache.waitIdle(t.Context()))
		}
	}
	q, err := warm.newQuery(t.Context(), fsys, defaults("needle"))
	require.NoError(t, err)
	f, err := q.searchTree(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, f.filesRead, "the key")
}

// TestCloseEndsEverything: no work continues after the server's end, whatever
// was queued.
func TestCloseEndsEverything(t *testing.T) {
	root := tree(t, "a=hit\n", "b=hit\n")
	before := runtime.NumGoroutine()
	g, fsys := newTest(t, DefaultConfig(), root)
	for range 3 {
		_, err := g.run(t.Context(), fsys, defaults("hit"))
		require.NoError(t, err)
	}
	g.close()
	allEnd := func() { // a goroutine that has signalled its end is still counted for a moment
		for deadline := time.Now().Add(mcpkittest.MaxWait); runtime.NumGoroutine() > before && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		require.LessOrEqual(t, runtime.NumGoroutine(), before)
	}
	allEnd()
	_, err := g.run(t.Context(), fsys, defaults("hit"))
	require.NoError(t, err, "a call that comes late is still answered")
	allEnd()
}
