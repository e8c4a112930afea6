package supervise

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// memoryUsage holds the memory of processes in bytes.
type memoryUsage struct {
	own    int64    // resident and private to the processes, with their page tables
	mapped int64    // mapped files and shared memory that are resident
	pids   []string // of the processes
	live   []string // for each process, the directory in /proc of a thread that has not ended
}

// total returns all memory of the processes in bytes. shared is the result of
// unmappedSharedMemory. It may be mapped as well, so only the larger of the two
// counts.
func (u memoryUsage) total(shared int64) int64 { return u.own + max(u.mapped, shared) }

// descendantMemory adds up the memory of a process's descendants, without its own. It
// reads the lists of children instead of all processes, since it is called every second.
// An error means that the figures of a process that exists cannot be read.
func descendantMemory(pid int) (all memoryUsage, err error) {
	queue, seen := []string{strconv.Itoa(pid)}, map[string]bool{}
	for ; len(queue) > 0; queue = queue[1:] {
		children, err := childrenOf(queue[0])
		if err != nil {
			return all, err
		}
		for _, child := range children {
			if seen[child] {
				continue
			}
			seen[child] = true
			queue = append(queue, child)
			if err := all.add(child); err != nil {
				return all, err
			}
		}
	}
	return all, nil
}

// add adds the memory of the process pid. It reads the figures of another
// thread if the first one has ended, since the figures of the process are then
// zero. A process that has ended adds nothing.
func (u *memoryUsage) add(pid string) error {
	dir := "/proc/" + pid
	has, err := u.addStatusIn(dir)
	if err != nil || has {
		if has {
			u.pids, u.live = append(u.pids, pid), append(u.live, dir)
		}
		return err
	}
	threads, err := readProcDir(dir + "/task")
	for _, thread := range threads {
		dir := dir + "/task/" + thread
		if has, err := u.addStatusIn(dir); err != nil {
			return err
		} else if has {
			u.pids, u.live = append(u.pids, pid), append(u.live, dir)
			return nil
		}
	}
	return err
}

// addStatusIn adds the memory figures of the file status in dir, a directory of
// /proc. has is false if it has none, because the thread has ended.
func (u *memoryUsage) addStatusIn(dir string) (has bool, err error) {
	text, err := os.ReadFile(dir + "/status")
	if err != nil {
		return false, ignoreEnded(err)
	}
	for line := range bytes.Lines(text) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		var sum *int64
		switch string(name) {
		case "RssAnon", "VmPTE":
			sum = &u.own
		case "RssFile", "RssShmem":
			sum = &u.mapped
		default:
			continue
		}
		kilobytes, _ := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(value), []byte("kB")))), 10, 64)
		*sum += kilobytes << 10
		has = true
	}
	return has, nil
}

// readProcDir returns the names in a directory of /proc, none if it is gone.
func readProcDir(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, ignoreEnded(err)
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	return names, ignoreEnded(err)
}

// ignoreEnded returns nil if err means that a process has ended, else err.
func ignoreEnded(err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// machineSharedMemory returns the bytes of shared memory on the whole machine,
// including tmpfs. It is an upper bound of unmappedSharedMemory.
func machineSharedMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Sharedram) * int64(info.Unit)
}

// unmappedSharedMemory returns the bytes of memory that the command holds without mapping
// them: files of memfd_create and, with ownNamespaces, files in its own /dev/shm and
// segments of System V memory.
func unmappedSharedMemory(pids []string, ownNamespaces bool) (sum int64) {
	if ownNamespaces {
		var fs unix.Statfs_t
		if unix.Statfs("/dev/shm", &fs) == nil {
			sum += int64(fs.Blocks-fs.Bfree) * fs.Bsize
		}
		sum += systemVSharedMemory()
	}
	seen := map[uint64]bool{}
	for _, dir := range descriptorTables(pids) {
		names, _ := readProcDir(dir)
		for _, name := range names {
			path := dir + "/" + name
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

// systemVSharedMemory returns the resident bytes of System V shared memory (shmget(2)).
func systemVSharedMemory() int64 {
	const resident = 14 // the column, proc(5)
	return systemVColumn("shm", resident)
}

// kernelObjectMemory returns the bytes of kernel memory that a command at L2 holds
// outside of its processes: semaphores (semget(2)), messages (msgget(2)) and
// the inodes of its /dev/shm.
func kernelObjectMemory() (sum int64) {
	const count, semaphore = 3, 64 // the column; struct sem of the kernel fills a cache line
	sum = systemVColumn("sem", count) * semaphore
	const content, messages, header = 3, 4, 64 // columns; struct msg_msg and the rest of its slab object
	sum += systemVColumn("msg", content) + systemVColumn("msg", messages)*header
	const inode = 1024 // struct shmem_inode_info and the directory entry
	var fs unix.Statfs_t
	if unix.Statfs("/dev/shm", &fs) == nil {
		sum += int64(fs.Files-fs.Ffree) * inode
	}
	return sum
}

// systemVColumn returns the sum of column, counted from 0, in the file table of
// /proc/sysvipc. It is 0 if the file cannot be read.
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

// descriptorTables returns the directories /proc/PID/task/TID/fd with the open
// files of processes, one for each table of descriptors. The threads of a
// process share their table, except in a hostile program.
func descriptorTables(pids []string) (dirs []string) {
	for _, pid := range pids {
		threads, _ := readProcDir("/proc/" + pid + "/task")
		first := ""
		for _, thread := range threads {
			if first != "" && shareDescriptors(first, thread) {
				continue
			}
			dir := "/proc/" + pid + "/task/" + thread + "/fd"
			if first == "" {
				if names, err := readProcDir(dir); err == nil && len(names) == 0 {
					continue // it has ended
				}
				first = thread
			}
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// shareDescriptors reports whether two threads are known to have the same table
// of descriptors.
func shareDescriptors(a, b string) bool {
	const files = 2 // KCMP_FILES (linux/kcmp.h)
	one, _ := strconv.Atoi(a)
	other, _ := strconv.Atoi(b)
	order, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(one), uintptr(other), files, 0, 0, 0)
	return errno == 0 && order == 0
}

// mayHoldUnseenMemory reports whether processes may hold shared memory that none of
// their tables show: descriptors queued on a socket (counted by fdinfo from
// Linux 5.18 on), a mapped file that no process has open, or unnamed memory.
// The kernel does not report the size of such memory.
func mayHoldUnseenMemory(u memoryUsage) bool {
	for _, dir := range descriptorTables(u.pids) {
		names, err := readProcDir(dir)
		if errors.Is(err, unix.EACCES) { // a process that is not dumpable
			return true
		}
		for _, name := range names {
			if to, err := os.Readlink(dir + "/" + name); err == nil && strings.HasPrefix(to, "socket:") && hasQueuedDescriptors(dir+"info/"+name) {
				return true
			}
		}
	}
	for _, dir := range u.live {
		maps, err := os.ReadFile(dir + "/maps")
		if errors.Is(err, unix.EACCES) || bytes.Contains(maps, []byte(" /memfd:")) || bytes.Contains(maps, []byte(" /dev/zero (deleted)")) {
			return true
		}
	}
	return false
}

// hasQueuedDescriptors reports whether descriptors are queued on a socket.
func hasQueuedDescriptors(fdinfo string) bool {
	text, _ := os.ReadFile(fdinfo)
	_, rest, ok := strings.Cut(string(text), "scm_fds:")
	n, _, _ := strings.Cut(rest, "\n")
	return ok && strings.TrimSpace(n) != "0"
}
