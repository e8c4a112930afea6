package upstream

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// room is how much a pipe holds.
func room(t *testing.T, pipe *os.File) (size int) {
	raw, err := pipe.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) { size, err = unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0) }))
	require.NoError(t, err)
	return size
}

func pipes(t *testing.T, n int) (all []*os.File) {
	for range n {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		t.Cleanup(func() { r.Close(); w.Close() })
		all = append(all, w)
	}
	return all
}

// The system gives a user so much for pipes; a host with many servers leaves
// most of it to others.
func TestFewPipesAreWide(t *testing.T) {
	all := pipes(t, 2*maxWide)
	usual := room(t, all[0])
	jsonrpc.EnlargePipe(all[0])
	if room(t, all[0]) == usual {
		t.Skip("the system gives this user no more")
	}
	spawner := NewSpawner(nil)
	all = all[1:]
	var wires []*stdio
	for _, pipe := range all {
		s := &stdio{spawner: spawner}
		s.widenPipe(pipe)
		s.widenPipe(pipe) // which counts once
		wires = append(wires, s)
	}
	for i, pipe := range all {
		require.Equal(t, i < maxWide, room(t, pipe) > usual, i)
	}
	wires[0].releaseWidened()
	require.Equal(t, usual, room(t, all[maxWide]))
	again := &stdio{spawner: spawner}
	again.widenPipe(all[maxWide])
	require.Greater(t, room(t, all[maxWide]), usual)
	over := &stdio{spawner: spawner, endSeen: true}
	over.widenPipe(all[maxWide+1])
	require.Equal(t, int32(maxWide), spawner.widened.Load())
}
