package undo

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// A directory that an undo has made can have the inode number of a recorded one, which is
// gone: it is another directory.
func TestMadeInTheInodeOfARemovedOne(t *testing.T) {
	u := &undoRun{aliases: map[fileKey]uint64{{1, 5}: 9, {1, 7}: 5, {0, 8}: 10}}
	for _, c := range []struct {
		is, was int64
		same    bool
	}{
		{5, 5, false}, {5, 9, true}, {7, 5, true}, {7, 9, true}, {7, 7, false}, {8, 8, false}, {8, 10, true}, {9, 9, true}, {11, 11, true}, {11, 9, false},
	} {
		is := supervise.UndoState{Mode: unix.S_IFDIR | 0o755, Dev: 1, Ino: c.is}
		was := supervise.UndoState{Mode: unix.S_IFDIR | 0o700, Dev: 1, Ino: c.was}
		require.Equal(t, c.same, u.isUnchanged(is, &was), "%d, recorded %d", c.is, c.was)
		require.Equal(t, c.same, u.isRecorded(is, &was), "%d, recorded %d", c.is, c.was)
	}
}
