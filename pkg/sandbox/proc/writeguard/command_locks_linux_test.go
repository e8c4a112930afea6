package writeguard

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func commandLocksIn(t testing.TB, dir string) *commandLocks {
	p := openCommandLocks(dir)
	t.Cleanup(p.close)
	return p
}

func subdirectory(t testing.TB, dir, name string) string {
	path := filepath.Join(dir, name)
	require.NoError(t, os.Mkdir(path, 0o755))
	return path
}

// TestPresence: if one root contains another, each sees that a command runs in
// the other. A root next to them sees neither.
func TestPresence(t *testing.T) {
	dir := t.TempDir()
	upper := subdirectory(t, dir, "upper")
	lower, side := subdirectory(t, upper, "lower"), subdirectory(t, upper, "side")
	u, l, s, same := commandLocksIn(t, upper), commandLocksIn(t, lower), commandLocksIn(t, side), commandLocksIn(t, lower)
	l.acquire()
	require.Empty(t, l.commandsOfOthers(), "its own command")
	require.Empty(t, s.commandsOfOthers())
	require.Len(t, same.commandsOfOthers(), 1)

	list := u.commandsOfOthers()
	require.Len(t, list, 1)
	require.True(t, list[0].onlyInOneRoot)
	d := otherCommands{root: upper}
	require.True(t, d.mayChange(list[0], "lower/.mcp.json"))
	require.False(t, d.mayChange(list[0], "side/.mcp.json"))
	l.release()
	require.Empty(t, same.commandsOfOthers())
	require.Empty(t, u.commandsOfOthers())
	u.acquire()
	for _, p := range []*commandLocks{l, s} {
		require.Len(t, p.commandsOfOthers(), 1)
		require.False(t, p.commandsOfOthers()[0].onlyInOneRoot)
	}
}

// TestPresenceWithManyLocks: a command cannot hide behind more locks than are
// read.
func TestPresenceWithManyLocks(t *testing.T) {
	dir := t.TempDir()
	p, other := commandLocksIn(t, dir), commandLocksIn(t, dir)
	other.acquire()
	for i := range int64(2 * maxLocksRead) {
		setByteLock(other.dirs[0], unix.F_RDLCK, other.since+2*i+2, 1)
	}
	oldest := p.commandsOfOthers()[0].since
	for _, one := range p.commandsOfOthers() {
		if one.since.Before(oldest) {
			oldest = one.since
		}
	}
	require.False(t, oldest.UnixNano() > other.since)
}

func BenchmarkPresence(b *testing.B) {
	p := commandLocksIn(b, b.TempDir())
	for b.Loop() {
		p.acquire()
		p.commandsOfOthers()
		p.commandsOfOthers()
		p.release()
	}
}
