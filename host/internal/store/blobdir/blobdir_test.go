package blobdir_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/host/internal/store/blobdir"
)

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// What killed writers left counts in the quota and goes with Trim, once it is
// old; what is not the store's own stays.
func TestLeftBehind(t *testing.T) {
	dir := t.TempDir()
	b := blobdir.New(blobdir.Config{Dir: dir, Quota: store.Quota{Blob: 100, Total: 100}})
	_, err := b.Create(t.Context(), "a", strings.NewReader(strings.Repeat("x", 40)))
	require.NoError(t, err)
	for _, name := range []string{"aside-old", "aside-new", "notes.txt"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), make([]byte, 30), 0o600))
	}
	long := time.Now().Add(-2 * time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(dir, "aside-old"), long, long))
	_, err = b.Create(t.Context(), "b", strings.NewReader("xxxx"))
	require.ErrorContains(t, err, "exceed the limit of 100 bytes")
	n, err := b.Trim(t.Context(), store.Retention{})
	require.NoError(t, err)
	require.Zero(t, n)
	require.Equal(t, []string{"aside-new", "b_a", "notes.txt"}, names(t, dir))
	_, err = b.Create(t.Context(), "b", strings.NewReader("xxxx"))
	require.NoError(t, err)
}

func TestNothingIsLeftOfWhatFailed(t *testing.T) {
	dir := t.TempDir()
	b := blobdir.New(blobdir.Config{Dir: dir, Quota: store.Quota{Blob: 10}})
	broken := errors.New("broken")
	_, err := b.Create(t.Context(), "a", iotest.ErrReader(broken))
	require.ErrorIs(t, err, broken)
	_, err = b.Create(t.Context(), "a", strings.NewReader(strings.Repeat("x", 11)))
	require.ErrorContains(t, err, "exceeds the limit of 10 bytes")
	require.Empty(t, names(t, dir))
}

func TestWhatIsNoFileIsNoBlob(t *testing.T) {
	dir := t.TempDir()
	b := blobdir.New(blobdir.Config{Dir: dir})
	require.NoError(t, os.Mkdir(filepath.Join(dir, "b_a"), 0o700))
	_, _, err := b.Open(t.Context(), "a")
	require.Error(t, err)
	_, err = b.Stat(t.Context(), "a")
	require.Error(t, err)
	_, err = b.Create(t.Context(), "a", strings.NewReader("x"))
	require.Error(t, err)
}

// Content can be sought in, so that a part of it can be served.
func TestSeek(t *testing.T) {
	b := blobdir.New(blobdir.Config{Dir: t.TempDir()})
	_, err := b.Create(t.Context(), "a", strings.NewReader("0123456789"))
	require.NoError(t, err)
	r, _, err := b.Open(t.Context(), "a")
	require.NoError(t, err)
	defer r.Close()
	_, err = r.(io.Seeker).Seek(7, io.SeekStart)
	require.NoError(t, err)
	rest, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "789", string(rest))
}
