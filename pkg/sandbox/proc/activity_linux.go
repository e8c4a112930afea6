package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// maxProcesses bounds the processes that Activity examines.
const maxProcesses = 512

// Activity returns the state of the command's processes, the zero value once
// the command has ended. It only reads /proc and opens the terminals that the
// processes have as standard input.
func (p *Process) Activity() Activity {
	select {
	case <-p.done:
		return Activity{}
	default:
	}
	a := Activity{Asleep: true}
	newest := uint64(0)
	queue := supervise.Children(strconv.Itoa(p.supervisor.pid))
	for looked := 0; len(queue) > 0 && looked < maxProcesses; looked++ {
		pid := queue[0]
		queue = append(queue[1:], supervise.Children(pid)...)
		stat, ok := readStat(pid)
		if !ok {
			continue
		}
		a.Known = true
		if stat.state == 'R' || stat.state == 'D' {
			a.Asleep = false
		}
		if stat.startTime >= newest && stat.state != 'Z' {
			newest, a.Program = stat.startTime, stat.name
		}
		if a.Terminal == "" && stat.hasTerminal && stat.state == 'S' && (readsTerminal(pid) || readsSingleKeys(pid)) {
			a.Terminal = stat.name
		}
	}
	return a
}

// processStat holds fields of /proc/PID/stat (proc_pid_stat(5)).
type processStat struct {
	name        string
	state       byte // R, S, D, Z, …
	hasTerminal bool // the process has a controlling terminal
	startTime   uint64
}

// readStat reads the fields of the process pid. ok is false if the process has
// ended.
func readStat(pid string) (stat processStat, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%s/stat", pid))
	if err != nil {
		return processStat{}, false
	}
	line := string(text)
	open, end := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')')
	if open < 0 || end < open {
		return processStat{}, false
	}
	fields := strings.Fields(line[end+1:]) // from the third field on
	if len(fields) < 20 {
		return processStat{}, false
	}
	began, _ := strconv.ParseUint(fields[22-3], 10, 64)
	return processStat{name: line[open+1 : end], state: fields[0][0], hasTerminal: fields[7-3] != "0", startTime: began}, true
}

// readsTerminal reports whether a thread of the process pid is in read(2) on a
// terminal. It also returns false if the system does not show this.
func readsTerminal(pid string) bool {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%s/task", pid))
	if err != nil {
		return false
	}
	for _, task := range tasks {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%s/task/%s/syscall", pid, task.Name()))
		fields := strings.Fields(string(text))
		if err != nil || len(fields) < 2 || fields[0] != strconv.Itoa(unix.SYS_READ) {
			continue
		}
		fd, err := strconv.ParseInt(strings.TrimPrefix(fields[1], "0x"), 16, 32)
		if err == nil && isTerminal(pid, int(fd)) {
			return true
		}
	}
	return false
}

// readsSingleKeys reports whether the process pid has a terminal as standard
// input that is not in canonical mode: it delivers each key at once, as editors
// and prompts with line editing set it.
func readsSingleKeys(pid string) bool {
	if !isTerminal(pid, 0) {
		return false
	}
	// A hostile command may replace the file meanwhile. The flags keep this
	// open from blocking, and the file from becoming this program's
	// controlling terminal.
	fd, err := unix.Open(fmt.Sprintf("/proc/%s/fd/0", pid), unix.O_RDONLY|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	mode, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	return err == nil && mode.Lflag&unix.ICANON == 0
}

// isTerminal reports whether the descriptor fd of the process pid is a
// terminal, by its name in /proc.
func isTerminal(pid string, fd int) bool {
	name, err := os.Readlink(fmt.Sprintf("/proc/%s/fd/%d", pid, fd))
	if err != nil {
		return false
	}
	number, pty := strings.CutPrefix(name, "/dev/pts/")
	_, err = strconv.Atoi(number)
	return pty && err == nil || name == "/dev/tty" || name == "/dev/console"
}
