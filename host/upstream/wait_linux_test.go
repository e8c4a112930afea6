package upstream

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNoThreadWaitsForAServer(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	require.NoError(t, err)
	threads := func() int {
		tasks, err := os.ReadDir("/proc/self/task")
		require.NoError(t, err)
		return len(tasks)
	}
	spawner := NewSpawner(nil)
	defer spawner.Close()
	const servers = 20 // few enough for 256 descriptors
	before := threads()
	var all []*process
	for range servers {
		p, err := spawner.start(Config{Command: []string{sleep, "600"}, KillsOwnTree: true}, func() {})
		require.NoError(t, err)
		all = append(all, p)
	}
	time.Sleep(50 * time.Millisecond) // those that wait do by now
	require.Less(t, threads()-before, servers/2)
	for _, p := range all {
		p.stop(0, time.Minute)
		require.Contains(t, p.exitText(), "terminated")
		p.closeOutput()
	}
}

func TestAnEndBeforeAnybodyWaits(t *testing.T) {
	for range 20 {
		child := exec.Command("true")
		require.NoError(t, child.Start())
		_, err := os.ReadFile("/proc/self/stat") // some time
		require.NoError(t, err)
		awaitEnd(child.Process)
		require.NoError(t, child.Wait())
	}
}
