package storetest

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// noExpiry is the expiry of what stays.
var noExpiry time.Time

// requireCode fails the test unless err has a code.
func requireCode(t *testing.T, code toolerr.Code, err error) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, code, toolerr.CodeOf(err), "%v", err)
}

// testKeys checks reading, writing and deleting of keys.
func testKeys(t *testing.T, backend Backend) {
	s, _ := openStore(t, backend)
	ctx := t.Context()
	_, err := s.Keys.Get(ctx, "a/b")
	requireCode(t, toolerr.NotFound, err)
	require.NoError(t, s.Keys.Delete(ctx, "a/b", store.Any))
	require.NoError(t, s.Keys.Delete(ctx, "a/b", store.Absent))

	value := []byte("one\x00\xff")
	first, err := s.Keys.Put(ctx, "a/b", value, store.Absent, noExpiry)
	require.NoError(t, err)
	value[0] = 'X' // was not kept
	e, err := s.Keys.Get(ctx, "a/b")
	require.NoError(t, err)
	require.Equal(t, store.Entry{Key: "a/b", Value: []byte("one\x00\xff"), Version: first}, e)
	e.Value[0] = 'X' // is not shared
	e, err = s.Keys.Get(ctx, "a/b")
	require.NoError(t, err)
	require.Equal(t, "one\x00\xff", string(e.Value))

	_, err = s.Keys.Put(ctx, "empty", nil, store.Absent, noExpiry)
	require.NoError(t, err)
	e, err = s.Keys.Get(ctx, "empty")
	require.NoError(t, err)
	require.Empty(t, e.Value)

	require.NoError(t, s.Keys.Delete(ctx, "a/b", first))
	_, err = s.Keys.Get(ctx, "a/b")
	requireCode(t, toolerr.NotFound, err)
}

// testVersions checks that a write or delete with an outdated version fails.
func testVersions(t *testing.T, backend Backend) {
	s, _ := openStore(t, backend)
	ctx := t.Context()
	seen := map[store.Version]bool{}
	put := func(was store.Version) (store.Version, error) {
		v, err := s.Keys.Put(ctx, "k", []byte("v"), was, noExpiry)
		if err == nil {
			require.Positive(t, v)
			require.False(t, seen[v], "version %d came twice", v)
			seen[v] = true
		}
		return v, err
	}
	first, err := put(store.Absent)
	require.NoError(t, err)
	_, err = put(store.Absent)
	requireCode(t, toolerr.Conflict, err)
	_, err = put(first + 1)
	requireCode(t, toolerr.Conflict, err)
	second, err := put(first)
	require.NoError(t, err)
	require.Greater(t, second, first)
	_, err = put(first)
	requireCode(t, toolerr.Conflict, err)
	requireCode(t, toolerr.Conflict, s.Keys.Delete(ctx, "k", first))
	requireCode(t, toolerr.Conflict, s.Keys.Delete(ctx, "k", store.Absent))
	third, err := put(store.Any)
	require.NoError(t, err)
	require.NoError(t, s.Keys.Delete(ctx, "k", third))
	requireCode(t, toolerr.Conflict, s.Keys.Delete(ctx, "k", third))
	_, err = put(third)
	requireCode(t, toolerr.Conflict, err)
	_, err = put(store.Absent)
	require.NoError(t, err)
	require.NoError(t, s.Keys.Delete(ctx, "k", store.Any))
	_, err = put(store.Any)
	require.NoError(t, err)
}

// testExpiry checks that expired keys are gone.
func testExpiry(t *testing.T, backend Backend) {
	s, clock := openStore(t, backend)
	ctx := t.Context()
	until := clock.Now().Add(time.Hour)
	v, err := s.Keys.Put(ctx, "p/k", []byte("v"), store.Absent, until)
	require.NoError(t, err)
	other, err := s.Keys.Put(ctx, "p/other", []byte("v"), store.Absent, until)
	require.NoError(t, err)
	_, err = s.Keys.Put(ctx, "p/stays", []byte("v"), store.Absent, noExpiry)
	require.NoError(t, err)
	e, err := s.Keys.Get(ctx, "p/k")
	require.NoError(t, err)
	require.WithinDuration(t, until, e.Expires, time.Millisecond)
	require.False(t, e.Expires.Before(until), "not before it was told to")
	// What is read can be written back as it is.
	v, err = s.Keys.Put(ctx, "p/k", []byte("w"), v, e.Expires)
	require.NoError(t, err)
	again, err := s.Keys.Get(ctx, "p/k")
	require.NoError(t, err)
	require.True(t, again.Expires.Equal(e.Expires))

	clock.Advance(time.Hour - time.Second)
	_, err = s.Keys.Get(ctx, "p/k")
	require.NoError(t, err)
	clock.Advance(time.Second + time.Millisecond)
	_, err = s.Keys.Get(ctx, "p/k")
	requireCode(t, toolerr.NotFound, err)
	entries, err := s.Keys.List(ctx, "p/", "", 10)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, "p/stays", entries[0].Key)
	_, err = s.Keys.Put(ctx, "p/k", nil, v, noExpiry)
	requireCode(t, toolerr.Conflict, err)
	requireCode(t, toolerr.Conflict, s.Keys.Delete(ctx, "p/other", other))
	require.NoError(t, s.Keys.Delete(ctx, "p/other", store.Absent))

	// The key can be created again, and its old version is not reused.
	w, err := s.Keys.Put(ctx, "p/k", []byte("new"), store.Absent, clock.Now().Add(time.Hour))
	require.NoError(t, err)
	require.Greater(t, w, v)
	w, err = s.Keys.Put(ctx, "p/k", []byte("for ever"), w, noExpiry)
	require.NoError(t, err)
	clock.Advance(24 * time.Hour)
	e, err = s.Keys.Get(ctx, "p/k")
	require.NoError(t, err)
	require.Equal(t, w, e.Version)
	require.True(t, e.Expires.IsZero())

	// What is put with an expiry that is past was there for no time at all.
	_, err = s.Keys.Put(ctx, "p/past", []byte("v"), store.Absent, clock.Now().Add(-time.Minute))
	require.NoError(t, err)
	_, err = s.Keys.Get(ctx, "p/past")
	requireCode(t, toolerr.NotFound, err)
}

// testList checks the pages of a list and their order.
func testList(t *testing.T, backend Backend) {
	s, _ := openStore(t, backend)
	ctx := t.Context()
	put := func(keys ...string) {
		for _, key := range keys {
			_, err := s.Keys.Put(ctx, key, []byte("of "+key), store.Any, noExpiry)
			require.NoError(t, err)
		}
	}
	put("b/2", "b/1", "b/10", "b", "ba", "b/ü", "b/1/x", "b/Z", "a/1", "c", "b_1", "bX1", "b%1")
	list := func(prefix, after string, limit int) []string {
		entries, err := s.Keys.List(ctx, prefix, after, limit)
		require.NoError(t, err)
		var got []string
		for _, e := range entries {
			require.Equal(t, "of "+e.Key, string(e.Value))
			require.Positive(t, e.Version)
			got = append(got, e.Key)
		}
		return got
	}
	require.Equal(t, []string{"b/1", "b/1/x", "b/10", "b/2", "b/Z", "b/ü"}, list("b/", "", 100))
	require.Equal(t, []string{"b/1", "b/1/x", "b/10"}, list("b/1", "", 100))
	require.Equal(t, []string{"b_1"}, list("b_", "", 100))
	require.Equal(t, []string{"b%1"}, list("b%", "", 100))
	require.Equal(t, []string{"b/10", "b/2"}, list("b/", "b/1/x", 2))
	require.Equal(t, []string{"a/1", "b"}, list("", "", 2))
	require.Equal(t, []string{"c"}, list("", "b~", 5))
	require.Empty(t, list("nothing/", "", 5))
	require.Empty(t, list("b/", "", 0))
	require.NoError(t, s.Keys.Delete(ctx, "b/10", store.Any))
	require.Equal(t, []string{"b/1", "b/1/x"}, list("b/1", "", 100))
}

// testNames checks which names of keys and logs are allowed.
func testNames(t *testing.T, backend Backend) {
	s, _ := openStore(t, backend)
	ctx := t.Context()
	for _, name := range []string{"a", "A", "a.b", ".", "..", "/", "a//b", "/a", "a/", "a b", "ü/ß", "a>b", "=2F", "a=b", "$JS", "%_", `"';--`, "-", strings.Repeat("x/", store.MaxName/2)} {
		_, err := s.Keys.Put(ctx, name, []byte(name), store.Absent, noExpiry)
		require.NoError(t, err, "%q", name)
		_, err = s.Log.Append(ctx, name, []byte(name))
		require.NoError(t, err, "%q", name)
		e, err := s.Keys.Get(ctx, name)
		require.NoError(t, err)
		require.Equal(t, name, e.Key)
		require.Equal(t, name, string(e.Value))
		entries, err := s.Keys.List(ctx, name, "", 1)
		require.NoError(t, err)
		require.Len(t, entries, 1, "%q", name)
		require.Equal(t, name, entries[0].Key)
		records, err := s.Log.Read(ctx, name, 0, 10)
		require.NoError(t, err)
		require.Len(t, records, 1)
		require.Equal(t, name, string(records[0].Data))
	}
	for _, name := range []string{"", "a*", "*", "a\x00b", "a\nb", "\x7f", "\xff", strings.Repeat("x", store.MaxName+1)} {
		_, err := s.Keys.Get(ctx, name)
		requireCode(t, toolerr.InvalidInput, err)
		_, err = s.Keys.Put(ctx, name, nil, store.Any, noExpiry)
		requireCode(t, toolerr.InvalidInput, err)
		requireCode(t, toolerr.InvalidInput, s.Keys.Delete(ctx, name, store.Any))
		_, err = s.Log.Append(ctx, name, []byte("x"))
		requireCode(t, toolerr.InvalidInput, err)
		_, err = s.Log.Read(ctx, name, 0, 1)
		requireCode(t, toolerr.InvalidInput, err)
		requireCode(t, toolerr.InvalidInput, s.Log.Drop(ctx, name))
	}
	_, err := s.Log.Trim(ctx, "a*", store.Retention{Bytes: 1})
	requireCode(t, toolerr.InvalidInput, err)
	for _, id := range []string{"", "A", "a.b", "..", "a/b", "-a", "_a", "a b", "ü", strings.Repeat("x", 129)} {
		_, err := s.Blobs.Create(ctx, id, strings.NewReader("x"))
		requireCode(t, toolerr.InvalidInput, err)
		_, _, err = s.Blobs.Open(ctx, id)
		requireCode(t, toolerr.InvalidInput, err)
		_, err = s.Blobs.Stat(ctx, id)
		requireCode(t, toolerr.InvalidInput, err)
		requireCode(t, toolerr.InvalidInput, s.Blobs.Delete(ctx, id))
	}
}

// testBounds checks the maximum sizes.
func testBounds(t *testing.T, backend Backend) {
	s, _ := openStore(t, backend)
	ctx := t.Context()
	big := bytes.Repeat([]byte{0xf5}, store.MaxValue)
	_, err := s.Keys.Put(ctx, "big", big, store.Absent, noExpiry)
	require.NoError(t, err)
	e, err := s.Keys.Get(ctx, "big")
	require.NoError(t, err)
	require.True(t, bytes.Equal(big, e.Value))
	_, err = s.Keys.Put(ctx, "big", append(big, 0), store.Any, noExpiry)
	requireCode(t, toolerr.TooLarge, err)

	_, err = s.Log.Append(ctx, "log", big[:store.MaxBatchBytes-1], big[:1])
	require.NoError(t, err)
	_, err = s.Log.Append(ctx, "log", big[:store.MaxBatchBytes], big[:1])
	requireCode(t, toolerr.TooLarge, err)
	_, err = s.Log.Append(ctx, "log", make([][]byte, store.MaxBatchRecords+1)...)
	requireCode(t, toolerr.TooLarge, err)
	_, err = s.Log.Append(ctx, "log")
	requireCode(t, toolerr.InvalidInput, err)
	records, err := s.Log.Read(ctx, "log", 0, 10)
	require.NoError(t, err)
	require.Len(t, records, 2)
	require.Len(t, records[0].Data, store.MaxBatchBytes-1)

	many := make([][]byte, store.MaxBatchRecords)
	for i := range many[1:] { // and the first is empty
		many[i+1] = strconv.AppendInt(nil, int64(i+1), 10)
	}
	last, err := s.Log.Append(ctx, "many", many...)
	require.NoError(t, err)
	count := 0
	for after := store.Cursor(0); after < last; {
		records, err := s.Log.Read(ctx, "many", after, 1<<20)
		require.NoError(t, err)
		require.NotEmpty(t, records)
		require.LessOrEqual(t, len(records), store.MaxPageEntries)
		for _, r := range records {
			require.Equal(t, string(many[count]), string(r.Data))
			count++
		}
		after = records[len(records)-1].Cursor
	}
	require.Equal(t, store.MaxBatchRecords, count)
}

// testContention increments one key from many goroutines over several stores: no increment
// is lost or made twice.
func testContention(t *testing.T, backend Backend) {
	again := backend(t, Config{Now: time.Now})
	stores := []*store.Store{again(), again()}
	const workers, steps = 12, 8
	var all sync.WaitGroup
	errs := make(chan error, workers)
	for i := range workers {
		all.Go(func() {
			for range steps {
				if err := Increment(t.Context(), stores[i%len(stores)].Keys, "counter"); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	e, err := stores[0].Keys.Get(t.Context(), "counter")
	require.NoError(t, err)
	require.Equal(t, strconv.Itoa(workers*steps), string(e.Value))
}

// Increment adds one to the number that is the value of key, however many
// others do.
func Increment(ctx context.Context, keys store.Keys, key string) error {
	for {
		e, err := keys.Get(ctx, key)
		if err != nil && !toolerr.Is(err, toolerr.NotFound) {
			return err
		}
		n := 0
		if err == nil {
			if n, err = strconv.Atoi(string(e.Value)); err != nil {
				return err
			}
		}
		_, err = keys.Put(ctx, key, strconv.AppendInt(nil, int64(n+1), 10), e.Version, time.Time{})
		if !toolerr.Is(err, toolerr.Conflict) {
			return err
		}
	}
}

// testOneWinner lets many decide one thing at once, from one version and from none:
// one of them does.
func testOneWinner(t *testing.T, backend Backend) {
	again := backend(t, Config{Now: time.Now})
	stores := []*store.Store{again(), again(), again()}
	pending, err := stores[0].Keys.Put(t.Context(), "decided", []byte("pending"), store.Absent, noExpiry)
	require.NoError(t, err)
	for key, was := range map[string]store.Version{"decided": pending, "taken": store.Absent} {
		var all sync.WaitGroup
		won := make(chan string, 24)
		for i := range cap(won) {
			all.Go(func() {
				by := fmt.Sprint("by ", i)
				_, err := stores[i%len(stores)].Keys.Put(t.Context(), key, []byte(by), was, noExpiry)
				switch {
				case err == nil:
					won <- by
				case !toolerr.Is(err, toolerr.Conflict):
					t.Error(err)
				}
			})
		}
		all.Wait()
		require.Len(t, won, 1)
		e, err := stores[1].Keys.Get(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, <-won, string(e.Value))
	}
}
