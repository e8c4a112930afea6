//go:build unix

package mcpkittest_test

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// A program that was just written starts, whatever is started at the same time.
func TestWriteProgramWhileProcessesStart(t *testing.T) {
	program, err := exec.LookPath("true")
	require.NoError(t, err)
	var enough atomic.Bool
	var others sync.WaitGroup
	defer others.Wait()
	defer enough.Store(true)
	for range 2 {
		others.Go(func() {
			for !enough.Load() {
				exec.Command(program).Run() //nolint:errcheck // only its start matters
			}
		})
	}
	dir := t.TempDir()
	for i := range 200 {
		path := filepath.Join(dir, strconv.Itoa(i))
		mcpkittest.CopyProgram(t, program, path)
		require.NoError(t, exec.Command(path).Run())
	}
}
