package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	driver "modernc.org/sqlite"

	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/host/internal/store/sqlite"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// raw opens the database without this package.
func raw(t *testing.T, dir string) *sql.DB {
	t.Helper()
	connector, err := driver.NewConnector("file:" + filepath.ToSlash(filepath.Join(dir, "host.db")))
	require.NoError(t, err)
	return sql.OpenDB(connector)
}

// hold takes the database as a writer that takes long does.
func hold(t *testing.T, dir string) (release func()) {
	t.Helper()
	db := raw(t, dir)
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	_, err = conn.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	require.NoError(t, err)
	return func() {
		_, err := conn.ExecContext(t.Context(), "ROLLBACK")
		require.NoError(t, err)
		require.NoError(t, conn.Close())
		require.NoError(t, db.Close())
	}
}

func alter(t *testing.T, dir, text string) {
	t.Helper()
	db := raw(t, dir)
	_, err := db.Exec(text)
	require.NoError(t, err)
	require.NoError(t, db.Close())
}

func put(t *testing.T, s *store.Store, key string) error {
	t.Helper()
	_, err := s.Keys.Put(t.Context(), key, []byte("v"), store.Any, time.Time{})
	return err
}

func TestNewerSchemaIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := sqlite.New(sqlite.Config{Dir: dir})
	require.NoError(t, put(t, s, "k"))
	require.NoError(t, s.Close())
	alter(t, dir, "PRAGMA user_version = 2; CREATE TABLE news (a)")
	before, err := os.ReadFile(filepath.Join(dir, "host.db"))
	require.NoError(t, err)

	s = sqlite.New(sqlite.Config{Dir: dir})
	for range 2 {
		err = put(t, s, "k")
		require.ErrorIs(t, err, store.ErrNewer)
		require.ErrorContains(t, err, "has schema 2, and this version knows 1")
		require.ErrorContains(t, err, "update this one")
	}
	require.NoError(t, s.Close())
	after, err := os.ReadFile(filepath.Join(dir, "host.db"))
	require.NoError(t, err)
	require.True(t, bytes.Equal(before, after), "it is left as it was")
}

func TestOtherFilesAreRefused(t *testing.T) {
	t.Run("another program's database", func(t *testing.T) {
		dir := t.TempDir()
		alter(t, dir, "CREATE TABLE theirs (a)")
		s := sqlite.New(sqlite.Config{Dir: dir})
		defer s.Close()
		require.ErrorContains(t, put(t, s, "k"), "another program's")
	})
	t.Run("no database", func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "host.db"), bytes.Repeat([]byte("text\n"), 2000), 0o600))
		s := sqlite.New(sqlite.Config{Dir: dir})
		defer s.Close()
		require.ErrorContains(t, put(t, s, "k"), "move it")
	})
	t.Run("what was away comes back", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "state")
		require.NoError(t, os.WriteFile(dir, nil, 0o600))
		s := sqlite.New(sqlite.Config{Dir: dir})
		defer s.Close()
		require.Error(t, put(t, s, "k"))
		require.NoError(t, os.Remove(dir))
		require.NoError(t, put(t, s, "k"))
	})
}

func TestNobodyElseCanRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes do not protect files here")
	}
	dir := filepath.Join(t.TempDir(), "a dir?with#odd%41 name", "state")
	require.NoError(t, os.MkdirAll(dir, 0o755)) // which is put right
	s := sqlite.New(sqlite.Config{Dir: dir})
	require.NoError(t, put(t, s, "k"))
	_, err := s.Blobs.Create(t.Context(), "b", strings.NewReader("x"))
	require.NoError(t, err)
	var seen []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := d.Info()
		require.NoError(t, err)
		require.Zero(t, info.Mode().Perm()&0o077, path)
		seen = append(seen, d.Name())
		return nil
	}))
	require.Equal(t, []string{"state", "blobs", "b_b", "host.db", "host.db-shm", "host.db-wal"}, seen)
	require.NoError(t, s.Close())
	require.ErrorContains(t, put(t, s, "k"), "was closed")
}

func size(t *testing.T, dir string) int64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(dir, "host.db"))
	require.NoError(t, err)
	return info.Size()
}

// The database stays within its bound, says so, and goes on when there is
// space again; what was removed is given back.
func TestBound(t *testing.T) {
	const bound = 4 << 20
	dir := t.TempDir()
	s := sqlite.New(sqlite.Config{Dir: dir, MaxBytes: bound, NoSync: true})
	data := bytes.Repeat([]byte("x"), 200<<10)
	var err error
	for n := 0; err == nil; n++ {
		require.Less(t, n, 30)
		_, err = s.Log.Append(t.Context(), "log", data)
	}
	require.Equal(t, toolerr.NoSpace, toolerr.CodeOf(err), "%v", err)
	records, err := s.Log.Read(t.Context(), "log", 0, 100)
	require.NoError(t, err)
	require.NotEmpty(t, records)
	require.Equal(t, toolerr.NoSpace, toolerr.CodeOf(func() error { // and no part of a batch stays
		_, err := s.Log.Append(t.Context(), "other", []byte("small"), data, data)
		return err
	}()))
	records, err = s.Log.Read(t.Context(), "other", 0, 100)
	require.NoError(t, err)
	require.Empty(t, records)

	_, err = s.Log.Trim(t.Context(), "log", store.Retention{Bytes: 300 << 10})
	require.NoError(t, err)
	_, err = s.Log.Append(t.Context(), "log", data)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.Less(t, size(t, dir), int64(1<<20))
}

// What has expired does not stay in the database.
func TestExpiredIsRemoved(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	s := sqlite.New(sqlite.Config{Dir: dir, NoSync: true, Now: func() time.Time { return now }})
	for i := range 300 {
		_, err := s.Keys.Put(t.Context(), fmt.Sprint("k/", i), nil, store.Any, now.Add(time.Minute))
		require.NoError(t, err)
	}
	now = now.Add(time.Hour)
	for range 300 {
		require.NoError(t, put(t, s, "other"))
	}
	require.NoError(t, s.Close())
	db := raw(t, dir)
	defer db.Close()
	var left int
	require.NoError(t, db.QueryRow("SELECT count(*) FROM keys").Scan(&left))
	require.Equal(t, 1, left)
}

// A caller who goes while it waits does nothing, and keeps nobody.
func TestCancelledWhileItWaits(t *testing.T) {
	dir := t.TempDir()
	s := sqlite.New(sqlite.Config{Dir: dir, NoSync: true})
	defer s.Close()
	require.NoError(t, put(t, s, "k"))
	release := hold(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, err := s.Keys.Put(ctx, "late", nil, store.Any, time.Time{})
	require.Equal(t, toolerr.Timeout, toolerr.CodeOf(err), "%v", err)
	release()
	require.NoError(t, put(t, s, "k"))
	_, err = s.Keys.Get(t.Context(), "late")
	require.Equal(t, toolerr.NotFound, toolerr.CodeOf(err))
}
