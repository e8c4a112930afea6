package mcpkittest

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
)

// RSS returns the current and peak resident memory of a process in bytes. ok is
// false on systems that do not report it (all except Linux).
func RSS(t testing.TB, pid int) (now, peak int64, ok bool) {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0, 0, false
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatalf("memory of process %d: %v", pid, err)
	}
	for line := range strings.Lines(string(status)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kib); n == 1 {
			now, ok = kib<<10, true
		}
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			peak = kib << 10
		}
	}
	return now, peak, ok
}
