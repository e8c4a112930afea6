package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// readBlob returns the content of a blob.
func readBlob(t *testing.T, s *store.Store, id string) string {
	t.Helper()
	r, info, err := s.Blobs.Open(t.Context(), id)
	require.NoError(t, err)
	data, err := io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.EqualValues(t, len(data), info.Size)
	return string(data)
}

// testBlobs checks creating, reading and deleting of blobs.
func testBlobs(t *testing.T, backend Backend) {
	s, clock := openStore(t, backend)
	ctx := t.Context()
	_, _, err := s.Blobs.Open(ctx, "a")
	requireCode(t, toolerr.NotFound, err)
	_, err = s.Blobs.Stat(ctx, "a")
	requireCode(t, toolerr.NotFound, err)
	requireCode(t, toolerr.NotFound, s.Blobs.Delete(ctx, "a"))

	large := string(bytes.Repeat([]byte("0123456789abcdef"), 40<<10)) // 640 KiB
	for id, text := range map[string]string{"a": large, "0-_z": "", "con": "small"} {
		b, err := s.Blobs.Create(ctx, id, iotest.HalfReader(strings.NewReader(text)))
		require.NoError(t, err)
		require.Equal(t, id, b.ID)
		require.EqualValues(t, len(text), b.Size)
		require.WithinDuration(t, clock.Now(), b.Created, time.Second)
		require.True(t, text == readBlob(t, s, id))
		info, err := s.Blobs.Stat(ctx, id)
		require.NoError(t, err)
		require.Equal(t, b.Size, info.Size)
		require.True(t, b.Created.Equal(info.Created))
	}
	_, err = s.Blobs.Create(ctx, "a", strings.NewReader("other"))
	requireCode(t, toolerr.Exists, err)
	require.True(t, large == readBlob(t, s, "a"))

	broken := errors.New("broken")
	_, err = s.Blobs.Create(ctx, "b", io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken)))
	require.ErrorIs(t, err, broken)
	_, err = s.Blobs.Stat(ctx, "b")
	requireCode(t, toolerr.NotFound, err)

	require.NoError(t, s.Blobs.Delete(ctx, "a"))
	_, _, err = s.Blobs.Open(ctx, "a")
	requireCode(t, toolerr.NotFound, err)
	_, err = s.Blobs.Create(ctx, "a", strings.NewReader("new"))
	require.NoError(t, err)
	require.Equal(t, "new", readBlob(t, s, "a"))
}

// testBlobRaces writes one id from many goroutines: one of them succeeds, and the content
// is complete.
func testBlobRaces(t *testing.T, backend Backend) {
	again := backend(t, Config{Now: time.Now})
	stores := []*store.Store{again(), again()}
	var all sync.WaitGroup
	won := make(chan string, 12)
	for i := range cap(won) {
		all.Go(func() {
			text := strings.Repeat(fmt.Sprint(i, " "), 10_000)
			_, err := stores[i%len(stores)].Blobs.Create(t.Context(), "one", strings.NewReader(text))
			switch {
			case err == nil:
				won <- text
			case !toolerr.Is(err, toolerr.Exists):
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.Len(t, won, 1)
	require.True(t, <-won == readBlob(t, stores[0], "one"))
}

// testQuota checks the size limits of blobs.
func testQuota(t *testing.T, backend Backend) {
	s := backend(t, Config{Now: time.Now, Quota: store.Quota{Blob: 1000, Total: 2500}})()
	ctx := t.Context()
	kilo := strings.Repeat("x", 1000)
	_, err := s.Blobs.Create(ctx, "long", strings.NewReader(kilo+"x"))
	requireCode(t, toolerr.TooLarge, err)
	for _, id := range []string{"a", "b"} {
		_, err := s.Blobs.Create(ctx, id, strings.NewReader(kilo))
		require.NoError(t, err)
	}
	_, err = s.Blobs.Create(ctx, "c", strings.NewReader(kilo))
	requireCode(t, toolerr.LimitReached, err)
	_, err = s.Blobs.Stat(ctx, "c")
	requireCode(t, toolerr.NotFound, err)
	_, err = s.Blobs.Create(ctx, "c", strings.NewReader(kilo[:500]))
	require.NoError(t, err)
	require.NoError(t, s.Blobs.Delete(ctx, "a"))
	_, err = s.Blobs.Create(ctx, "d", strings.NewReader(kilo))
	require.NoError(t, err)

	// What many write at once stays within it, too.
	require.NoError(t, s.Blobs.Delete(ctx, "c"))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			_, err := s.Blobs.Create(ctx, fmt.Sprint("many", i), strings.NewReader(kilo[:300]))
			if err != nil && !toolerr.Is(err, toolerr.LimitReached) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	total := int64(0)
	for _, id := range []string{"b", "d", "many0", "many1", "many2", "many3", "many4", "many5", "many6", "many7"} {
		if b, err := s.Blobs.Stat(ctx, id); err == nil {
			total += b.Size
		}
	}
	require.LessOrEqual(t, total, int64(2500))
}

// testTrimBlobs checks which blobs Trim removes.
func testTrimBlobs(t *testing.T, backend Backend) {
	s, clock := openStore(t, backend)
	ctx := t.Context()
	for i := range 6 {
		_, err := s.Blobs.Create(ctx, fmt.Sprint("b", i), strings.NewReader("0123456789"))
		require.NoError(t, err)
		clock.Advance(time.Minute)
	}
	left := func() string {
		var ids []string
		for i := range 6 {
			if _, err := s.Blobs.Stat(ctx, fmt.Sprint("b", i)); err == nil {
				ids = append(ids, fmt.Sprint("b", i))
			}
		}
		return strings.Join(ids, " ")
	}
	for _, step := range []struct {
		keep    store.Retention
		removed int
		left    string
	}{
		{store.Retention{}, 0, "b0 b1 b2 b3 b4 b5"},
		{store.Retention{Age: 6 * time.Minute, Bytes: 60}, 0, "b0 b1 b2 b3 b4 b5"},
		{store.Retention{Age: 5*time.Minute + time.Second}, 1, "b1 b2 b3 b4 b5"},
		{store.Retention{Bytes: 39}, 2, "b3 b4 b5"},
		{store.Retention{Bytes: 20, Age: time.Hour}, 1, "b4 b5"},
		{store.Retention{Bytes: 1}, 2, ""},
	} {
		n, err := s.Blobs.Trim(ctx, step.keep)
		require.NoError(t, err)
		require.Equal(t, step.left, left())
		require.Equal(t, step.removed, n)
	}
}

// testReopen opens the same state once more, as another host does, and reads it.
func testReopen(t *testing.T, backend Backend) {
	clock := NewClock()
	again := backend(t, Config{Now: clock.Now})
	s := again()
	v, err := s.Keys.Put(t.Context(), "k", []byte("v"), store.Absent, clock.Now().Add(time.Hour))
	require.NoError(t, err)
	c, err := s.Log.Append(t.Context(), "log", []byte("a"), []byte("b"))
	require.NoError(t, err)
	_, err = s.Blobs.Create(t.Context(), "blob", strings.NewReader("content"))
	require.NoError(t, err)
	require.NoError(t, s.Close())

	s = again()
	e, err := s.Keys.Get(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, v, e.Version)
	require.Equal(t, "v", string(e.Value))
	records, err := s.Log.Read(t.Context(), "log", 0, 10)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, recordTexts(records))
	require.Equal(t, c, records[1].Cursor)
	require.Equal(t, "content", readBlob(t, s, "blob"))
}

// testCancelled checks that a call with a cancelled context changes nothing.
func testCancelled(t *testing.T, backend Backend) {
	s, _ := openStore(t, backend)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Keys.Get(ctx, "k")
	require.Error(t, err)
	_, err = s.Keys.Put(ctx, "k", nil, store.Any, noExpiry)
	requireCode(t, toolerr.Cancelled, err)
	requireCode(t, toolerr.Cancelled, s.Keys.Delete(ctx, "k", store.Any))
	_, err = s.Log.Append(ctx, "log", []byte("x"))
	requireCode(t, toolerr.Cancelled, err)
	_, err = s.Blobs.Create(ctx, "blob", strings.NewReader("x"))
	requireCode(t, toolerr.Cancelled, err)
	_, err = s.Keys.Get(t.Context(), "k")
	requireCode(t, toolerr.NotFound, err)
	_, err = s.Blobs.Stat(t.Context(), "blob")
	requireCode(t, toolerr.NotFound, err)
}
