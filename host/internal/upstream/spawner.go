package upstream

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/toolroom-mcp/toolroom/host/internal/config/nesting"
	"github.com/toolroom-mcp/toolroom/host/internal/config/trust"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// A Spawner starts the servers' processes of one host, so that none outlives
// it. Its thread lives as long as the host does, because Linux kills a child
// (Pdeathsig) when the thread that started it ends, not the process. Children
// of the children are killed by a guard: a small process that waits for the
// host's end. They are known by their groups, and on Linux, where one may leave
// its group, by a mark in their environment. It runs once a server is started that does not promise to end
// its own children.
type Spawner struct {
	guardCommand []string                 // nil: no guard
	mark         string                   // of all processes of this host
	files        atomic.Pointer[[]string] // nesting.Mark of the host's configuration files; nil: unknown
	wide         atomic.Int32             // pipes that hold more than usual

	mu       sync.Mutex
	work     chan func()
	finished chan struct{}
	guard    *guard
	closed   bool
}

// NewSpawner returns a Spawner. guardCommand is the program and arguments
// that call RunGuard on standard input; nil for none.
func NewSpawner(guardCommand []string) *Spawner {
	return &Spawner{guardCommand: guardCommand, mark: newMark()}
}

// SetMarks sets how servers that are started from now on tell hosts below
// them that this host is above.
func (s *Spawner) SetMarks(marks []string) { s.files.Store(&marks) }

// start runs a server's program. onExit is called when that has ended.
func (s *Spawner) start(cfg Config, onExit func()) (*process, error) {
	mark := ""
	if !cfg.KillsOwnTree {
		mark = s.mark + "." + newMark()
		if marks := s.files.Load(); marks != nil {
			cfg.Env = nesting.Enter(cfg.Env, *marks)
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
	p.cmd.Path = files.Program(cfg.Command[0])
	err = s.onThread(p.cmd.Start)
	for _, f := range theirs {
		f.Close() //nolint:errcheck // the child has its own
	}
	if err == nil {
		if p.group, err = newGroup(p.cmd.Process); err == nil {
			if err = files.Again(); err != nil {
				p.group.kill()
			}
		}
		if err != nil {
			p.cmd.Process.Kill() //nolint:errcheck // reported is why
			p.cmd.Wait()         //nolint:errcheck // it was killed
		}
	}
	if err != nil {
		for _, f := range []*os.File{p.stdin, p.stdout, p.errEnd} {
			f.Close() //nolint:errcheck // nothing was written
		}
		return nil, err
	}
	if !cfg.KillsOwnTree {
		s.watchOver(p.pid())
	}
	p.started(onExit)
	return p, nil
}

// ended is told when a process and its group are gone. What left the group is
// still to be found.
func (s *Spawner) ended(p *process) {
	p.group.release()
	if p.mark != "" {
		sweep(p.mark)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.guard != nil {
		s.guard.tell('-', p.pid())
	}
}

// maxWide is how many pipes are widened at a time: a quarter of what the
// system gives a user before it makes the pipes of all their programs small.
const maxWide = 16

// widen lets a pipe hold a large message and reports whether that counts, to
// be told to narrow once.
func (s *Spawner) widen(pipe *os.File) bool {
	if s.wide.Add(1) > maxWide {
		s.wide.Add(-1)
		return false
	}
	jsonrpc.EnlargePipe(pipe)
	return true
}

// narrow is told of a pipe that was widened and is gone.
func (s *Spawner) narrow() { s.wide.Add(-1) }

// onThread runs f on the thread that starts all children.
func (s *Spawner) onThread(f func() error) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return fmt.Errorf("the host is shutting down")
	}
	if s.work == nil {
		s.work, s.finished = make(chan func()), make(chan struct{})
		go func() {
			// Never unlocked: a thread that ends with its goroutine is not
			// used again, and none but this goroutine ends it.
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

// watchOver tells the guard of a group, starting the guard at first.
func (s *Spawner) watchOver(pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.guardCommand) == 0 {
		return
	}
	if s.guard == nil {
		s.guard = startGuard(s.guardCommand, s.mark)
	}
	s.guard.tell('+', pid)
}

// Close ends the guard and the thread. All servers have been closed before.
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
