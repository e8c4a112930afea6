//go:build unix

package supervise

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
)

// programError reports that the system could not start the program.
type programError struct {
	spec *Spec
	err  error
}

func (e *programError) Error() string {
	if errors.Is(e.err, syscall.E2BIG) {
		return fmt.Sprintf("it has %d bytes and its environment %d, which together are more than the system gives to a program: "+
			"put the script or the data into a file, or set fewer variables", argumentBytes(e.spec.Argv), argumentBytes(e.spec.Env))
	}
	return fmt.Sprintf("%s in %s: %v", e.spec.Argv[0], e.spec.Dir, e.err)
}

// argumentBytes returns the bytes that texts take as arguments, with their final NULs.
func argumentBytes(texts []string) (n int) {
	for _, text := range texts {
		n += len(text) + 1
	}
	return n
}

// unixProcess is an entry of the system's process table.
type unixProcess struct {
	pid, parent, group int
	started            int64 // start time, to tell processes with the same id apart
	ended              bool  // a zombie
}

// unixCommand is a command whose processes are found in the process table: those of its
// process group, and the children of processes found before.
type unixCommand struct {
	pid  int
	list func() []unixProcess

	mu    sync.Mutex
	known map[int]int64 // start times by process id
	over  bool          // the program itself has been waited for
}

// wait implements command: it waits for the program, and returns its exit status.
func (c *unixCommand) wait() Report {
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(c.pid, &status, 0, nil)
		if err == syscall.EINTR {
			continue
		}
		c.mu.Lock()
		c.over = true
		delete(c.known, c.pid)
		c.mu.Unlock()
		return Report{Exited: true, Status: int(status)}
	}
}

// countOthers implements command. It also forgets the processes that have ended.
func (c *unixCommand) countOthers() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known = map[int]int64{}
	}
	all := c.list()
	now := map[int]int64{}
	for _, p := range all {
		if !p.ended {
			now[p.pid] = p.started
		}
	}
	for pid, started := range c.known {
		if now[pid] != started {
			delete(c.known, pid)
		}
	}
	for again := true; again; {
		again = false
		for _, p := range all {
			_, have := c.known[p.pid]
			_, child := c.known[p.parent]
			if !have && !p.ended && (child || p.group == c.pid || p.pid == c.pid && !c.over) {
				c.known[p.pid] = p.started
				again = true
			}
		}
	}
	n := len(c.known)
	if _, has := c.known[c.pid]; has && !c.over {
		n--
	}
	return n
}

// signalAll sends a signal to the processes of the command, after looking for new ones.
// It returns the ids of those that got it.
func (c *unixCommand) signalAll(number syscall.Signal) (sent []int) {
	c.countOthers()
	c.mu.Lock()
	defer c.mu.Unlock()
	for pid := range c.known {
		if syscall.Kill(pid, number) == nil {
			sent = append(sent, pid)
		}
	}
	return sent
}

func (c *unixCommand) terminate() []int { return c.signalAll(syscall.SIGTERM) }

func (c *unixCommand) kill() []int { return c.signalAll(syscall.SIGKILL) }

func (c *unixCommand) signal(number int) { syscall.Kill(-c.pid, syscall.Signal(number)) }

// superviseUnix is the supervisor of a Unix system without the kernel features of Linux:
// it starts the program as the server orders, and runs until no process of the command is
// found. list returns the process table; argv returns the arguments that confine the
// program. It returns the exit status of the supervisor.
func superviseUnix(control *os.File, list func() []unixProcess, argv func(*Spec) ([]string, error)) int {
	text, files, err := receiveFilesPortably(int(control.Fd()))
	if err != nil {
		return 2
	}
	if len(files) < 3 { // the server wants no command
		return 0
	}
	report := func(r Report) { control.Write(AppendMessage(nil, &r)) }
	in := bufio.NewReader(io.MultiReader(bytes.NewReader(text), control))
	s := &Spec{}
	if err := ReadMessage(in, s); err != nil || s.Alike {
		return 2
	}
	confined := *s
	if confined.Argv, err = argv(s); err != nil {
		report(Report{Error: err.Error()})
		return 1
	}
	report(Report{Ready: true})
	pid, err := syscall.ForkExec(confined.Argv[0], confined.Argv, &syscall.ProcAttr{
		Dir: s.Dir, Env: s.Env, Files: files, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		report(Report{Error: (&programError{&confined, err}).Error(), Program: true})
		return 1
	}
	for _, fd := range files {
		syscall.Close(int(fd))
	}
	report(Report{Started: pid})
	followCommand(control, in, s, &unixCommand{pid: pid, list: list})
	return 0
}

// receiveFilesPortably receives the descriptors and the text that sendFiles in package proc sends.
// At the end of the socket it returns no files and no error.
func receiveFilesPortably(socket int) (text []byte, files []uintptr, err error) {
	text, oob := make([]byte, 16<<10), make([]byte, syscall.CmsgSpace(4*(MaxFiles+MaxUndoFiles)))
	n, oobn, _, _, err := syscall.Recvmsg(socket, text, oob, 0)
	if err != nil || n == 0 {
		return nil, nil, err
	}
	messages, err := syscall.ParseSocketControlMessage(oob[:oobn])
	if err != nil {
		return nil, nil, err
	}
	for i := range messages {
		fds, err := syscall.ParseUnixRights(&messages[i])
		if err != nil {
			return nil, nil, err
		}
		for _, fd := range fds {
			syscall.CloseOnExec(fd)
			files = append(files, uintptr(fd))
		}
	}
	return text[:n], files, nil
}
