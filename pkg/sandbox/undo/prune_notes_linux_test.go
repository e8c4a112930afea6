package undo_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// runAndKeepInode runs a command that removes the directory d, which stays open until
// the end of the test. So the directory that Undo makes has another inode number.
func (b *bench) runAndKeepInode(script string) (id string) {
	b.T.Helper()
	removed, err := os.Open(filepath.Join(b.Root, "d"))
	require.NoError(b.T, err)
	b.T.Cleanup(func() { removed.Close() }) //nolint:errcheck // only read
	id, _ = b.run(script)
	require.NotEmpty(b.T, id)
	return id
}

// The undo of a later command adds notes to an old record. Prune removes the old record
// as if it had none.
func TestPruneAfterALaterUndo(t *testing.T) {
	b := newBench(t, proc.L2)
	b.RunOutside("mkdir d")
	old, _ := b.run("echo a > a")
	record := filepath.Join(b.dir, old)
	require.NoError(t, filepath.WalkDir(record, func(path string, _ fs.DirEntry, err error) error {
		require.NoError(t, err)
		return os.Chtimes(path, time.Time{}, time.Now().Add(-48*time.Hour))
	}))
	kept, _ := b.run("echo b > b")
	b.undo(b.runAndKeepInode("rmdir d"))
	require.FileExists(t, filepath.Join(record, "undone.notes"))
	b.store.Prune(1<<30, 24*time.Hour)
	list := b.store.List([]string{b.Root})
	require.Len(t, list, 1)
	require.Equal(t, kept, list[0].ID)
}

// Each undo of several commands adds its notes to the earlier records once.
func TestNotesAreWrittenOnce(t *testing.T) {
	b := newBench(t, proc.L2)
	b.RunOutside("mkdir d")
	first, _ := b.run("echo a > a")
	var ids []string
	for i := range 4 {
		ids = append(ids, b.runAndKeepInode("rmdir d; mkdir d; echo "+strconv.Itoa(i)+" > d/x; rm d/x"))
	}
	for len(ids) > 0 {
		b.undo(ids[len(ids)-1])
		ids = ids[:len(ids)-1]
	}
	text, err := os.ReadFile(filepath.Join(b.dir, first, "undone.notes"))
	require.NoError(t, err)
	seen := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		require.False(t, seen[line], "%q is twice in %q", line, text)
		seen[line] = true
	}
	require.GreaterOrEqual(t, len(seen), 4)
}
