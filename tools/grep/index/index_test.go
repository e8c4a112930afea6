package index_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/tools/grep/index"
	"github.com/toolroom-mcp/toolroom/tools/grep/search"
)

// now is the fixed time of the tests.
func now() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC) }

// settledKey returns the key of a file changed a minute before now.
func settledKey(ino uint64, text []byte) index.Key {
	at := now().Add(-time.Minute).UnixNano()
	return index.Key{Dev: 1, Ino: ino, Size: int64(len(text)), ModTime: at, ChangeTime: at}
}

// lookIn returns the verdict of an index that has only text.
func lookIn(text string, required ...[]search.Literal) index.Verdict {
	x := index.New(1 << 20)
	k := settledKey(1, []byte(text))
	x.Add(k, now(), []byte(text), false)
	return x.Lookup(k, index.NewQuery(required))
}

// anyOf returns a set of literals; those that begin with ~ match in any case.
func anyOf(texts ...string) []search.Literal {
	var set []search.Literal
	for _, text := range texts {
		rest, fold := strings.CutPrefix(text, "~")
		set = append(set, search.Literal{Text: []byte(rest), Fold: fold})
	}
	return set
}

func TestLook(t *testing.T) {
	const text = "package main\n\nfunc Main() { println(\"Grüße\") }\n"
	for _, c := range []struct {
		required [][]search.Literal
		want     index.Verdict
	}{
		{nil, index.Maybe},
		{[][]search.Literal{{}}, index.Maybe},
		{[][]search.Literal{anyOf("func")}, index.Maybe},
		{[][]search.Literal{anyOf("func Main() { println(\"Grüße\")")}, index.Maybe},
		{[][]search.Literal{anyOf("Grüße")}, index.Maybe},
		{[][]search.Literal{anyOf("Grüsse")}, index.Missing},
		{[][]search.Literal{anyOf("~main")}, index.Maybe},
		{[][]search.Literal{anyOf("xyz")}, index.Missing},
		{[][]search.Literal{anyOf("~xyz")}, index.Missing},
		{[][]search.Literal{anyOf("xy")}, index.Maybe}, // too short to tell
		{[][]search.Literal{anyOf("unknown", "x")}, index.Maybe},
		{[][]search.Literal{anyOf("unknown", "println")}, index.Maybe},
		{[][]search.Literal{anyOf("unknown", "neither")}, index.Missing},
		{[][]search.Literal{anyOf("func"), anyOf("unknown")}, index.Missing},
		{[][]search.Literal{anyOf("func"), anyOf("x")}, index.Maybe},
		{[][]search.Literal{anyOf("func"), anyOf("unknown", "main")}, index.Maybe},
		{[][]search.Literal{anyOf("x"), anyOf("unknown")}, index.Missing},
	} {
		require.Equal(t, c.want, lookIn(text, c.required...), "%s", c.required)
	}
}

// Queries that are too large are dropped or shortened.
func TestLargeQueries(t *testing.T) {
	const text = "a text of some words that is looked at"
	long := strings.Repeat("x", 200)
	require.Equal(t, index.Missing, lookIn(text, anyOf("some "+long)))
	require.Equal(t, index.Maybe, lookIn(text+long, anyOf(text+long)))
	many := func(n int, more ...string) []search.Literal {
		for i := range n {
			more = append(more, fmt.Sprintf("%dabsent%d", i, i))
		}
		return anyOf(more...)
	}
	require.Equal(t, index.Missing, lookIn(text, many(1000)))
	require.Equal(t, index.Maybe, lookIn(text, many(1000, "some words")))
	require.Equal(t, index.Maybe, lookIn(text, many(100_000)))
	var sets [][]search.Literal
	for range 20 {
		sets = append(sets, many(1000, "some words"+long, "that is looked"))
	}
	require.Equal(t, index.Maybe, lookIn(text, sets...))
	require.Equal(t, index.Missing, lookIn(text, append(sets, anyOf("absent"))...))
}

func TestSmallTexts(t *testing.T) {
	for _, text := range []string{"", "a", "ab"} {
		require.Equal(t, index.Missing, lookIn(text, anyOf("abc")), "%q", text)
		require.Equal(t, index.Maybe, lookIn(text), "%q", text)
	}
	require.Equal(t, index.Maybe, lookIn("abc", anyOf("abc")))
	require.Equal(t, index.Missing, lookIn("abc", anyOf("abcd")))
}

// Both characters are found as letters if case is ignored, and as themselves
// otherwise.
func TestSignsThatFoldToLetters(t *testing.T) {
	const text = "the \u212aelvin \u017fcale, \u017f\u212a\u017f\u212a\u017f\u212a\u017f"
	for _, present := range []string{
		"~kelvin", "\u212aelvin", "~scale", "\u017fcale", "~ \u017fcale",
		"~sksksks", "~\u017f\u212ask", "\u212a\u017f\u212a\u017f", "~n scale, sk",
	} {
		require.Equal(t, index.Maybe, lookIn(text, anyOf(present)), present)
	}
	for _, absent := range []string{"Celvin", "~celvin", "\u212acale", "~kkk"} {
		require.Equal(t, index.Missing, lookIn(text, anyOf(absent)), absent)
	}
	// A literal cut within such a character.
	require.Equal(t, index.Maybe, lookIn("\u212a\u212a\u212a\u212a\u212a", anyOf("~\x84\xaakkk")))
	require.Equal(t, index.Maybe, lookIn("\u212a\u212a\u212a\u212a\u212a", anyOf("~kkk\xe2\x84")))
	require.Equal(t, index.Maybe, lookIn("\u017f\u017f\u017f\u017f\u017f", anyOf("~\xbf\u017f\u017f\u017f\xc5")))
}

func TestAVersionIsKnownByAllOfItsKey(t *testing.T) {
	text := []byte("some text")
	x := index.New(1 << 20)
	k := settledKey(7, text)
	require.Equal(t, index.Unknown, x.Lookup(k, nil))
	x.Add(k, now(), text, false)
	require.Equal(t, index.Maybe, x.Lookup(k, nil))
	for name, change := range map[string]func(k *index.Key){
		"device":      func(k *index.Key) { k.Dev++ },
		"inode":       func(k *index.Key) { k.Ino++ },
		"size":        func(k *index.Key) { k.Size++ },
		"mtime":       func(k *index.Key) { k.ModTime++ },
		"mtime back":  func(k *index.Key) { k.ModTime -= 1_000_000_000 },
		"change time": func(k *index.Key) { k.ChangeTime++ },
	} {
		other := k
		change(&other)
		require.Equal(t, index.Unknown, x.Lookup(other, nil), name)
	}
	// The next version replaces the previous one.
	next := k
	next.ChangeTime++
	x.Add(next, now(), []byte("another"), false)
	require.Equal(t, index.Unknown, x.Lookup(k, nil))
	require.Equal(t, index.Missing, x.Lookup(next, index.NewQuery([][]search.Literal{anyOf("some")})))
	files, _ := x.Stats()
	require.Equal(t, 1, files)
}

func TestBinaryFiles(t *testing.T) {
	x := index.New(1 << 20)
	k := settledKey(1, nil)
	x.Add(k, now(), nil, true)
	require.Equal(t, index.Binary, x.Lookup(k, nil))
	require.Equal(t, index.Binary, x.Lookup(k, index.NewQuery([][]search.Literal{anyOf("text")})))
}

// A file whose stamp is so recent that a later change could repeat it is not
// indexed.
func TestRacyStampsAreNotTakenUp(t *testing.T) {
	for _, c := range []struct {
		modified, changed time.Duration // before now
		want              index.Verdict
	}{
		{time.Hour, time.Hour, index.Maybe},
		{index.Settled + 1, index.Settled + 1, index.Maybe},
		{index.Settled, time.Hour, index.Unknown},
		{time.Hour, index.Settled, index.Unknown},
		{time.Second, time.Second, index.Unknown},
		{time.Hour, time.Millisecond, index.Unknown},
		{time.Hour, 0, index.Unknown},
		{time.Hour, -time.Hour, index.Unknown},
		{-time.Hour, time.Hour, index.Unknown},
	} {
		x := index.New(1 << 20)
		k := index.Key{Dev: 1, Ino: 1, Size: 4, ModTime: now().Add(-c.modified).UnixNano(), ChangeTime: now().Add(-c.changed).UnixNano()}
		x.Add(k, now(), []byte("text"), false)
		require.Equal(t, c.want, x.Lookup(k, nil), "%v %v", c.modified, c.changed)
	}
}

func TestFilesWithoutAnInodeAreNotTakenUp(t *testing.T) {
	x := index.New(1 << 20)
	for _, k := range []index.Key{{Dev: 1}, {Ino: 1}, index.KeyOf(sandbox.Stat{})} {
		x.Add(k, now(), []byte("text"), false)
		require.Equal(t, index.Unknown, x.Lookup(k, nil))
	}
	files, bytes := x.Stats()
	require.Zero(t, files)
	require.Zero(t, bytes)
}

// Large texts are added in pieces; literals across a boundary are found.
func TestSeamsOfLargeTexts(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	text := bytes.Repeat([]byte("lorem ipsum dolor "), index.PieceSize/18+10)
	for _, word := range []string{"wxyz", "\u212a\u017f\u212a\u017f\u212az", "w\u212a\u212a\u212a", "\u017f\u212a\u017f\u017f"} {
		for before := range len(word) + 1 {
			large := bytes.Clone(text)
			copy(large[index.PieceSize-before:], word)
			k := settledKey(1, large)
			x := index.New(1 << 20)
			x.Add(k, now(), large, false)
			folded := strings.NewReplacer("\u212a", "k", "\u017f", "s").Replace(word)
			for _, literal := range []string{word, "~" + word, "~" + folded} {
				require.Equal(t, index.Maybe, x.Lookup(k, index.NewQuery([][]search.Literal{anyOf(literal)})), "%s at %d", literal, before)
			}
			require.Equal(t, index.Missing, x.Lookup(k, index.NewQuery([][]search.Literal{anyOf("absent")})))
		}
	}
}

// A text with nearly every gram is indexed without a filter: nothing is missing
// from it, and it takes little memory.
func TestRandomTextsHaveNoFilter(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, 4<<20)
	for i := range text {
		text[i] = byte(1 + rng.IntN(255))
	}
	x := index.New(64 << 20)
	k := settledKey(1, text)
	x.Add(k, now(), text, false)
	require.Equal(t, index.Maybe, x.Lookup(k, index.NewQuery([][]search.Literal{anyOf("absent")})))
	_, size := x.Stats()
	require.Less(t, size, int64(1000))
}

// Files that lack a literal are seldom searched for it.
func TestFalsePositives(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	rng := rand.New(rand.NewPCG(3, 4))
	words := make([]string, 5000)
	for i := range words {
		for range 4 + rng.IntN(8) {
			words[i] += string(rune('a' + rng.IntN(26)))
		}
	}
	x := index.New(64 << 20)
	var keys []index.Key
	var texts [][]byte
	for ino := range 200 {
		var text []byte
		for range 1 + rng.IntN(2000) {
			text = append(append(text, words[rng.IntN(2500)]...), ' ')
		}
		k := settledKey(uint64(ino+1), text)
		x.Add(k, now(), text, false)
		keys, texts = append(keys, k), append(texts, text)
	}
	asked, wrong := 0, 0
	for _, word := range words[2500:3000] {
		q := index.NewQuery([][]search.Literal{anyOf(word)})
		for i, text := range texts {
			if bytes.Contains(text, []byte(word)) {
				continue
			}
			asked++
			if x.Lookup(keys[i], q) != index.Missing {
				wrong++
			}
		}
	}
	require.Greater(t, asked, 50_000)
	require.Less(t, float64(wrong)/float64(asked), 0.02)
}
