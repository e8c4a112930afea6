package index_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/tools/grep/index"
)

// heap returns the memory in use after a collection, in bytes.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // the second collection frees pooled memory
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// However many files are added, the index stays within its limit and reports
// its size.
func TestMemoryIsBounded(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	const bound = 4 << 20
	rng := rand.New(rand.NewPCG(1, 1))
	texts := make([][]byte, 64)
	for i := range texts {
		texts[i] = make([]byte, rng.IntN(500))
		for j := range texts[i] {
			texts[i][j] = byte(' ' + rng.IntN(64))
		}
	}
	before := heap()
	x := index.New(bound)
	for i := range 40_000 {
		if i%1000 == 0 {
			x.Lookup(index.Key{}, queryFor("anything")) // another search: the files before may go
		}
		text := texts[i%len(texts)]
		x.Add(settledKey(uint64(i+1), text), now(), text, i%5 == 0)
		if i%4000 == 0 {
			_, accounted := x.Stats()
			require.LessOrEqual(t, accounted, int64(bound))
		}
	}
	files, accounted := x.Stats()
	require.Greater(t, accounted, int64(bound*3/4), "it is used, too")
	require.Greater(t, files, 1000)
	used := heap() - before
	require.Less(t, used, int64(bound*5/4))
	require.Greater(t, used, int64(bound/2))
	runtime.KeepAlive(x)
}

// Entries without filters are accounted for, too.
func TestMemoryOfSmallEntries(t *testing.T) {
	const bound = 8 << 20
	before := heap()
	x := index.New(bound)
	for i := range 200_000 {
		x.Add(settledKey(uint64(i+1), nil), now(), nil, true)
	}
	files, _ := x.Stats()
	require.Greater(t, files, 50_000)
	require.Less(t, heap()-before, int64(bound*5/4))
	runtime.KeepAlive(x)
}

func TestLeastRecentlyUsedGoes(t *testing.T) {
	x := index.New(1 << 20)
	text := make([]byte, 2000)
	rng := rand.New(rand.NewPCG(2, 2))
	for i := range text {
		text[i] = byte('a' + rng.IntN(26))
	}
	known := func(from, to int) (n int) {
		for i := from; i < to; i++ {
			if x.Lookup(settledKey(uint64(i), text), nil) != index.Unknown {
				n++
			}
		}
		return n
	}
	add := func(from, to int) {
		for i := from; i < to; i++ {
			x.Add(settledKey(uint64(i), text), now(), text, false)
		}
	}
	search := func(from, to int) {
		q := queryFor("whatever")
		for i := from; i < to; i++ {
			x.Lookup(settledKey(uint64(i), text), q)
		}
	}
	add(1, 1001)
	room, _ := x.Stats()
	require.Less(t, room, 600, "the test fills the index")
	require.Equal(t, room, known(1, room+1), "what does not fit pushes out nothing that was used as late")

	search(1, room/2+1) // half of them
	add(2001, 2001+room/4)
	require.Equal(t, room/2, known(1, room/2+1), "the half that was used stays")
	require.Equal(t, room/4, known(2001, 2001+room/4), "the new ones are there")
	require.Less(t, known(room/2+1, room+1), room/2-room/5, "the other half made room")
}

// One file cannot displace all others.
func TestOneFileTakesNoMoreThanItsShare(t *testing.T) {
	x := index.New(1000)
	k := settledKey(1, nil)
	x.Add(k, now(), []byte("small"), false)
	rng := rand.New(rand.NewPCG(3, 3))
	large := make([]byte, 2000)
	for i := range large {
		large[i] = byte('a' + rng.IntN(26))
	}
	x.Lookup(index.Key{}, queryFor("anything"))
	x.Add(settledKey(2, large), now(), large, false)
	require.Equal(t, index.Maybe, x.Lookup(k, nil))
	require.Equal(t, index.Unknown, x.Lookup(settledKey(2, large), nil))
}

// After the clock that stamps files was set back, a stamp may occur again.
func TestAClockSetBackForgetsEverything(t *testing.T) {
	x := index.New(1 << 20)
	k := settledKey(1, nil)
	add := func() { x.Add(k, now(), []byte("text"), false) }
	for _, c := range []struct {
		wall, monotonic time.Duration
		want            index.Verdict
	}{
		{time.Minute, time.Minute, index.Maybe},
		{2 * time.Minute, 2*time.Minute + 900*time.Millisecond, index.Maybe}, // adjusted
		{time.Hour, 3 * time.Minute, index.Maybe},                            // suspended, or set forward
		{time.Hour + time.Minute, 4 * time.Minute, index.Maybe},
		{5 * time.Minute, 5 * time.Minute, index.Unknown}, // corrected again
		{6 * time.Minute, 6 * time.Minute, index.Maybe},
	} {
		add()
		x.StepClock(c.wall, c.monotonic)
		require.Equal(t, c.want, x.Lookup(k, nil), "%v %v", c.wall, c.monotonic)
		if c.want == index.Unknown {
			files, size := x.Stats()
			require.Zero(t, files)
			require.Zero(t, size)
		}
	}
}

// Searches with a shared page, builders and evictions run concurrently, for the
// race detector.
func TestConcurrentUse(t *testing.T) {
	x := index.New(200_000)
	texts := make([]string, 100)
	for i := range texts {
		texts[i] = fmt.Sprintf("the text with number %d and its double %d", i, 2*i)
	}
	page := index.NewPage(2000)
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(worker), 5))
			for range 40 {
				number := rng.IntN(100)
				q := queryFor(fmt.Sprint("number ", number, " "))
				var shared sync.WaitGroup
				for range 2 {
					shared.Go(func() {
						ahead := x.NewDirLookup(q)
						ahead.SwitchDir(page)
						for i := range 2000 {
							v := ahead.Lookup(i, settledKey(uint64(i+1), nil))
							if v == index.Missing && i%100 == number {
								t.Errorf("file %d holds its number", i)
							}
						}
					})
				}
				for range 200 {
					i := rng.IntN(2000)
					x.Add(settledKey(uint64(i+1), nil), now(), []byte(texts[i%100]), false)
				}
				shared.Wait()
			}
		})
	}
	wg.Wait()
	files, size := x.Stats()
	require.Positive(t, files)
	require.LessOrEqual(t, size, int64(200_000))
}
