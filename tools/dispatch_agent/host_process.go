package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

const (
	// maxLine bounds a line of an agent's output, in bytes. The last line
	// has the whole conversation.
	maxLine = 16 << 20
	// stop closes an agent's input, sends SIGTERM after termAfter, and
	// SIGKILL killAfter later.
	termAfter = 300 * time.Millisecond
	killAfter = 2 * time.Second
)

// launcher starts processes so that none outlives this process. On Linux,
// Pdeathsig kills a child when the thread that started it ends; launcher
// therefore starts all children from a thread that lives as long as the
// process. On other systems agents end when their input ends. The zero value is
// ready to use. It is safe for concurrent use.
type launcher struct {
	mu   sync.Mutex
	work chan func() // functions to run on that thread; nil before the first start
}

// start starts cmd from the launcher's thread.
func (l *launcher) start(cmd *exec.Cmd) error {
	l.mu.Lock()
	if l.work == nil {
		l.work = make(chan func())
		go func() { // ends with the process
			runtime.LockOSThread()
			for f := range l.work {
				f()
			}
		}()
	}
	l.mu.Unlock()
	done := make(chan error)
	l.work <- func() { done <- cmd.Start() }
	return <-done
}

// hostProcess is a process of mcp-host agent.
type hostProcess struct {
	cmd    *exec.Cmd
	stdin  *os.File // stays open: its end ends the agent
	stdout *os.File
	stderr tailWriter
	ended  chan struct{} // closed after the process was waited for
}

// startHost starts mcp-host agent and sends it the task. The caller must read its
// events, stop it and close stdout. It returns EXECUTION_ERROR if the process cannot be
// started.
func (l *launcher) startHost(bin string, args, env []string, t task) (*hostProcess, error) {
	line, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	in, stdin, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	stdout, out, err := os.Pipe()
	if err != nil {
		in.Close()
		stdin.Close()
		return nil, err
	}
	c := &hostProcess{cmd: exec.Command(bin, args...), stdin: stdin, stdout: stdout, ended: make(chan struct{})}
	c.cmd.Env, c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = env, in, out, &c.stderr
	c.cmd.WaitDelay = killAfter // a grandchild may keep standard error open
	setProcessGroup(c.cmd)
	err = l.start(c.cmd)
	in.Close()
	out.Close()
	if err != nil {
		stdin.Close()
		stdout.Close()
		return nil, toolerr.New(toolerr.ExecutionError, "the agent could not be started: %w", err)
	}
	go func() { // ends with the child
		defer close(c.ended)
		c.cmd.Wait() //nolint:errcheck // how it ended is in ProcessState
	}()
	go func() { // a child that does not read its task reports nothing, which is noticed
		stdin.Write(append(line, '\n')) //nolint:errcheck // one that does not read it says nothing, which is noticed
	}()
	return c, nil
}

// readEvents calls handle for each event, until the process's output ends. It skips
// lines that are too long or are not JSON. It returns the error that ended the
// output, io.EOF at its end.
func (c *hostProcess) readEvents(handle func(event)) error {
	lines := jsonrpc.NewReader(c.stdout, maxLine)
	for {
		line, err := lines.ReadLine()
		var long *jsonrpc.TooLongError
		switch {
		case errors.As(err, &long):
			continue
		case err != nil:
			return err
		}
		var e event
		if line = bytes.TrimSpace(line); len(line) > 0 && json.Unmarshal(line, &e) == nil {
			handle(e)
		}
	}
}

// stop closes the input, then asks the process group to end, then kills it. It
// returns when the process has ended. It can be called several times and
// concurrently.
func (c *hostProcess) stop() {
	c.stdin.Close() //nolint:errcheck // it may be closed
	if c.waitForEnd(termAfter) {
		return
	}
	signalGroup(c.cmd, false)
	if c.waitForEnd(killAfter) {
		return
	}
	signalGroup(c.cmd, true)
	<-c.ended
}

// waitForEnd waits at most d for the process to end, and reports whether it has
// ended.
func (c *hostProcess) waitForEnd(d time.Duration) (ended bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c.ended:
		return true
	case <-timer.C:
		return false
	}
}

// describeEnd describes how the process ended and quotes the end of its
// standard error.
func (c *hostProcess) describeEnd() string {
	words := "it ended"
	select {
	case <-c.ended:
		words = c.cmd.ProcessState.String()
	default:
	}
	if said := c.stderr.lastLines(); said != "" {
		words += "; its output: " + said
	}
	return words
}

// tailWriter is a writer that keeps the last maxTail bytes. It is safe for
// concurrent use.
type tailWriter struct {
	mu   sync.Mutex
	text []byte
}

// maxTail is the number of bytes of standard error that are kept.
const maxTail = 4 << 10

// Write keeps the last maxTail bytes written. It never fails.
func (t *tailWriter) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[max(0, len(p)-maxTail):]...)
	if over := len(t.text) - maxTail; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

// lastLines returns the last three lines as one, escaped.
func (t *tailWriter) lastLines() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(t.text)), "\n")
	return shorten(escapeLine(strings.Join(lines[max(0, len(lines)-3):], "; ")), 500)
}
