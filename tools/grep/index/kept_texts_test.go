package index_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/tools/grep/index"
	"github.com/toolroom-mcp/toolroom/tools/grep/search"
)

func aSearch() *index.Query { return index.NewQuery([][]search.Literal{anyOf("text")}) }

// look looks up one file in a new search, and returns its kept text.
func look(x *index.Index, k index.Key) (*index.DirLookup, []byte) {
	a := x.NewDirLookup(aSearch())
	a.Lookup(0, k)
	return a, a.Text()
}

func TestTextsAreOfTheirVersion(t *testing.T) {
	x := index.New(64 << 20)
	text := []byte("needle in hay\n")
	k := settledKey(1, text)
	a, kept := look(x, k)
	require.Nil(t, kept)
	a.KeepText(k, text)
	_, kept = look(x, k)
	require.Nil(t, kept, "a file that is not taken up may still change unseen")

	x.Add(k, now(), text, false)
	a, _ = look(x, k)
	other := k
	other.ChangeTime++
	a.KeepText(other, text)
	a.KeepText(k, text[1:])
	_, kept = look(x, k)
	require.Nil(t, kept, "read of another version, or cut")

	a.KeepText(k, text)
	text[0] = 'N'
	_, kept = look(x, k)
	require.Equal(t, "needle in hay\n", string(kept), "a copy")
	_, kept = look(x, other)
	require.Nil(t, kept, "another version")
	x.Add(other, now(), text, false)
	_, kept = look(x, other)
	require.Nil(t, kept, "another version that is known")
	_, kept = look(x, k)
	require.Nil(t, kept, "gone with its entry")
}

// Used texts stay; texts idle for some searches are dropped.
func TestTextsAreBounded(t *testing.T) {
	const size, bound = 100 << 10, 6 << 20 // a third: 20 texts
	x := index.New(bound)
	text := bytes.Repeat([]byte("some text\n"), size/10)
	key := func(i int) index.Key { return settledKey(uint64(i+1), text) }
	keep := func(from, to int) {
		for i := from; i < to; i++ {
			x.Add(key(i), now(), text, false)
			a, _ := look(x, key(i))
			a.KeepText(key(i), text)
		}
	}
	count := func(from, to int) (n int) {
		a := x.NewDirLookup(aSearch()) // one search
		for i := from; i < to; i++ {
			a.Lookup(0, key(i))
			if a.Text() != nil {
				n++
			}
		}
		return n
	}
	keep(0, 20)
	require.Equal(t, 20, count(0, 20))
	for range 12 {
		require.Equal(t, 20, count(0, 20))
	}
	a := x.NewDirLookup(aSearch())
	for i := 20; i < 30; i++ {
		x.Add(key(i), now(), text, false)
		a.Lookup(0, key(i))
		a.KeepText(key(i), text)
	}
	require.Equal(t, 20, count(0, 20), "what was used lately stays")
	require.Zero(t, count(20, 30))
	for range 12 {
		require.Equal(t, 5, count(0, 5))
	}
	keep(30, 40)
	require.Equal(t, 5, count(0, 5))
	require.Equal(t, 10, count(30, 40), "what was idle has made room")

	x = index.New(64 << 20)
	for _, size := range []int{index.TextSize, index.TextSize + 1} {
		whole := bytes.Repeat([]byte("a\n"), size/2+1)[:size]
		k := settledKey(uint64(size), whole)
		x.Add(k, now(), whole, false)
		a, _ := look(x, k)
		a.KeepText(k, whole)
		_, kept := look(x, k)
		require.Equal(t, size == index.TextSize, kept != nil, "%d bytes", size)
	}

	const full = 70_000 // files take all of the bound
	for i := range full {
		x.Add(settledKey(uint64(1000+i), nil), now(), nil, true)
	}
	require.Zero(t, count(30, 40), "filters come first")
}
