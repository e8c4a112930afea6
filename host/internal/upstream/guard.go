package upstream

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// guard is the host's end of the pipe to the guard process.
type guard struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

// startGuard starts the guard process. If that fails, it returns a guard that does
// nothing: the kernel and the servers themselves still end most processes.
func startGuard(command []string, mark string) *guard {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.SysProcAttr = detachedAttributes()
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return &guard{}
	}
	if err := cmd.Start(); err != nil {
		pipe.Close() //nolint:errcheck // nothing was written
		return &guard{}
	}
	fmt.Fprintf(pipe, "=%s\n", mark) //nolint:errcheck // see above
	return &guard{cmd, pipe}
}

// send sends one line to the guard process: the sign (+ or -) and the process group.
func (g *guard) send(sign byte, pid int) {
	if g.pipe != nil {
		fmt.Fprintf(g.pipe, "%c%d\n", sign, pid) //nolint:errcheck // see startGuard
	}
}

// close tells the guard program to end and waits for it. After guardGrace it kills it.
func (g *guard) close() {
	if g.cmd != nil {
		g.pipe.Close() //nolint:errcheck // only closing matters
		late := time.AfterFunc(guardGrace, func() {
			g.cmd.Process.Kill() //nolint:errcheck // it may have ended already
		})
		defer late.Stop()
		g.cmd.Wait() //nolint:errcheck // the result does not matter
	}
}

// guardGrace is the time that the guard has to end when nothing is left to guard.
const guardGrace = time.Second

// RunGuard is the guard process. It reads lines "=MARK", "+PID" and "-PID". When its
// input ends, which happens whenever the host ends, it kills the remaining groups and
// the processes with the mark.
func RunGuard(in io.Reader) {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM)
	groups, mark := map[int]bool{}, ""
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			break
		}
		if len(line) < 3 {
			continue
		}
		if line[0] == '=' {
			mark = line[1 : len(line)-1]
			continue
		}
		pid, err := strconv.Atoi(line[1 : len(line)-1])
		if err != nil || pid <= 1 {
			continue
		}
		if line[0] == '+' {
			groups[pid] = true
		} else {
			delete(groups, pid)
		}
	}
	for pid := range groups {
		killGroup(pid)
	}
	if len(groups) > 0 && mark != "" {
		killMarked(mark)
	}
}
