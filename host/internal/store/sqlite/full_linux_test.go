package sqlite_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/host/internal/store/sqlite"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// On a disk that is full every write says so, nothing is half done, what was
// there is read, and when there is space again it goes on.
func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("a small disk takes root: %v", err)
	}
	defer func() { require.NoError(t, syscall.Unmount(dir, 0)) }()
	ballast := filepath.Join(dir, "ballast")
	fill := func() {
		f, err := os.OpenFile(ballast, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		require.NoError(t, err)
		for err == nil {
			_, err = f.Write(make([]byte, 4096))
		}
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.NoError(t, f.Close())
	}
	full := func(err error) {
		t.Helper()
		require.Equal(t, toolerr.NoSpace, toolerr.CodeOf(err), "%v", err)
	}

	// From the beginning.
	fill()
	s := sqlite.New(sqlite.Config{Dir: filepath.Join(dir, "state")})
	defer s.Close()
	full(put(t, s, "k"))
	require.NoError(t, os.Remove(ballast))
	require.NoError(t, put(t, s, "k"))

	// While it is open.
	_, err := s.Log.Append(t.Context(), "log", []byte("before"))
	require.NoError(t, err)
	_, err = s.Blobs.Create(t.Context(), "before", strings.NewReader("x"))
	require.NoError(t, err)
	fill()
	err = nil
	for n := 0; err == nil; n++ { // the files beside the database have some space yet
		require.Less(t, n, 20)
		_, err = s.Log.Append(t.Context(), "log", []byte("small"), bytes.Repeat([]byte("x"), 512<<10))
	}
	full(err)
	_, err = s.Blobs.Create(t.Context(), "blob", bytes.NewReader(make([]byte, 1<<20)))
	full(err)
	records, err := s.Log.Read(t.Context(), "log", 0, 10)
	require.NoError(t, err)
	require.Equal(t, "before", string(records[0].Data))
	e, err := s.Keys.Get(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, "v", string(e.Value))

	require.NoError(t, os.Remove(ballast))
	_, err = s.Keys.Put(t.Context(), "k", []byte("w"), e.Version, time.Time{})
	require.NoError(t, err)
	_, err = s.Log.Append(t.Context(), "log", []byte("after"))
	require.NoError(t, err)
	again, err := s.Log.Read(t.Context(), "log", records[len(records)-1].Cursor, 10)
	require.NoError(t, err)
	require.Equal(t, "after", string(again[0].Data))
	_, err = s.Blobs.Create(t.Context(), "blob", strings.NewReader("x"))
	require.NoError(t, err)
	_, err = s.Log.Trim(t.Context(), "*", store.Retention{Bytes: 1})
	require.NoError(t, err)
}
