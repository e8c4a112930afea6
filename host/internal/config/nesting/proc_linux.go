package nesting

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// maxAncestors bounds the walk up the process tree.
const maxAncestors = 256

// ancestors returns the hosts among the ancestors of this process, up to the first
// bundled tool. Processes of other users cannot be examined.
func ancestors(marks func(args, env []string, dir string) []string) (hosts []Host) {
	pid := os.Getppid()
	for range maxAncestors {
		if pid <= 1 {
			return hosts
		}
		proc := "/proc/" + strconv.Itoa(pid)
		args := readStrings(proc + "/cmdline")
		exe, err := os.Readlink(proc + "/exe")
		if err == nil && bundledTool(exe) {
			return hosts
		}
		if err == nil && len(args) > 1 && ServerSubcommand(args[1:]) != "" && (IsSelf(proc+"/exe") || isHostName(exe)) {
			dir, err := os.Readlink(proc + "/cwd")
			if err != nil {
				dir = ""
			}
			hosts = append(hosts, Host{pid, marks(args[1:], readStrings(proc+"/environ"), dir)})
		}
		pid = parentOf(pid)
	}
	return hosts
}

// bundledTool reports whether a program is a bundled tool that runs commands of a
// model, in whatever directory.
func bundledTool(exe string) bool {
	name := strings.TrimSuffix(filepath.Base(exe), " (deleted)")
	return name == "mcp-bash" || name == "mcp-dispatch_agent"
}

// readStrings returns the strings in a file, each of which ends with NUL; nil if it
// cannot be read.
func readStrings(name string) []string {
	text, err := os.ReadFile(name)
	if err != nil || len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}

// statFields returns the fields of /proc/PID/stat after the program's name, which may
// contain any character; the first is the state. It returns nil if there is no such
// process.
func statFields(pid int) [][]byte {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	end := bytes.LastIndexByte(text, ')')
	if err != nil || end < 0 {
		return nil
	}
	return bytes.Fields(text[end+1:])
}

// parentOf returns the process id of a process's parent, 0 if it is unknown.
func parentOf(pid int) int {
	if fields := statFields(pid); len(fields) > 1 {
		parent, err := strconv.Atoi(string(fields[1]))
		if err == nil {
			return parent
		}
	}
	return 0
}

// startTime returns the start time of a process, in clock ticks after the system's
// start as text, or "" if no process has this id.
func startTime(pid int) string {
	const field = 19 // proc_pid_stat(5): starttime is the 22nd of all
	if fields := statFields(pid); len(fields) > field {
		return string(fields[field])
	}
	return ""
}
