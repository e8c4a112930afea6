package index_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/tools/grep/index"
)

// tree is a directory of real files, accessed as by a search.
type tree struct {
	t    *testing.T
	rng  *rand.Rand
	root string
	dir  *sandbox.Dir
}

func newTree(t *testing.T) *tree {
	root := t.TempDir()
	fsys, err := sandbox.New(sandbox.Config{Roots: []string{root}}).FS(t.Context())
	require.NoError(t, err)
	dir, err := fsys.OpenDir(root)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dir.Close()) })
	return &tree{t: t, rng: rand.New(rand.NewPCG(6, 6)), root: root, dir: dir}
}

func (r *tree) path(name string) string { return filepath.Join(r.root, name) }

func (r *tree) write(name string, text []byte) {
	require.NoError(r.t, os.WriteFile(r.path(name), text, 0o600))
}

func (r *tree) key(name string) index.Key {
	st, err := r.dir.Lstat(name)
	require.NoError(r.t, err)
	return index.KeyOf(st)
}

func (r *tree) words(n int) []byte {
	f := fileSystem{rng: r.rng}
	return f.words(n)
}

// settle waits until the next write gets a later stamp than all so far. It
// replaces the two seconds, for which no test waits.
func (r *tree) settle() {
	r.write("stamp", nil)
	for before := r.key("stamp").ChangeTime; r.key("stamp").ChangeTime == before; {
		time.Sleep(time.Millisecond)
		r.write("stamp", []byte{'.'})
	}
}

// change changes a file like editors, version control and attackers.
func (r *tree) change(name string) string {
	path := r.path(name)
	st, err := os.Stat(path)
	require.NoError(r.t, err)
	text, err := os.ReadFile(path)
	require.NoError(r.t, err)
	restore := func() { require.NoError(r.t, os.Chtimes(path, st.ModTime(), st.ModTime())) }
	inPlace := func(edited []byte, at int64) {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		require.NoError(r.t, err)
		_, err = f.WriteAt(edited, at)
		require.NoError(r.t, err)
		require.NoError(r.t, f.Close())
	}
	other := append(r.words(12), bytes.Repeat([]byte{' '}, len(text))...)[:len(text)] // of the same length
	kind := r.rng.IntN(9)
	switch kind {
	case 0:
		inPlace(other, 0)
	case 1:
		inPlace(other, 0)
		restore()
	case 2:
		inPlace(r.words(2), int64(len(text)))
	case 3:
		require.NoError(r.t, os.Truncate(path, int64(r.rng.IntN(len(text)+1))))
		restore()
	case 4: // replaced by a new file with the same times
		r.write("new", other)
		require.NoError(r.t, os.Chtimes(r.path("new"), st.ModTime(), st.ModTime()))
		require.NoError(r.t, os.Rename(r.path("new"), path))
	case 5: // most likely in the old one's inode
		require.NoError(r.t, os.Remove(path))
		r.write(name, other)
		restore()
	case 6:
		second := fmt.Sprint(r.rng.IntN(realFiles))
		require.NoError(r.t, os.Rename(path, r.path("moved")))
		if second != name {
			require.NoError(r.t, os.Rename(r.path(second), path))
		}
		require.NoError(r.t, os.Rename(r.path("moved"), r.path(second)))
	case 7:
		require.NoError(r.t, os.Truncate(path, 0))
		inPlace(r.words(8), 0)
	case 8:
		future := time.Now().Add(time.Hour)
		inPlace(other, 0)
		require.NoError(r.t, os.Chtimes(path, future, future))
	}
	return fmt.Sprintf("%s changed by %d", name, kind)
}

const realFiles = 10

func TestNeverStaleOnDisk(t *testing.T) {
	r := newTree(t)
	for i := range realFiles {
		r.write(fmt.Sprint(i), r.words(8))
	}
	if k := r.key("0"); k.Ino == 0 {
		t.Skip("this system has no inodes, so that nothing is taken up")
	}
	x := index.New(1 << 20)
	var found [4]int
	for round := range 80 {
		var done []string
		r.settle()
		for range 1 + r.rng.IntN(3) {
			done = append(done, r.change(fmt.Sprint(r.rng.IntN(realFiles))))
		}
		for range 4 {
			word := modelWords[r.rng.IntN(len(modelWords))]
			q := queryFor(word)
			for i := range realFiles {
				name := fmt.Sprint(i)
				text, err := os.ReadFile(r.path(name))
				require.NoError(t, err)
				v := x.Lookup(r.key(name), q)
				found[v]++
				require.False(t, v == index.Missing && bytes.Contains(text, []byte(word)),
					"round %d, %v: %s holds %q: %q", round, done, name, word, text)
			}
		}
		for i := range realFiles {
			name := fmt.Sprint(i)
			text, st, err := r.dir.ReadFile(name, nil, 1<<20)
			require.NoError(t, err)
			x.Add(index.KeyOf(st), time.Now().Add(index.Settled+time.Second), text, false)
		}
	}
	for v, n := range found[:index.Binary] {
		require.Greater(t, n, 100, "the test meets verdict %d", v)
	}
}
