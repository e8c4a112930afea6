package supervise

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// usage holds the resident memory of processes in bytes.
type usage struct {
	own    int64 // private to the processes
	mapped int64 // mapped files and shared memory
	pids   []string
}

// total returns all resident memory of the processes in bytes. shared is the
// memory that sharedBy found. It may be mapped as well, so only the larger of
// the two counts.
func (u usage) total(shared int64) int64 { return u.own + max(u.mapped, shared) }

// usageOf adds up the resident memory of a process's descendants. It reads the
// lists of children instead of all processes, since it is called every second.
func usageOf(pid, depth int) (all usage) {
	if depth > 1000 {
		return all
	}
	page := int64(os.Getpagesize())
	for _, name := range Children(strconv.Itoa(pid)) {
		text, err := os.ReadFile("/proc/" + name + "/statm")
		if fields := bytes.Fields(text); err == nil && len(fields) > 2 {
			resident, _ := strconv.ParseInt(string(fields[1]), 10, 64)
			shared, _ := strconv.ParseInt(string(fields[2]), 10, 64)
			all.own += (resident - shared) * page
			all.mapped += shared * page
			all.pids = append(all.pids, name)
		}
		if child, err := strconv.Atoi(name); err == nil {
			below := usageOf(child, depth+1)
			all.own += below.own
			all.mapped += below.mapped
			all.pids = append(all.pids, below.pids...)
		}
	}
	return all
}

// machineShared returns the bytes of shared memory on the whole machine,
// including tmpfs. It is an upper bound of sharedBy.
func machineShared() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Sharedram) * int64(info.Unit)
}

// sharedBy returns the bytes of memory that the command holds without mapping
// them: files of memfd_create and, with apart, files in its own /dev/shm and
// segments of System V memory.
func sharedBy(pids []string, apart bool) (sum int64) {
	if apart {
		var fs unix.Statfs_t
		if unix.Statfs("/dev/shm", &fs) == nil {
			sum += int64(fs.Blocks-fs.Bfree) * fs.Bsize
		}
		sum += segments()
	}
	seen := map[uint64]bool{}
	for _, pid := range pids {
		dir := "/proc/" + pid + "/fd"
		entries, _ := os.ReadDir(dir)
		for _, entry := range entries {
			path := dir + "/" + entry.Name()
			var file unix.Stat_t
			if to, err := os.Readlink(path); err != nil || !strings.HasPrefix(to, "/memfd:") || unix.Stat(path, &file) != nil || seen[file.Ino] {
				continue
			}
			seen[file.Ino] = true
			sum += file.Blocks * 512
		}
	}
	return sum
}

// segments returns the resident bytes of System V shared memory (shmget(2)).
func segments() int64 {
	const resident = 14 // the column, proc(5)
	return systemVColumn("shm", resident)
}

// semaphores returns the bytes of System V semaphores (semget(2)).
func semaphores() int64 {
	const count, size = 3, 64 // the column; struct sem of the kernel fills a cache line
	return systemVColumn("sem", count) * size
}

// systemVColumn returns the sum of a column of a table of /proc/sysvipc.
func systemVColumn(table string, column int) (sum int64) {
	text, _ := os.ReadFile("/proc/sysvipc/" + table)
	for line := range bytes.Lines(text) {
		if fields := bytes.Fields(line); len(fields) > column {
			n, _ := strconv.ParseInt(string(fields[column]), 10, 64)
			sum += n
		}
	}
	return sum
}

// holdsUnseen reports whether processes may hold shared memory that none of
// their tables show: descriptors queued on a socket (counted by fdinfo from
// Linux 5.18 on), a mapped file that no process has open, or unnamed memory.
// The kernel does not report the size of such memory.
func holdsUnseen(pids []string) bool {
	for _, pid := range pids {
		dir := "/proc/" + pid
		entries, err := os.ReadDir(dir + "/fd")
		if errors.Is(err, unix.EACCES) { // a process that is not dumpable
			return true
		}
		for _, entry := range entries {
			if to, err := os.Readlink(dir + "/fd/" + entry.Name()); err == nil && strings.HasPrefix(to, "socket:") && queues(dir+"/fdinfo/"+entry.Name()) {
				return true
			}
		}
		maps, err := os.ReadFile(dir + "/maps")
		if errors.Is(err, unix.EACCES) || bytes.Contains(maps, []byte(" /memfd:")) || bytes.Contains(maps, []byte(" /dev/zero (deleted)")) {
			return true
		}
	}
	return false
}

// queues reports whether descriptors are queued on a socket.
func queues(fdinfo string) bool {
	text, _ := os.ReadFile(fdinfo)
	_, rest, ok := strings.Cut(string(text), "scm_fds:")
	n, _, _ := strings.Cut(rest, "\n")
	return ok && strings.TrimSpace(n) != "0"
}
