package storetest

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/host/internal/store"
)

// testLogs checks appending and reading of records.
func testLogs(t *testing.T, backend Backend) {
	s, clock := openStore(t, backend)
	ctx := t.Context()
	records, err := s.Log.Read(ctx, "a", 0, 10)
	require.NoError(t, err)
	require.Empty(t, records)

	start := clock.Now()
	data := []byte("one")
	one, err := s.Log.Append(ctx, "a", data)
	require.NoError(t, err)
	data[0] = 'X'
	clock.Advance(time.Minute)
	_, err = s.Log.Append(ctx, "b", []byte("other"))
	require.NoError(t, err)
	last, err := s.Log.Append(ctx, "a", []byte("two"), nil, []byte("three\x00"))
	require.NoError(t, err)
	require.Greater(t, last, one)

	records, err = s.Log.Read(ctx, "a", 0, 10)
	require.NoError(t, err)
	require.Equal(t, []string{"one", "two", "", "three\x00"}, recordTexts(records))
	require.Equal(t, one, records[0].Cursor)
	require.Equal(t, last, records[3].Cursor)
	require.Equal(t, start.UnixMilli(), records[0].Time.UnixMilli())
	require.Equal(t, start.Add(time.Minute).UnixMilli(), records[1].Time.UnixMilli())
	for i, r := range records {
		rest, err := s.Log.Read(ctx, "a", r.Cursor, 10)
		require.NoError(t, err)
		require.Equal(t, recordTexts(records[i+1:]), recordTexts(rest))
		page, err := s.Log.Read(ctx, "a", r.Cursor-1, 1)
		require.NoError(t, err)
		require.Equal(t, r.Cursor, page[0].Cursor)
	}
	records, err = s.Log.Read(ctx, "a", last+1000, 10)
	require.NoError(t, err)
	require.Empty(t, records)
}

// recordTexts returns the data of records as texts.
func recordTexts(records []store.Record) []string {
	var all []string
	for _, r := range records {
		all = append(all, string(r.Data))
	}
	return all
}

// testBatches appends from many goroutines over several stores: everything is
// there once, each batch whole and in order, each writer's batches in order.
func testBatches(t *testing.T, backend Backend) {
	again := backend(t, Config{Now: time.Now})
	stores := []*store.Store{again(), again()}
	const workers, rounds, size = 8, 10, 5
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for round := range rounds {
				var batch [][]byte
				for i := range size {
					batch = append(batch, fmt.Appendf(nil, "%d %d %d", w, round, i))
				}
				if _, err := stores[w%len(stores)].Log.Append(t.Context(), "log", batch...); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	records, err := stores[0].Log.Read(t.Context(), "log", 0, store.MaxPageEntries)
	require.NoError(t, err)
	require.Len(t, records, workers*rounds*size)
	next := [workers]int{}
	var before store.Cursor
	for len(records) > 0 {
		var w, round, i int
		_, err := fmt.Sscan(string(records[0].Data), &w, &round, &i)
		require.NoError(t, err)
		require.Equal(t, next[w], round)
		next[w]++
		for i, r := range records[:size] {
			require.Equal(t, fmt.Sprintf("%d %d %d", w, round, i), string(r.Data))
			require.Greater(t, r.Cursor, before)
			before = r.Cursor
		}
		records = records[size:]
	}
}

// testFollow follows a log while others append to it, always from the last cursor
// it saw: it sees everything, once.
func testFollow(t *testing.T, backend Backend) {
	again := backend(t, Config{Now: time.Now})
	writers := []*store.Store{again(), again()}
	reader := again()
	const workers, each = 4, 30
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := range each {
				if _, err := writers[w%len(writers)].Log.Append(t.Context(), "log", fmt.Appendf(nil, "%d/%d", w, i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	written := make(chan struct{})
	go func() { all.Wait(); close(written) }()
	seen := map[string]int{}
	for after, done := store.Cursor(0), false; !done; {
		select {
		case <-written:
			done = true // and read once more
		default:
		}
		for {
			records, err := reader.Log.Read(t.Context(), "log", after, 7)
			require.NoError(t, err)
			if len(records) == 0 {
				break
			}
			for _, r := range records {
				seen[string(r.Data)]++
			}
			after = records[len(records)-1].Cursor
		}
	}
	require.Len(t, seen, workers*each)
	for text, times := range seen {
		require.Equal(t, 1, times, text)
	}
}

// testTrim checks which records Trim removes.
func testTrim(t *testing.T, backend Backend) {
	s, clock := openStore(t, backend)
	ctx := t.Context()
	for i := range 10 {
		_, err := s.Log.Append(ctx, "log", fmt.Appendf(nil, "%010d", i))
		require.NoError(t, err)
		_, err = s.Log.Append(ctx, "logbook", []byte("other"))
		require.NoError(t, err)
		clock.Advance(time.Minute)
	}
	before, err := s.Log.Read(ctx, "log", 0, 100)
	require.NoError(t, err)
	left := func() []store.Record {
		records, err := s.Log.Read(ctx, "log", 0, 100)
		require.NoError(t, err)
		require.Equal(t, before[len(before)-len(records):], records, "the newest remain, as they were")
		return records
	}
	trim := func(keep store.Retention) int {
		n, err := s.Log.Trim(ctx, "log", keep)
		require.NoError(t, err)
		return n
	}
	require.Zero(t, trim(store.Retention{}))
	require.Zero(t, trim(store.Retention{Age: 10 * time.Minute, Bytes: 100}))
	require.Len(t, left(), 10)
	require.Equal(t, 2, trim(store.Retention{Age: 8*time.Minute + time.Second})) // the youngest is a minute old
	require.Len(t, left(), 8)
	require.Equal(t, 3, trim(store.Retention{Bytes: 59}))
	require.Len(t, left(), 5)
	require.Equal(t, 1, trim(store.Retention{Bytes: 49, Age: time.Hour}))
	require.Equal(t, 1, trim(store.Retention{Bytes: 1 << 30, Age: 3*time.Minute + time.Second}))
	require.Len(t, left(), 3)

	next, err := s.Log.Append(ctx, "log", []byte("next"))
	require.NoError(t, err)
	require.Greater(t, next, before[9].Cursor)
	require.Equal(t, 4, trim(store.Retention{Bytes: 1}))
	records, err := s.Log.Read(ctx, "log", 0, 100)
	require.NoError(t, err)
	require.Empty(t, records)
	records, err = s.Log.Read(ctx, "logbook", 0, 100)
	require.NoError(t, err)
	require.Len(t, records, 10)
	after, err := s.Log.Append(ctx, "log", []byte("after"))
	require.NoError(t, err)
	require.Greater(t, after, next, "cursors do not come again")
}

// testTrimSeveral checks Trim of all logs with a prefix.
func testTrimSeveral(t *testing.T, backend Backend) {
	s, _ := openStore(t, backend)
	ctx := t.Context()
	for i := range 4 {
		for _, log := range []string{"session/1", "session/12", "session/a/b", "sessions", "session", "audit"} {
			_, err := s.Log.Append(ctx, log, []byte(strings.Repeat("x", 10)), fmt.Append(nil, i))
			require.NoError(t, err)
		}
	}
	count := func(log string) int {
		records, err := s.Log.Read(ctx, log, 0, 100)
		require.NoError(t, err)
		return len(records)
	}
	// Below session/ 12 batches of 11 bytes: five of them fit.
	n, err := s.Log.Trim(ctx, "session/*", store.Retention{Bytes: 55})
	require.NoError(t, err)
	require.Equal(t, 14, n)
	require.Equal(t, []int{2, 4, 4}, []int{count("session/1"), count("session/12"), count("session/a/b")})
	require.Equal(t, []int{8, 8, 8}, []int{count("sessions"), count("session"), count("audit")})
	n, err = s.Log.Trim(ctx, "*", store.Retention{Bytes: 1})
	require.NoError(t, err)
	require.Positive(t, n)
	for _, log := range []string{"session/12", "sessions", "session"} {
		require.Zero(t, count(log), log)
	}
}

// testDrop checks that Drop removes all records of one log.
func testDrop(t *testing.T, backend Backend) {
	s, _ := openStore(t, backend)
	ctx := t.Context()
	require.NoError(t, s.Log.Drop(ctx, "a"))
	var last store.Cursor
	for _, log := range []string{"a", "a/b", "ab", "a"} {
		var err error
		last, err = s.Log.Append(ctx, log, []byte("x"))
		require.NoError(t, err)
	}
	require.NoError(t, s.Log.Drop(ctx, "a"))
	for log, want := range map[string]int{"a": 0, "a/b": 1, "ab": 1} {
		records, err := s.Log.Read(ctx, log, 0, 10)
		require.NoError(t, err)
		require.Len(t, records, want, log)
	}
	again, err := s.Log.Append(ctx, "a", []byte("x"))
	require.NoError(t, err)
	require.Greater(t, again, last)
}
