//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package filelock_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/filelock"
)

// A lock that was freed must not seem held because another goroutine starts a
// process just then.
func TestUnlockWhileProcessesStart(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	program, err := exec.LookPath("true")
	require.NoError(t, err)
	var enough atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for !enough.Load() {
			exec.Command(program).Run() //nolint:errcheck // only its start matters
		}
	}()
	defer func() {
		enough.Store(true)
		<-ended
	}()
	for range 5000 {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
		require.NoError(t, err)
		free, err := filelock.TryLock(f)
		require.NoError(t, err)
		require.True(t, free)
		filelock.Unlock(f)
		require.NoError(t, f.Close())
	}
}
