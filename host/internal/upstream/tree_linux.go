package upstream

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// sweep kills every process that was started with a mark in its environment,
// and what these started: also those that left the group, and the session. It
// looks until it finds none, since one may fork meanwhile.
func sweep(mark string) {
	for range 20 {
		found := false
		for _, pid := range marked(mark) {
			found = syscall.Kill(pid, syscall.SIGKILL) == nil || found
		}
		if !found {
			return
		}
	}
}

// marked returns the processes with a mark. Those of other users cannot be
// looked at.
func marked(mark string) []int {
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
