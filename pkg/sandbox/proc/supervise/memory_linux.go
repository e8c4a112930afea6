package supervise

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// usage is what processes have in memory, in bytes.
type usage struct {
	own    int64 // and nobody else
	mapped int64 // of files, and of memory that is shared
	pids   []string
}

// total is all of it, where so much is in memory that can be shared: mapped or not.
func (u usage) total(shared int64) int64 { return u.own + max(u.mapped, shared) }

// usageOf sums up what the descendants of a process have in memory. It goes by
// the lists of children rather than by all processes: it is asked for every second.
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

// machineShared is how much memory of the whole machine is files that are nowhere
// else: as much as sharedBy can find at most.
func machineShared() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Sharedram) * int64(info.Unit)
}

// sharedBy is what the command keeps in memory without any process having it
// mapped, as it may: files of memfd_create, and those of its own /dev/shm and of
// System V, where it has such.
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

// segments is what shmget(2) has in memory.
func segments() (sum int64) {
	const resident = 14 // the column, proc(5)
	text, _ := os.ReadFile("/proc/sysvipc/shm")
	for line := range bytes.Lines(text) {
		if fields := bytes.Fields(line); len(fields) > resident {
			n, _ := strconv.ParseInt(string(fields[resident]), 10, 64)
			sum += n
		}
	}
	return sum
}

// holdsUnseen reports whether processes can keep shared memory that is in none
// of their tables: descriptors queued on a socket, which fdinfo counts from
// Linux 5.18 on, a mapping of a file that none has open, or of memory that
// has no name. How much there is behind these the kernel does not say.
func holdsUnseen(pids []string) bool {
	for _, pid := range pids {
		dir := "/proc/" + pid
		entries, err := os.ReadDir(dir + "/fd")
		if errors.Is(err, unix.EACCES) { // of a process that cannot be dumped
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

// queues reports whether descriptors wait on a socket.
func queues(fdinfo string) bool {
	text, _ := os.ReadFile(fdinfo)
	_, rest, ok := strings.Cut(string(text), "scm_fds:")
	n, _, _ := strings.Cut(rest, "\n")
	return ok && strings.TrimSpace(n) != "0"
}
