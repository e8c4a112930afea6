package undo_test

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/undo"
)

// Several servers remove old records at the same time, and an undo removes its
// own record: a record may vanish after it was listed.
func TestPruneAtTheSameTime(t *testing.T) {
	dir := t.TempDir()
	for range 5 {
		for i := range 100 {
			record := filepath.Join(dir, "u"+strconv.Itoa(i))
			require.NoError(t, os.Mkdir(record, 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(record, "log"), nil, 0o600))
		}
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { undo.New(dir).Prune(0, time.Hour) })
		}
		all.Wait()
		undo.New(dir).Prune(0, time.Hour)
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left)
	}
}
