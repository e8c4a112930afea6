package prometheus

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// readSystem sets the values that the kernel provides.
func (p *Process) readSystem() {
	if entries, err := os.ReadDir("/proc/self/fd"); err == nil {
		p.Open = len(entries) - 1 // one is for reading them
	}
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		if fields := strings.Fields(string(text)); len(fields) > 1 {
			pages, err := strconv.ParseUint(fields[1], 10, 64)
			if err == nil {
				p.Resident = pages * uint64(os.Getpagesize())
			}
		}
	}
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil {
		p.MaxOpen = limit.Cur
	}
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) == nil {
		p.CPU = time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
	}
}
