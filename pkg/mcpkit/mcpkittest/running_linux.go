package mcpkittest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
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

// Suspend stops a process with SIGSTOP and waits until all of its threads have stopped: on a
// busy machine, the others run on until one of them has handled the signal. It fails the
// test if the process has ended, or if that takes longer than a minute.
func Suspend(t testing.TB, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatalf("process %d cannot be stopped: %v", pid, err)
	}
	for end := time.Now().Add(time.Minute); !areThreadsStopped(t, pid); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("process %d did not stop", pid)
		}
	}
}

// areThreadsStopped reports whether all threads of a process have stopped.
func areThreadsStopped(t testing.TB, pid int) bool {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(threads) == 0 {
		t.Fatalf("process %d has ended: %v", pid, err)
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		if err == nil && !bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" T")) {
			return false
		}
	}
	return true
}
