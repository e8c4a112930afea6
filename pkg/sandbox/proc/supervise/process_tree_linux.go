package supervise

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// processStat holds the fields of /proc/PID/stat (proc_pid_stat(5)) that are
// needed to end a command.
type processStat struct {
	parent   int
	ending   bool // it has ended or is exiting: none of its threads runs any more
	isKernel bool // it is a thread of the kernel
}

// exitingFlag is PF_EXITING in the flags of /proc/PID/stat: the process is only
// freeing its resources. On a busy machine that can take a while.
const exitingFlag = 0x4

// kernelThreadFlag is PF_KTHREAD in the same flags.
const kernelThreadFlag = 0x200000

// readProcesses reads the state of all visible processes, by process id. It returns nil
// if /proc cannot be read.
func readProcesses() map[int]processStat {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	all := make(map[int]processStat, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		s, ok := statOf(name)
		if !ok {
			continue // it has ended
		}
		all[pid] = s
	}
	return all
}

// statOf reads the state of one process. ok is false if it has ended.
func statOf(name string) (s processStat, ok bool) {
	text, err := os.ReadFile("/proc/" + name + "/stat")
	if err != nil {
		return s, false
	}
	// The name, in parentheses, may contain any character.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 18 {
		return s, false
	}
	flags, _ := strconv.ParseUint(string(fields[6]), 10, 64)
	threads, _ := strconv.Atoi(string(fields[17]))
	// The first thread may have ended long before the others.
	s.ending = threads <= 1 && (bytes.ContainsAny(fields[0], "ZXx") || flags&exitingFlag != 0)
	s.isKernel = flags&kernelThreadFlag != 0
	s.parent, _ = strconv.Atoi(string(fields[1]))
	return s, true
}

// descendants returns the descendants of this process that have not ended.
// Since orphans are reparented to this process, these are all of them. By
// default it reads the lists of children, which is fast but may miss a process
// that is being reparented (proc(5)). With thorough it reads all processes of
// the machine.
func descendants(thorough bool) map[int]processStat {
	if !thorough && unix.Access("/proc/thread-self/children", unix.F_OK) == nil {
		found := map[int]processStat{}
		listChildren(strconv.Itoa(os.Getpid()), found)
		return found
	}
	all := readProcesses()
	own := os.Getpid()
	found := map[int]processStat{}
	for pid := range all {
		for up, steps := pid, 0; steps < len(all); steps++ {
			s, ok := all[up]
			if !ok {
				break
			}
			if s.parent == own {
				if !all[pid].ending {
					found[pid] = all[pid]
				}
				break
			}
			up = s.parent
		}
	}
	return found
}

// listChildren adds the descendants of the process pid that have not ended to
// found, by process id.
func listChildren(pid string, found map[int]processStat) {
	for _, name := range Children(pid) {
		child, err := strconv.Atoi(name)
		if _, known := found[child]; known || err != nil {
			continue
		}
		if s, ok := statOf(name); ok {
			found[child] = s
			listChildren(name, found)
			if s.ending {
				delete(found, child)
			}
		}
	}
}

// Children returns the process ids of the children of all threads of a
// process. The list is empty if the kernel does not provide it.
func Children(pid string) (names []string) {
	names, _ = childrenOf(pid)
	return names
}

// childrenOf returns the process ids of the children of all threads of a process, and
// the error if a list exists and cannot be read.
func childrenOf(pid string) (names []string, err error) {
	threads, err := readProcDir("/proc/" + pid + "/task")
	for _, thread := range threads {
		text, failed := os.ReadFile("/proc/" + pid + "/task/" + thread + "/children")
		if failed = ignoreEnded(failed); failed != nil {
			err = failed
		}
		names = append(names, strings.Fields(string(text))...)
	}
	return names, err
}

// isPIDNamespaceInit reports whether this process is the first of a pid namespace. Then
// kill(-1) signals all other processes in it.
func isPIDNamespaceInit() bool { return os.Getpid() == 1 }

// signalAll sends signal to every descendant once, and SIGCONT, so that stopped
// ones receive it.
func (g *commandMonitor) signalAll(signal unix.Signal) {
	after := !g.isBashRunning()
	for pid := range descendants(false) {
		g.countLeftProcess(pid, after)
		if !isPIDNamespaceInit() {
			unix.Kill(pid, signal)
			unix.Kill(pid, unix.SIGCONT)
		}
	}
	if isPIDNamespaceInit() {
		unix.Kill(-1, signal)
		unix.Kill(-1, unix.SIGCONT)
	}
}

// countLeftProcess records a process that bash left behind and that is now being ended.
// afterBash is false while bash runs: processes ended together with bash are not
// counted.
func (g *commandMonitor) countLeftProcess(pid int, afterBash bool) {
	if afterBash {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.left[pid] = true
	}
}

// killAll kills every descendant. Without a pid namespace it first stops them
// until it finds no new one, so that none can fork unnoticed. The caller
// repeats it until the kernel reports that no child exists.
func (g *commandMonitor) killAll() {
	if isPIDNamespaceInit() {
		unix.Kill(-1, unix.SIGKILL)
		return
	}
	after := !g.isBashRunning()
	g.rounds++
	for pid := range stopDescendants(g.rounds%4 == 0) {
		g.countLeftProcess(pid, after)
		unix.Kill(pid, unix.SIGKILL)
	}
}

// stopDescendants sends SIGSTOP to all descendants, and again until it finds no new one.
// It returns their process ids. For thorough see descendants.
func stopDescendants(thorough bool) (stopped map[int]bool) {
	stopped = map[int]bool{}
	for fresh := true; fresh && len(stopped) < 1<<16; {
		fresh = false
		for pid := range descendants(thorough) {
			if !stopped[pid] {
				unix.Kill(pid, unix.SIGSTOP)
				stopped[pid], fresh = true, true
			}
		}
	}
	return stopped
}

// KillMarked kills the processes of a command whose supervisor was killed. It
// finds them by the mark in their environment, and repeats until it finds no
// more, for at most 3 seconds. It returns the number of killed processes.
func KillMarked(mark string) int {
	want := []byte(MarkName + "=" + mark + "\x00")
	killed := map[int]bool{}
	limit := time.Now().Add(3 * time.Second) // for processes stuck in the kernel
	duringExec := false
	for quiet := 0; quiet < 3 && time.Now().Before(limit); quiet++ {
		if quiet > 0 || duringExec {
			time.Sleep(2 * time.Millisecond)
		}
		duringExec = false
		for pid, s := range readProcesses() {
			env, ok := environOf(pid)
			if !ok && !s.ending && !s.isKernel {
				duringExec, quiet = true, -1
			}
			if bytes.Contains(env, want) {
				unix.Kill(pid, unix.SIGKILL)
				killed[pid], quiet = true, -1
			}
		}
	}
	return len(killed)
}

// environReads is the number of reads after which a process with arguments has no
// environment. In each of them an exec may be under way while the environment is read,
// and may have ended when the arguments are read. A machine that is busy has met three
// such reads in succession.
const environReads = 30

// environOf returns the environment of a process, nil if it cannot be read. ok
// is false if the process has none at the moment, as during an exec: the kernel
// sets the addresses of arguments and environment at the end of it.
func environOf(pid int) (env []byte, ok bool) {
	dir := "/proc/" + strconv.Itoa(pid)
	for range environReads {
		env, err := os.ReadFile(dir + "/environ")
		if err != nil || len(env) > 0 {
			return env, true
		}
		args, err := os.ReadFile(dir + "/cmdline")
		if err != nil || len(args) == 0 {
			return nil, err != nil
		}
	}
	return nil, true // arguments, but no environment
}

// maxUnreadable is the number of times in succession that the memory of a
// command may be unreadable before the command counts as over its limit.
const maxUnreadable = 3

// exceedsMemory reports whether the command uses more memory than its limit. It
// also returns true if the figures could not be read maxUnreadable times in
// succession.
func (g *commandMonitor) exceedsMemory() bool {
	limit := g.spec.Limits.Memory
	if limit < 0 {
		return false
	}
	if limit == 0 {
		var info unix.Sysinfo_t
		if unix.Sysinfo(&info) != nil {
			return false
		}
		limit = int64(info.Totalram) * int64(info.Unit) / 4 * 3
	}
	machine := machineSharedMemory()
	g.shared = min(g.shared, machine) // other programs have freed some
	used, err := descendantMemory(os.Getpid())
	if err != nil {
		g.unreadable++
		return g.unreadable >= maxUnreadable
	}
	g.unreadable = 0
	if g.spec.Level == L2 { // its own: at L1 there are none
		used.own += kernelObjectMemory()
	}
	if total := used.total(0); total > limit {
		return true
	} else if total+machine <= limit {
		return false // below the limit even if all of it is the command's
	}
	seen := unmappedSharedMemory(used.pids, g.spec.Level == L2)
	if used.total(seen) > limit {
		return true
	}
	// Shared memory of the machine beyond its least amount since the command
	// began, and that no table shows, counts as the command's, if the command
	// may hold such memory. The command can hide as much as other programs
	// free within the same second.
	unseen := machine - g.shared - seen
	return used.total(seen+unseen) > limit && mayHoldUnseenMemory(used)
}
