package upstream

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/config/trust"
)

// A process is one run of a server's program in its own process group.
type process struct {
	cmd      *exec.Cmd
	group    group
	confined ConfinedProcess // instead of cmd and group; nil: not confined
	mark     string          // environment mark of its whole tree; "": the program ends its own children
	stdin    *os.File        // the program's input
	stdout   *os.File        // the program's output
	stderr   *stderrTail

	errEnd   *os.File // read end of its standard error
	errDone  chan struct{}
	exited   chan struct{} // closed after Wait
	waitErr  error         // result of Wait; set before exited is closed
	stopOnce sync.Once
}

// newProcess prepares a command with pipes that this package owns, and returns the child's
// ends, which the caller closes after the start: Wait of os/exec would close its own pipes
// while they still contain output. mark identifies its process tree. It returns an error if
// there are no more descriptors.
func newProcess(cfg Config, mark string) (*process, []*os.File, error) {
	cmd := exec.Command(cfg.Command[0], cfg.Command[1:]...)
	cmd.Env, cmd.Dir = cfg.Env, cfg.Dir
	if mark != "" {
		cmd.Env = markedEnv(cfg.Env, mark)
	}
	cmd.SysProcAttr = groupAttributes()
	p := &process{cmd: cmd, mark: mark, stderr: &stderrTail{}, exited: make(chan struct{}), errDone: make(chan struct{})}
	var theirs, ours []*os.File
	closeAll := func() {
		for _, f := range append(theirs, ours...) {
			f.Close() //nolint:errcheck // nothing was written
		}
	}
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		if len(theirs) == 0 { // stdin: the child reads
			theirs, ours = append(theirs, r), append(ours, w)
		} else {
			theirs, ours = append(theirs, w), append(ours, r)
		}
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	p.stdin, p.stdout, p.errEnd = ours[0], ours[1], ours[2]
	return p, theirs, nil
}

// startInGroup starts the command in its own process group. If files have changed, it kills
// the program and returns an error.
func (p *process) startInGroup(s *Spawner, files *trust.HeldFiles) error {
	err := s.onThread(p.cmd.Start)
	if err != nil {
		return err
	}
	if p.group, err = newGroup(p.cmd.Process); err == nil {
		if err = files.Recheck(); err != nil {
			p.group.kill()
		}
	}
	if err != nil {
		p.cmd.Process.Kill() //nolint:errcheck // the first error is reported
		p.cmd.Wait()         //nolint:errcheck // it was killed
	}
	return err
}

// watchExit starts to read the standard error of a running command and to wait for its end.
// Then it closes p.exited and calls onExit.
func (p *process) watchExit(onExit func()) {
	p.cmd.Env, p.cmd.Args, p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = nil, nil, nil, nil, nil // no longer used
	go func() {
		defer close(p.errDone)
		p.stderr.readFrom(p.errEnd)
	}()
	go func() {
		p.waitErr = p.awaitExit()
		close(p.exited)
		onExit()
	}()
}

// awaitExit waits for the end of the program and returns the error of Wait.
func (p *process) awaitExit() error {
	if p.confined != nil {
		return p.confined.Wait()
	}
	waitWithoutThread(p.cmd.Process)
	return p.cmd.Wait()
}

// pid returns the id of the process.
func (p *process) pid() int {
	if p.confined != nil {
		return p.confined.PID()
	}
	return p.cmd.Process.Pid
}

// stop ends the program as the specification requires, and waits: it closes the input,
// after closeGrace sends SIGTERM, after termGrace SIGKILL, and kills the rest of its
// group.
func (p *process) stop(closeGrace, termGrace time.Duration) {
	p.closeInput()
	switch ended := p.waitForExit(closeGrace); {
	case p.confined != nil:
		if !ended {
			p.confined.Stop()
		}
		<-p.exited
		return
	case !ended:
		p.group.terminate()
		p.waitForExit(termGrace)
	}
	p.group.kill()
	<-p.exited
}

// waitForExit waits at most d for the end of the program, and reports whether it has ended.
func (p *process) waitForExit(d time.Duration) (ended bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.exited:
		return true
	case <-timer.C:
		return false
	}
}

// closeInput closes the standard input, once.
func (p *process) closeInput() {
	p.stopOnce.Do(func() { p.stdin.Close() }) //nolint:errcheck // the program is being stopped
}

// closeOutput ends the readers of the program's output.
func (p *process) closeOutput() {
	p.stdout.Close() //nolint:errcheck // only read from
	select {
	case <-p.errDone:
	case <-time.After(100 * time.Millisecond): // a process that left the group still holds it
	}
	p.errEnd.Close() //nolint:errcheck // only read from
	<-p.errDone
}

// exitText says how the program ended, to follow "the server".
func (p *process) exitText() string {
	select {
	case <-p.exited:
	default:
		return "closed its output"
	}
	if p.waitErr == nil {
		return "exited (exit status 0)"
	}
	return fmt.Sprintf("ended (%v)", p.waitErr)
}

// stderrTail keeps the end of a server's standard error.
type stderrTail struct {
	mu   sync.Mutex
	text []byte
}

// Limits for standard error.
const (
	maxTail         = 64 << 10             // bytes that are kept
	stderrReadPause = 2 * time.Millisecond // after stderrReadBytes
	stderrReadBytes = 64 << 10
)

// readFrom keeps the end of the output of f. It slows down a program that writes very
// much.
func (t *stderrTail) readFrom(f *os.File) {
	buf := make([]byte, 256) // most servers write little
	for flood := 0; ; {
		n, err := f.Read(buf)
		if flood += n; flood > stderrReadBytes {
			time.Sleep(stderrReadPause)
			flood = 0
		}
		if n > 0 {
			t.mu.Lock()
			t.text = append(t.text, buf[:n]...)
			if over := len(t.text) - maxTail; over > maxTail {
				t.text = append(t.text[:0], t.text[over:]...)
			}
			t.mu.Unlock()
		}
		if err != nil {
			return
		}
		if n == len(buf) && n < 4<<10 {
			buf = make([]byte, 4*n)
		}
	}
}

// String returns the kept text, at most maxTail bytes.
func (t *stderrTail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text[max(0, len(t.text)-maxTail):])
}
