package upstream

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/toolroom-mcp/toolroom/host/internal/config/nesting"
	"github.com/toolroom-mcp/toolroom/host/internal/config/trust"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// A Spawner starts the server processes of one host so that none outlives the host.
// Its thread lives as long as the host, because Linux kills a child (Pdeathsig) when
// the thread that started it ends, not the process. A guard kills the children of the
// children: a small process that waits for the host's end. It knows them by their
// process groups and, on Linux, where a process can leave its group, by a mark in
// their environment. The guard is started with the first server that does not end its
// own children.
type Spawner struct {
	guardCommand []string                 // nil: no guard
	mark         string                   // of all processes of this host
	files        atomic.Pointer[[]string] // nesting.FileMark of the host's configuration files; nil: unknown
	widened      atomic.Int32             // number of widened pipes

	mu       sync.Mutex
	work     chan func()
	finished chan struct{}
	guard    *guard
	closed   bool
}

// NewSpawner returns a Spawner. guardCommand is a program with arguments that calls
// RunGuard on standard input; nil for none.
func NewSpawner(guardCommand []string) *Spawner {
	return &Spawner{guardCommand: guardCommand, mark: newMark()}
}

// SetMarks sets the marks by which hosts below the servers started from now on
// recognize this host.
func (s *Spawner) SetMarks(marks []string) { s.files.Store(&marks) }

// start runs a server's program, and calls onExit when it has ended. It returns an error if
// a file of cfg.Trusted has changed, or the program does not start.
func (s *Spawner) start(cfg Config, onExit func()) (*process, error) {
	mark := ""
	if !cfg.KillsOwnTree {
		if cfg.Confine == nil {
			mark = s.mark + "." + newMark()
		}
		if marks := cmp.Or(cfg.marks, s.files.Load()); marks != nil {
			cfg.Env = nesting.ServerEnv(cfg.Env, *marks)
		}
	}
	files, err := trust.Hold(cfg.Trusted)
	if err != nil {
		return nil, err
	}
	defer files.Close()
	p, theirs, err := newProcess(cfg, mark)
	if err != nil {
		return nil, err
	}
	if cfg.Confine != nil {
		err = p.startConfined(cfg, files)
	} else {
		p.cmd.Path = files.StartPath(cfg.Command[0])
		err = p.startInGroup(s, files)
	}
	for _, f := range theirs {
		f.Close() //nolint:errcheck // the child has its own
	}
	if err != nil {
		for _, f := range []*os.File{p.stdin, p.stdout, p.errEnd} {
			f.Close() //nolint:errcheck // nothing was written
		}
		return nil, err
	}
	if !cfg.KillsOwnTree && p.confined == nil {
		s.guardGroup(p.pid())
	}
	p.watchExit(onExit)
	return p, nil
}

// processEnded is called when a process and its group have ended. It kills processes that
// left the group.
func (s *Spawner) processEnded(p *process) {
	if p.confined != nil {
		return
	}
	p.group.release()
	if p.mark != "" {
		killMarked(p.mark)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.guard != nil {
		s.guard.send('-', p.pid())
	}
}

// maxWide bounds the widened pipes: a quarter of the user's limit, after which the
// system makes all pipes of the user small.
const maxWide = 16

// widenPipe enlarges the buffer of a pipe for a large message. It reports whether the pipe
// counts against the limit; then uncountPipe must be called once.
func (s *Spawner) widenPipe(pipe *os.File) (counted bool) {
	if s.widened.Add(1) > maxWide {
		s.widened.Add(-1)
		return false
	}
	jsonrpc.EnlargePipe(pipe)
	return true
}

// uncountPipe reverts the count of widenPipe after the pipe is closed.
func (s *Spawner) uncountPipe() { s.widened.Add(-1) }

// onThread runs f on the thread that starts all children, waits for it, and returns its
// error. After the end of the Spawner it returns an error.
func (s *Spawner) onThread(f func() error) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return fmt.Errorf("the host is shutting down")
	}
	if s.work == nil {
		s.work, s.finished = make(chan func()), make(chan struct{})
		go func() {
			// Never unlock: the thread then ends with this goroutine and is not
			// reused.
			runtime.LockOSThread()
			defer close(s.finished)
			for f := range s.work {
				f()
			}
		}()
	}
	done := make(chan error, 1)
	s.work <- func() { done <- f() }
	s.mu.Unlock()
	return <-done
}

// guardGroup tells the guard process to kill a process group at the end of the host. It
// starts the guard if necessary.
func (s *Spawner) guardGroup(pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.guardCommand) == 0 {
		return
	}
	if s.guard == nil {
		s.guard = startGuard(s.guardCommand, s.mark)
	}
	s.guard.send('+', pid)
}

// Close ends the guard and the thread. All servers must be closed before.
func (s *Spawner) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.work != nil {
		close(s.work)
		<-s.finished
		s.work = nil
	}
	if s.guard != nil {
		s.guard.close()
		s.guard = nil
	}
}
