package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/resident"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// copyHost copies the program of the host to a file, with some bytes more, and renames it
// over the file of the other version.
func copyHost(t *testing.T, file, more string) {
	t.Helper()
	from, err := exec.LookPath("mcp-host")
	require.NoError(t, err)
	program, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file+".new", append(program, more...), 0o700)) //nolint:gosec // a program
	require.NoError(t, os.Rename(file+".new", file))
}

// TestUpgradeUnderLoad replaces the program while two hosts of the old version have calls
// under way. Hosts of the new version use a process of their own; the process of the old
// version ends with its last host; no call is lost.
func TestUpgradeUnderLoad(t *testing.T) {
	t.Parallel()
	state, pids, args := sharing(t, "")
	program := filepath.Join(t.TempDir(), "mcp-host")
	status := func() *resident.Status {
		out, err := exec.Command(program, "status", "--shared", "--json", "--state", state).Output()
		require.NoError(t, err)
		var s *resident.Status
		require.NoError(t, json.Unmarshal(out, &s))
		return s
	}
	var stop atomic.Bool
	var ofOldCalls, ofNewerCalls atomic.Int64
	var wrong sync.Map
	load := func(c *stdioClient, all *sync.WaitGroup, calls *atomic.Int64) {
		for range 4 {
			all.Go(func() {
				for i := 0; !stop.Load(); i++ {
					text := fmt.Sprint(i)
					line := <-c.begin("tools/call", fmt.Sprintf(`{"name":"fix__echo","arguments":{"text":%q}}`, text))
					if calls.Add(1); !strings.Contains(line, `\"`+text+`\"`) {
						wrong.Store(line, true)
						return
					}
				}
			})
		}
	}
	copyHost(t, program, "1")
	var old, newer []*stdioClient
	var ofOld, ofNewer sync.WaitGroup
	for range 2 {
		old = append(old, connectProgram(t, program, "", args...))
		load(old[len(old)-1], &ofOld, &ofOldCalls)
	}
	require.Eventually(t, func() bool { return ofOldCalls.Load() > 100 }, time.Minute, time.Millisecond)
	first := status()
	require.NotNil(t, first)

	copyHost(t, program, "22")
	t.Cleanup(func() { stopSharing(t, program, state) })
	require.Nil(t, status(), "the new version has no process yet")
	for range 2 {
		newer = append(newer, connectProgram(t, program, "", args...))
		load(newer[len(newer)-1], &ofNewer, &ofNewerCalls)
	}
	before := ofOldCalls.Load()
	require.Eventually(t, func() bool { return ofNewerCalls.Load() > 100 && ofOldCalls.Load() > before+100 }, time.Minute, time.Millisecond)
	second := status()
	require.NotNil(t, second)
	require.NotEqual(t, first.PID, second.PID)
	require.Len(t, started(t, pids), 2, "one server of each version")
	require.True(t, mcpkittest.IsRunning(first.PID), "it has hosts")

	stop.Store(true)
	ofOld.Wait()
	ofNewer.Wait()
	wrong.Range(func(line, _ any) bool { t.Errorf("%s", line); return true })
	old[0].close()
	require.Contains(t, old[1].call(t, "fix__echo", `{"text":"a"}`), `\"a\"`)
	old[1].close()
	require.Eventually(t, func() bool { return !mcpkittest.IsRunning(first.PID) }, time.Minute, 5*time.Millisecond, "the process of the old version ends with its last host")
	require.Contains(t, newer[0].call(t, "fix__echo", `{"text":"b"}`), `\"b\"`)
	require.Len(t, started(t, pids), 2)
}
