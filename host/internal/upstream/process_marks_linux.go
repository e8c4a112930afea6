package upstream

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// killMarked kills all processes with a mark in their environment and their descendants,
// even if they left the group and the session. It repeats until it finds none, since a
// process may fork meanwhile.
func killMarked(mark string) {
	for range 20 {
		found := false
		for _, pid := range markedProcesses(mark) {
			found = syscall.Kill(pid, syscall.SIGKILL) == nil || found
		}
		if !found {
			return
		}
	}
}

// markedProcesses returns the processes with a mark. Processes of other users are not readable.
func markedProcesses(mark string) []int {
	names, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	var pids []int
	for _, name := range names {
		pid, err := strconv.Atoi(filepath.Base(name))
		if err != nil || pid <= 1 || pid == os.Getpid() {
			continue
		}
		environ, err := os.ReadFile(name + "/environ")
		if err != nil {
			continue
		}
		for entry := range bytes.SplitSeq(environ, []byte{0}) {
			if rest, ok := bytes.CutPrefix(entry, []byte(markName+"=")); ok && bytes.Contains(rest, []byte(mark)) {
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids
}
