package resident

import (
	"bytes"
	"os"
	"strconv"
)

// processUsage returns the resident memory in bytes and the processor time in seconds of a
// process, from /proc/PID/stat (see proc(5)); zeros if it has ended.
func processUsage(pid int) (memory int64, cpu float64) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	end := bytes.LastIndexByte(text, ')') // behind the program's name, which may hold anything
	if err != nil || end < 0 {
		return 0, 0
	}
	fields := bytes.Fields(text[end+1:]) // begins with field 3
	if len(fields) < 22 {
		return 0, 0
	}
	number := func(field int) int64 {
		n, _ := strconv.ParseInt(string(fields[field-3]), 10, 64) //nolint:errcheck // then it is zero
		return n
	}
	const ticks = 100 // of sysconf(_SC_CLK_TCK), which is 100 on every architecture of Linux
	return number(24) * int64(os.Getpagesize()), float64(number(14)+number(15)) / ticks
}
