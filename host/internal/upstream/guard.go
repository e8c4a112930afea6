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

// startGuard starts the guard process. Without one the kernel's and the
// servers' own ways to end remain, so a failure is not the caller's concern.
func startGuard(command []string, mark string) *guard {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.SysProcAttr = detached()
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

// tell sends one line: the sign and the group.
func (g *guard) tell(sign byte, pid int) {
	if g.pipe != nil {
		fmt.Fprintf(g.pipe, "%c%d\n", sign, pid) //nolint:errcheck // see startGuard
	}
}

func (g *guard) close() {
	if g.cmd != nil {
		g.pipe.Close() //nolint:errcheck // its end is what is meant
		late := time.AfterFunc(guardGrace, func() {
			g.cmd.Process.Kill() //nolint:errcheck // it has ended after all
		})
		defer late.Stop()
		g.cmd.Wait() //nolint:errcheck // it reports nothing
	}
}

// guardGrace is how long the guard may take to end once there is nothing left
// to guard.
const guardGrace = time.Second

// RunGuard is the guard process: it reads lines "=MARK", "+PID" and "-PID"
// and, when its input ends, which happens when the host ends, however it ends,
// kills the groups that are left and what has the mark.
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
		sweep(mark)
	}
}
