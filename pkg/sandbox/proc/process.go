package proc

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/egress"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// lateness is how long the supervisor may take beyond what it was allowed,
// before it is taken for lost and ended itself.
const lateness = 3 * time.Second

// closeDelay is how long output may still come from a writer that is none of
// the command's processes, after the last of these has ended.
const closeDelay = 250 * time.Millisecond

// supervisor is a running second self.
type supervisor struct {
	process *os.Process
	control *os.File
	output  *os.File // what the command writes
	level   Level
	// expected is the spec that it got ready for.
	expected *supervise.Spec
	ahead    bool   // it had prepared what it needed
	mounts   string // what was mounted when it was started
}

// abandon ends a supervisor that has not started anything, or is not heeded
// any more.
func (s *supervisor) abandon() {
	closeAll(s.control, s.output)
	s.process.Kill() // error means: has ended
	s.process.Wait()
}

// Process is a command that was started. Its methods may be used from several
// goroutines.
type Process struct {
	runner *Runner
	super  *supervisor
	out    *Output
	temp   privateTemp
	mark   string
	undo   string // Spec.Undo
	env    []string
	wire   *tripwire
	proxy  *egress.Proxy // nil without Config.Egress
	began  time.Time
	grace  time.Duration

	ordering sync.Mutex

	input sync.Mutex
	stdin *os.File // nil when there is none

	killOnce sync.Once
	kill     chan struct{}

	abortOnce sync.Once
	abort     chan struct{}

	result Result // final once done is closed
	done   chan struct{}
}

// Output is what the command writes.
func (p *Process) Output() *Output { return p.out }

// Done is closed when the command and all it started has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait returns how the command ended, once it has.
func (p *Process) Wait() Result {
	<-p.done
	return p.result
}

// Kill ends the command: TERM, the grace, KILL. It does not wait.
func (p *Process) Kill() { p.killOnce.Do(func() { close(p.kill) }) }

// UndoID names the record of what the command changes, "" for none. There is one
// only once it has changed something.
func (p *Process) UndoID() string { return p.undo }

// Environ is the environment that bash was given. It is not to be changed.
func (p *Process) Environ() []string { return p.env }

// Signal sends a signal to the process group of bash.
func (p *Process) Signal(signal syscall.Signal) error {
	select {
	case <-p.done:
		return os.ErrProcessDone
	default:
		return p.order(order{Signal: int(signal)})
	}
}

// WriteStdin gives the command more to read. It waits while the command reads
// nothing; the end of the command ends that.
func (p *Process) WriteStdin(data []byte) error {
	p.input.Lock()
	stdin := p.stdin
	p.input.Unlock()
	if stdin == nil {
		return toolerr.New(toolerr.Conflict, "the command's standard input is closed")
	}
	if _, err := stdin.Write(data); err != nil {
		return toolerr.New(toolerr.ExecutionError, "the command does not read its standard input: %w", err)
	}
	return nil
}

// CloseStdin ends what the command reads.
func (p *Process) CloseStdin() {
	p.input.Lock()
	defer p.input.Unlock()
	closeAll(p.stdin)
	p.stdin = nil
}

func (p *Process) order(o order) error {
	p.ordering.Lock()
	defer p.ordering.Unlock()
	_, err := p.super.control.Write(supervise.Append(nil, &o))
	return err
}

// watch follows the command to its end. All its goroutines end before done is
// closed.
func (p *Process) watch(ctx context.Context, c Command, in *bufio.Reader) {
	var tasks sync.WaitGroup
	reports, enough := make(chan report), make(chan struct{})
	tasks.Go(func() {
		defer close(reports)
		for {
			var next report
			if supervise.Read(in, &next) != nil {
				return
			}
			select {
			case reports <- next:
			case <-enough:
				return
			}
		}
	})
	read := make(chan struct{})
	tasks.Go(func() {
		defer close(read)
		p.copyOutput()
	})
	if len(c.Stdin) > 0 {
		tasks.Go(func() {
			if p.WriteStdin(c.Stdin) != nil || !c.KeepStdin {
				p.CloseStdin()
			}
		})
	}
	tasks.Go(func() { p.wire.attend(enough) })
	go func() {
		p.follow(ctx, c.Timeout, reports)
		close(enough)
		p.finish(read)
		tasks.Wait()
		p.out.end()
		p.result.TakenBack, p.result.Aside = p.wire.end()
		p.result.Gaps = append(p.result.Gaps, p.wire.gaps...)
		p.result.Undo = p.runner.recorded(p.undo)
		p.result.Duration = time.Since(p.began)
		p.runner.mu.Lock()
		delete(p.runner.running, p)
		p.runner.prepare(p.result.Level)
		p.runner.mu.Unlock()
		close(p.done)
	}()
}

// follow takes the supervisor's reports until it has none left, and gives it
// the order to stop when something outside wants that.
func (p *Process) follow(ctx context.Context, timeout time.Duration, reports <-chan report) {
	var timer, late <-chan time.Time
	if timeout > 0 {
		timer = time.After(timeout - time.Since(p.began))
	}
	cancelled, kill, abort := ctx.Done(), p.kill, p.abort
	stop := func(why Ending) {
		if p.result.Ending == Exited && p.result.ExitCode < 0 {
			p.result.Ending = why
		}
		timer, cancelled, kill = nil, nil, nil
		if p.order(order{Stop: true}) != nil {
			late = time.After(0)
			return
		}
		late = time.After(p.grace + lateness)
	}
	for {
		select {
		case r, ok := <-reports:
			switch {
			case !ok:
				p.lost()
				return
			case r.Memory:
				p.result.Ending = OverMemory
			case r.Exited:
				p.exited(r.Status)
			}
			if r.Done {
				p.result.LeftBehind = r.Left
				return // not waiting for the supervisor's own end
			}
		case <-timer:
			stop(TimedOut)
		case <-cancelled:
			stop(Cancelled)
		case <-kill:
			stop(Killed)
		case <-abort:
			if p.result.Ending == Exited && p.result.ExitCode < 0 {
				p.result.Ending = Killed
			}
			timer, cancelled, kill, abort = nil, nil, nil, nil
			p.super.hangUp()
			late = time.After(lateness)
		case <-late:
			p.super.process.Kill()
		}
	}
}

// lost is for a supervisor that ended without saying that all is done.
func (p *Process) lost() {
	if p.result.ExitCode < 0 && p.result.Ending == Exited {
		p.result.Ending = Lost
	}
	p.super.process.Kill()
	p.result.LeftBehind += supervise.KillMarked(p.mark)
}

// finish frees what the command used, once the supervisor is gone.
func (p *Process) finish(read <-chan struct{}) {
	p.result.Report = readReport(p.temp.path)
	p.runner.tasks.Go(func() {
		time.Sleep(breather)
		p.super.process.Wait()
		// Only now: to remove what is a mount point in a name space that
		// still exists takes long.
		p.temp.remove()
	})
	p.CloseStdin()
	p.endEgress()
	select {
	case <-read:
	case <-time.After(closeDelay):
		p.super.output.SetReadDeadline(time.Now())
		<-read
	}
	closeAll(p.super.output, p.super.control)
}

func (p *Process) copyOutput() {
	buf := make([]byte, 64<<10)
	for {
		n, err := p.super.output.Read(buf)
		p.out.write(buf[:n])
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return
		case errors.Is(err, os.ErrDeadlineExceeded):
			// On a busy machine this may be the first time that it reads.
			drain(p.super.output, buf, p.out.write)
			return
		default:
			p.out.write([]byte("\n[the output could not be read to its end: " + err.Error() + "]\n"))
			return
		}
	}
}
