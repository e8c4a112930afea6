package state_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
)

// Each client and each of its sessions has separate records, whatever their
// names; servers of one client share them.
func TestClientsAreApart(t *testing.T) {
	dir := t.TempDir()
	open := func(client, session string) *state.Store {
		return state.New(state.Config{Dir: dir, Client: client}).ForSession(session)
	}
	names := [][2]string{{"a", ""}, {"b", ""}, {"a", "b"}, {"b", "a"}, {"ab", ""}, {"a", "a"}, {"", ""}, {"", "a"}, {"", "\x00"}}
	for i, name := range names {
		_, ok := open(name[0], name[1]).Seen("/f")
		require.False(t, ok, "%q before it looked", name)
		seen := sample(t, "/f", fmt.Appendf(nil, "version %d\n", i))
		require.NoError(t, open(name[0], name[1]).Remember(seen))
	}
	for i, name := range names {
		seen, ok := open(name[0], name[1]).Seen("/f")
		require.True(t, ok)
		require.Equal(t, textfile.EtagOf(fmt.Appendf(nil, "version %d\n", i)), seen.Index.Etag, "%q", name)
		recent := open(name[0], name[1]).RecentlySeen(10, nil)
		require.Len(t, recent, 1)
		require.Equal(t, seen.Index.Etag.Full(), recent[0].Etag)
	}
}

// The index of a large file is computed once for all clients. It does not
// contain the lines shown to one of them.
func TestClientsShareTheIndexOfALargeFile(t *testing.T) {
	dir := t.TempDir()
	one, other := state.New(state.Config{Dir: dir, Client: "one"}), state.New(state.Config{Dir: dir, Client: "other"})
	small := sample(t, "/small", []byte("a\nb\n"))
	require.NoError(t, one.Remember(small))
	_, ok := other.SeenWithStamp("/small", small.Stamp)
	require.False(t, ok)

	large := sample(t, "/large", make([]byte, textfile.LineIndexMin+1))
	large.Index.Lines = 10
	large.Ranges = []state.Range{sums(1, 10)}
	require.NoError(t, one.Remember(large))
	got, ok := other.SeenWithStamp("/large", large.Stamp)
	require.True(t, ok)
	require.Empty(t, got.Ranges)
	_, ok = other.Seen("/large")
	require.False(t, ok)
	changed := large.Stamp
	changed.ModTime++
	_, ok = other.SeenWithStamp("/large", changed)
	require.False(t, ok)

	told := sample(t, "/told", make([]byte, textfile.LineIndexMin+1))
	told.NamedEncoding = "big5"
	require.NoError(t, one.Remember(told))
	_, ok = other.SeenWithStamp("/told", told.Stamp)
	require.False(t, ok, "the encoding is one client's word")
}

// Records in the previous format are not read, and expire in their directory.
func TestOlderRecordsExpire(t *testing.T) {
	dir := t.TempDir()
	older := filepath.Join(dir, "seen-1")
	require.NoError(t, os.Mkdir(older, 0o700))
	for name, age := range map[string]time.Duration{"0123456789abcdef": 40 * 24 * time.Hour, "fedcba9876543210": time.Hour} {
		file := filepath.Join(older, name)
		require.NoError(t, os.WriteFile(file, []byte("0000000000000000\n{}"), 0o600))
		require.NoError(t, os.Chtimes(file, time.Now(), time.Now().Add(-age)))
	}
	require.NoError(t, state.New(state.Config{Dir: dir}).Remember(sample(t, "/f", []byte("x"))))
	require.NoFileExists(t, filepath.Join(older, "0123456789abcdef"))
	require.FileExists(t, filepath.Join(older, "fedcba9876543210"))
}

// The records stay bounded however many clients there are, each of which starts
// a process for one write.
func TestManyClientsAreBounded(t *testing.T) {
	dir := t.TempDir()
	const most, writes = 64, 3000
	for i := range writes {
		store := state.New(state.Config{Dir: dir, Client: fmt.Sprint(i), MaxBytes: most * 4096})
		require.NoError(t, store.Remember(sample(t, "/f", []byte("x"))))
	}
	// One process in 256 prunes, on average: the probability of 3000 writes in
	// which none of the last 2900 prunes is 1 in 80 000.
	require.Less(t, len(files(t, dir)), writes-100)
}
