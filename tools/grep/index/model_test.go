package index_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/tools/grep/index"
	"github.com/toolroom-mcp/toolroom/tools/grep/search"
)

// fileSystem is a model of a file system: names, reused inodes, and a clock
// that stamps in steps.
type fileSystem struct {
	rng   *rand.Rand
	clock int64 // ns
	step  int64 // of the stamps
	files map[string]*node
	freed []uint64
	last  uint64 // inode
}

type node struct {
	key  index.Key
	text []byte
}

// stamp marks a change: n's change time is now.
func (f *fileSystem) stamp(n *node) int64 {
	n.key.ChangeTime = f.clock - f.clock%f.step
	n.key.Size = int64(len(n.text))
	return n.key.ChangeTime
}

func (f *fileSystem) write(n *node, text []byte) {
	n.text = text
	n.key.ModTime = f.stamp(n)
}

func (f *fileSystem) create(name string) *node {
	f.remove(name)
	n := &node{key: index.Key{Dev: 1}}
	if len(f.freed) > 0 { // the last one freed, as most do
		n.key.Ino, f.freed = f.freed[len(f.freed)-1], f.freed[:len(f.freed)-1]
	} else {
		f.last++
		n.key.Ino = f.last
	}
	f.files[name] = n
	f.write(n, f.words(f.rng.IntN(12)))
	return n
}

func (f *fileSystem) remove(name string) {
	if n := f.files[name]; n != nil {
		f.freed = append(f.freed, n.key.Ino)
		delete(f.files, name)
	}
}

// words makes text of so few words that texts of the same size often differ in
// their words.
func (f *fileSystem) words(n int) []byte {
	var text []byte
	for range n {
		text = append(text, modelWords[f.rng.IntN(len(modelWords))]...)
		text = append(text, " \n."[f.rng.IntN(3)])
	}
	return text
}

var modelWords = []string{"alpha", "alphA", "bravo", "brava", "kilos", "KILOS", "\u212ailos", "kilo\u017f", "delta", "dlate", "xyz"}

// change makes one change that a program could make.
func (f *fileSystem) change() {
	names := slices.Sorted(maps.Keys(f.files))
	name := names[f.rng.IntN(len(names))]
	n := f.files[name]
	edited := slices.Clone(n.text)
	switch f.rng.IntN(9) {
	case 0: // edit within, the same size
		if len(edited) > 6 {
			copy(edited[f.rng.IntN(len(edited)-5):], "alpha")
		}
		f.write(n, edited)
	case 1: // the same, and the modification time set back
		old := n.key.ModTime
		slices.Reverse(edited)
		f.write(n, edited)
		n.key.ModTime = old
		f.stamp(n)
	case 2:
		f.write(n, append(edited, f.words(1)...))
	case 3:
		f.write(n, edited[:f.rng.IntN(len(edited)+1)])
	case 4: // replaced by another file
		f.create("temporary")
		f.files["temporary"].key.ModTime = n.key.ModTime
		f.rename("temporary", name)
	case 5: // two files are swapped
		other := names[f.rng.IntN(len(names))]
		f.files[name], f.files[other] = f.files[other], n
		f.stamp(n)
		f.stamp(f.files[name])
	case 6: // a new file, most likely in the old inode
		f.create(name)
	case 7: // with the same size and modification time
		old := n.key
		m := f.create(name)
		slices.Reverse(edited)
		f.write(m, edited)
		m.key.ModTime = old.ModTime
	case 8:
		n.key.ModTime = f.clock + f.rng.Int64N(2e9) - 1e9
		f.stamp(n)
	}
}

func (f *fileSystem) rename(from, to string) {
	n := f.files[from]
	f.remove(to)
	delete(f.files, from)
	f.files[to] = n
	f.stamp(n)
}

func (f *fileSystem) tick() {
	f.clock += []int64{0, 0, 1, 1e6, 4e6, 5e8, 1e9, 2e9, 3e9}[f.rng.IntN(9)]
}

// check requires that no present text is Missing. DirLookup must give the same
// verdicts, from a page whose positions sometimes belong to other files.
func (f *fileSystem) check(t *testing.T, x *index.Index, page index.Page, step int, found *[4]int) {
	t.Helper()
	word := modelWords[f.rng.IntN(len(modelWords))]
	fold := f.rng.IntN(2) == 0
	if fold {
		word = strings.NewReplacer("\u212a", "k", "\u017f", "s").Replace(asciiLower(word))
	}
	q := index.NewQuery([][]search.Literal{{{Text: []byte(word), Fold: fold}}})
	ahead := x.NewDirLookup(q)
	ahead.SwitchDir(page)
	names := slices.Sorted(maps.Keys(f.files))
	if f.rng.IntN(3) == 0 {
		f.rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	}
	for place, name := range names {
		n := f.files[name]
		text := string(n.text)
		if fold {
			text = strings.NewReplacer("\u212a", "k", "\u017f", "s").Replace(asciiLower(text))
		}
		v := x.Lookup(n.key, q)
		require.Equal(t, v, ahead.Lookup(place, n.key), "step %d: %s", step, name)
		found[v]++
		require.False(t, v == index.Missing && strings.Contains(text, word), "step %d: %s holds %q: %q", step, name, word, n.text)
	}
}

// No answer is stale, for any changes between searches and any resolution of
// stamps.
func TestNeverStaleModel(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	for seed, step := range []int64{1, 1e6, 4e6, 1e9, 2e9} {
		f := &fileSystem{rng: rand.New(rand.NewPCG(uint64(seed), 9)), clock: 1e18, step: step, files: map[string]*node{}}
		for range 12 {
			f.create(string(rune('a' + len(f.files))))
		}
		x := index.New(6 << 10) // so small that files are dropped
		page := index.NewPage(12)
		var found [4]int
		for i := range 6000 {
			f.tick()
			if f.rng.IntN(3) == 0 {
				f.change()
			}
			for _, n := range f.files { // as a search and a builder do
				if f.rng.IntN(4) == 0 {
					x.Add(n.key, time.Unix(0, f.clock), n.text, false)
				}
			}
			if f.rng.IntN(3) == 0 {
				f.change()
			}
			f.check(t, x, page, i, &found)
		}
		for v, n := range found[:index.Binary] {
			require.Greater(t, n, 500, "the test meets verdict %d", v)
		}
	}
}
