package state

import (
	"bytes"
	"fmt"
	"os"
	"sync"
)

// parentIdentity identifies the process that started this one, uniquely across
// reboots, by the boot, the process id and its start time. It is determined
// once, because an orphan gets another parent.
var parentIdentity = sync.OnceValue(func() string {
	parent := os.Getppid()
	if parent == 0 { // in another pid namespace, as with docker exec: unknown
		return fmt.Sprintf("of %s", processIdentity(os.Getpid()))
	}
	return processIdentity(parent)
})

// processIdentity returns a text that identifies a process uniquely across
// reboots: the boot, the process id and the start time.
func processIdentity(pid int) string {
	// Values that cannot be read, as without /proc, only make the result less
	// unique.
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	namespace, _ := os.Readlink("/proc/self/ns/pid")
	return fmt.Sprintf("%s %s %d %s", bytes.TrimSpace(boot), namespace, pid, processStartTicks(pid))
}

// processStartTicks returns field 22 of /proc/PID/stat (proc_pid_stat(5)): the clock
// ticks from boot to the process's start. The program name before it may contain any
// character. It returns nil if the process has ended.
func processStartTicks(pid int) []byte {
	const afterName = 22 - 3
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= afterName {
		return nil
	}
	return fields[afterName]
}
