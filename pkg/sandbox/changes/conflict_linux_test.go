package changes

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/nofollow"
)

// Two writes within one step of the kernel's clock get the same time.
func TestSettled(t *testing.T) {
	now := time.Now().UnixNano()
	for passed, want := range map[time.Duration]bool{0: false, 10 * time.Millisecond: false, time.Second: true, -time.Second: false} {
		require.Equal(t, want, isTimeSettled(now-int64(passed), now), passed)
	}
}

// A file whose time may be that of another version is compared by its content.
func TestHoldsWithoutATime(t *testing.T) {
	dir := t.TempDir()
	real, err := nofollow.Open(dir)
	require.NoError(t, err)
	defer real.Close() //nolint:errcheck // only read
	name := filepath.Join(dir, "a")
	look := func(text string) os.FileInfo {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		info, err := os.Lstat(name)
		require.NoError(t, err)
		return info
	}
	was := stateOfEntry(real, "a", look("one"), 0, true)
	was.Changed = 0
	require.True(t, was.isUnchanged(real, "a", look("one")))
	require.False(t, was.isUnchanged(real, "a", look("two")))
}
