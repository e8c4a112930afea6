package supervise

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// stat is what is read of a process in /proc.
type stat struct {
	parent int
	ending bool // it ended, or is about to: nothing of it runs on
}

// exiting is PF_EXITING of the flags in /proc/PID/stat: the process does no
// more than free what it has. On a busy machine that can take a while.
const exiting = 0x4

// processes reads all that are visible.
func processes() map[int]stat {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	all := make(map[int]stat, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		s, ok := statOf(name)
		if !ok {
			continue // it ended
		}
		all[pid] = s
	}
	return all
}

// statOf reads what there is of one process.
func statOf(name string) (s stat, ok bool) {
	text, err := os.ReadFile("/proc/" + name + "/stat")
	if err != nil {
		return s, false
	}
	// The name, in parentheses, may hold anything.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 18 {
		return s, false
	}
	flags, _ := strconv.ParseUint(string(fields[6]), 10, 64)
	threads, _ := strconv.Atoi(string(fields[17]))
	// The first thread may have ended long before the others.
	s.ending = threads <= 1 && (bytes.ContainsAny(fields[0], "ZXx") || flags&exiting != 0)
	s.parent, _ = strconv.Atoi(string(fields[1]))
	return s, true
}

// descendants of this process that have not ended. Since orphans come to it,
// that is all there are. By the lists of children only few are looked at, but
// one that gets another parent meanwhile may be missed (proc(5)); thorough
// looks at all processes of the machine.
func descendants(thorough bool) map[int]stat {
	if !thorough && unix.Access("/proc/thread-self/children", unix.F_OK) == nil {
		found := map[int]stat{}
		listChildren(strconv.Itoa(os.Getpid()), found)
		return found
	}
	all := processes()
	own := os.Getpid()
	found := map[int]stat{}
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

// listChildren adds the descendants of a process to found.
func listChildren(pid string, found map[int]stat) {
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

// Children lists the children of all threads of a process, by their numbers
// as text. The list is empty where the system does not tell.
func Children(pid string) (names []string) {
	tasks, err := os.Open("/proc/" + pid + "/task")
	if err != nil {
		return nil
	}
	defer tasks.Close()
	threads, _ := tasks.Readdirnames(-1)
	for _, thread := range threads {
		list, _ := os.ReadFile("/proc/" + pid + "/task/" + thread + "/children")
		names = append(names, strings.Fields(string(list))...)
	}
	return names
}

// alone reports whether this process is the first of a pid name space, where
// -1 stands for all the others.
func alone() bool { return os.Getpid() == 1 }

// signalAll signals every descendant once, and wakes those that are stopped.
func (g *guard) signalAll(signal unix.Signal) {
	after := !g.runs()
	for pid := range descendants(false) {
		g.count(pid, after)
		if !alone() {
			unix.Kill(pid, signal)
			unix.Kill(pid, unix.SIGCONT)
		}
	}
	if alone() {
		unix.Kill(-1, signal)
		unix.Kill(-1, unix.SIGCONT)
	}
}

// count notes a process that bash left behind and that is ended now, after it.
// What is ended together with bash is none.
func (g *guard) count(pid int, after bool) {
	if after {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.left[pid] = true
	}
}

// killAll kills every descendant. Without a pid name space each is stopped
// first, until no new one is found, so that none can fork on behind the back
// of the killing. It is called again until the kernel says that none is left.
func (g *guard) killAll() {
	if alone() {
		unix.Kill(-1, unix.SIGKILL)
		return
	}
	stopped, after := map[int]bool{}, !g.runs()
	g.rounds++
	for fresh := true; fresh && len(stopped) < 1<<16; {
		fresh = false
		for pid := range descendants(g.rounds%4 == 0) {
			if !stopped[pid] {
				unix.Kill(pid, unix.SIGSTOP)
				stopped[pid], fresh = true, true
				g.count(pid, after)
			}
		}
	}
	for pid := range stopped {
		unix.Kill(pid, unix.SIGKILL)
	}
}

// KillMarked kills what a command left whose supervisor was killed: all that
// have its mark in their environment, until none is found. It returns how many.
func KillMarked(mark string) int {
	want := []byte(MarkName + "=" + mark + "\x00")
	killed := map[int]bool{}
	limit := time.Now().Add(3 * time.Second) // for those that the kernel itself holds
	for quiet := 0; quiet < 3 && time.Now().Before(limit); quiet++ {
		if quiet > 0 { // one that is just being made, or executed, has no environment
			time.Sleep(2 * time.Millisecond)
		}
		for pid := range processes() {
			env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
			if err == nil && bytes.Contains(env, want) {
				unix.Kill(pid, unix.SIGKILL)
				killed[pid], quiet = true, -1
			}
		}
	}
	return len(killed)
}

// overMemory reports whether the command uses more than its limit.
func (g *guard) overMemory() bool {
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
	machine := machineShared()
	g.shared = min(g.shared, machine) // others gave some back
	used := usageOf(os.Getpid(), 0)
	if total := used.total(0); total > limit {
		return true
	} else if total+machine <= limit {
		return false // whatever it is of that
	}
	seen := sharedBy(used.pids, g.spec.Level == L2)
	if used.total(seen) > limit {
		return true
	}
	// What the machine has more than when the command began, or at its least
	// since, and is in no table, counts for a command that can have it. One
	// hides as much as other programs give back in the same second.
	unseen := machine - g.shared - seen
	return used.total(seen+unseen) > limit && holdsUnseen(used.pids)
}
