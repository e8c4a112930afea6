package upstream

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
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
	// The runtime starts threads only once it notices that others block.
	waits := func() (polled, blocked int) {
		stacks := make([]byte, 4<<20)
		for _, stack := range strings.Split(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
			switch {
			case strings.Contains(stack, "upstream.waitWithoutThread(") && strings.Contains(stack, " [IO wait"):
				polled++
			case strings.Contains(stack, "os.(*Process).Wait("):
				blocked++
			}
		}
		return polled, blocked
	}
	require.Eventually(t, func() bool {
		polled, blocked := waits()
		return polled+blocked >= servers
	}, time.Minute, 5*time.Millisecond, "every process is waited for")
	_, blocked := waits()
	require.Zero(t, blocked, "processes that a thread waits for")
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
		waitWithoutThread(child.Process)
		require.NoError(t, child.Wait())
	}
}
