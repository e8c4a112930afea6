package mcpkittest

import (
	"bytes"
	"fmt"
	"os"
)

// IsRunning reports whether the process exists and has not exited. A zombie
// counts as exited: in a container whose process 1 reaps no orphans, a killed
// orphan stays a zombie forever.
func IsRunning(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// "pid (name) state …" of proc_pid_stat(5); the name can contain ")".
	state := stat[bytes.LastIndexByte(stat, ')')+1:]
	return !bytes.HasPrefix(state, []byte(" Z")) && !bytes.HasPrefix(state, []byte(" X"))
}
