package supervise

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// EnvironOf returns the environment of a process; ok is false during an exec.
func EnvironOf(pid int) (env []byte, ok bool) { return environOf(pid) }

// SupervisePortable runs the supervisor of macOS with Linux's process table, unconfined.
func SupervisePortable(control *os.File) int {
	list := func() (all []unixProcess) {
		names, err := filepath.Glob("/proc/[0-9]*/stat")
		if err != nil {
			return nil
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				continue
			}
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			f := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
			parent, _ := strconv.Atoi(f[1])
			group, _ := strconv.Atoi(f[2])
			started, _ := strconv.ParseInt(f[19], 10, 64)
			all = append(all, unixProcess{pid: pid, parent: parent, group: group, started: started, ended: f[0] == "Z" || f[0] == "X"})
		}
		return all
	}
	return superviseUnix(control, list, seatbeltArgv)
}
