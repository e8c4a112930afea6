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
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/writeguard"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// maxOutputEndWait bounds the wait for the end of the output after the last
// process of the command has ended: a process of another command may still have
// the pipe open.
const maxOutputEndWait = 250 * time.Millisecond

// Process is a started command. Its methods are safe for concurrent use.
type Process struct {
	runner     *Runner
	supervisor *supervisor
	output     *Output
	temp       privateTemp
	envMark    string // marks its processes in their environment
	undoID     string // Spec.Undo
	env        []string
	guard      *writeguard.Command
	proxy      *egress.Proxy // nil without Config.Egress
	began      time.Time
	grace      time.Duration

	sendMu sync.Mutex // held to write to the control socket

	stdinMu sync.Mutex
	stdin   *os.File // nil if closed or never open

	killOnce sync.Once
	kill     chan struct{} // closed by Kill

	abortOnce sync.Once
	abort     chan struct{} // closed by Runner.Abort

	result Result // final once done is closed
	done   chan struct{}
}

// Output returns the command's output, which grows while the command runs.
func (p *Process) Output() *Output { return p.output }

// Done returns a channel that is closed when the command and all its
// descendants have ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the end of the command and returns its result.
func (p *Process) Wait() Result {
	<-p.done
	return p.result
}

// Stop ends the command by TERM and, after Config.Grace, KILL. It does not
// wait for the end.
func (p *Process) Stop() { p.killOnce.Do(func() { close(p.kill) }) }

// UndoID returns the name of the command's undo record, "" if it has none. The
// record exists only after the command has changed a file.
func (p *Process) UndoID() string { return p.undoID }

// PID returns the process id of the command's supervisor.
func (p *Process) PID() int { return p.supervisor.pid }

// RefusedHosts returns the hosts that the command has asked for so far and that
// Config.Egress does not allow, and the number of further refusals; none without
// Config.Egress.
func (p *Process) RefusedHosts() ([]egress.Refusal, int) {
	if p.proxy == nil {
		return nil, 0
	}
	return p.proxy.Refused()
}

// Environ returns the environment of bash as NAME=value. It must not be
// changed.
func (p *Process) Environ() []string { return p.env }

// Signal sends a signal to bash's process group. It returns os.ErrProcessDone
// after the end of the command.
func (p *Process) Signal(signal syscall.Signal) error {
	select {
	case <-p.done:
		return os.ErrProcessDone
	default:
		return p.sendMessage(controlMessage{Signal: int(signal)})
	}
}

// WriteStdin writes data to the command's standard input. It blocks until the
// command has read it or has ended. The error is CONFLICT if standard input is
// closed, EXECUTION_ERROR if the command does not read it.
func (p *Process) WriteStdin(data []byte) error {
	p.stdinMu.Lock()
	stdin := p.stdin
	p.stdinMu.Unlock()
	if stdin == nil {
		return toolerr.New(toolerr.Conflict, "the command's standard input is closed")
	}
	if _, err := stdin.Write(data); err != nil {
		return toolerr.New(toolerr.ExecutionError, "the command does not read its standard input: %w", err)
	}
	return nil
}

// CloseStdin closes the command's standard input.
func (p *Process) CloseStdin() {
	p.stdinMu.Lock()
	defer p.stdinMu.Unlock()
	closeAll(p.stdin)
	p.stdin = nil
}

// sendMessage sends m to the supervisor. It fails if the supervisor has ended.
func (p *Process) sendMessage(m controlMessage) error {
	p.sendMu.Lock()
	defer p.sendMu.Unlock()
	_, err := p.supervisor.control.Write(supervise.AppendMessage(nil, &m))
	return err
}

// monitor follows the command in the background until it ends, sets p.result,
// and closes p.done. All other goroutines of the command have ended before
// that. in receives the supervisor's reports.
func (p *Process) monitor(ctx context.Context, c Command, in *bufio.Reader) {
	var tasks sync.WaitGroup
	reports, enough := make(chan report), make(chan struct{})
	tasks.Go(func() {
		defer close(reports)
		for {
			var next report
			if supervise.ReadMessage(in, &next) != nil {
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
		if p.supervisor.output != nil {
			p.copyOutput()
		}
	})
	if len(c.Stdin) > 0 {
		tasks.Go(func() {
			if p.WriteStdin(c.Stdin) != nil || !c.KeepStdin {
				p.CloseStdin()
			}
		})
	}
	tasks.Go(func() { p.guard.CheckWhileRunning(enough) })
	go func() {
		p.handleReports(ctx, c.Timeout, reports)
		close(enough)
		p.cleanUp(read)
		tasks.Wait()
		p.output.setComplete()
		p.result.Reverted, p.result.CopyDirs = p.guard.End()
		p.result.Unguarded = p.guard.Gaps()
		p.result.Gaps = append(p.result.Gaps, p.result.Unguarded...)
		p.result.Undo = p.runner.existingUndoID(p.undoID)
		p.result.Duration = time.Since(p.began)
		p.runner.mu.Lock()
		delete(p.runner.running, p)
		if len(c.Program) == 0 {
			p.runner.prestartSupervisors(p.result.Level)
		}
		p.runner.mu.Unlock()
		close(p.done)
	}()
}

// handleReports receives the supervisor's reports until the last one. On a
// timeout, a cancelled context, Kill or Abort it tells the supervisor to end
// the command.
func (p *Process) handleReports(ctx context.Context, timeout time.Duration, reports <-chan report) {
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
		if p.sendMessage(controlMessage{Stop: true}) != nil {
			late = time.After(0)
			return
		}
		late = time.After(p.grace + lostSupervisorDelay)
	}
	for {
		select {
		case r, ok := <-reports:
			switch {
			case !ok:
				p.handleLostSupervisor()
				return
			case r.Access != 0:
				p.result.Accesses = append(p.result.Accesses, Access{r.Access, r.Name})
			case r.Memory:
				p.result.Ending = OverMemory
			case r.Exited:
				p.setExitStatus(r.Status)
			}
			if r.Done {
				p.result.LeftBehind = r.Left
				return // do not wait for the supervisor to exit
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
			p.supervisor.hangUp()
			late = time.After(lostSupervisorDelay)
		case <-late:
			p.supervisor.process.Kill()
		}
	}
}

// handleLostSupervisor ends a command whose supervisor ended without its last
// report. It kills the remaining processes and adds their number to LeftBehind.
// Ending becomes Lost, unless the exit status or another ending is known.
func (p *Process) handleLostSupervisor() {
	if p.result.ExitCode < 0 && p.result.Ending == Exited {
		p.result.Ending = Lost
	}
	p.supervisor.process.Kill()
	p.result.LeftBehind += supervise.KillMarked(p.envMark)
}

// cleanUp frees the resources of the command after the supervisor has ended it.
// outputRead is closed at the end of the output.
func (p *Process) cleanUp(outputRead <-chan struct{}) {
	p.result.Report = readReport(p.temp.path)
	p.runner.background.Go(func() {
		time.Sleep(afterAnswerDelay)
		p.supervisor.process.Wait()
		// Wait first: to remove a directory that is a mount point in an
		// existing namespace takes long.
		p.temp.remove()
	})
	p.CloseStdin()
	p.closeProxy()
	select {
	case <-outputRead:
	case <-time.After(maxOutputEndWait):
		p.supervisor.output.SetReadDeadline(time.Now())
		<-outputRead
	}
	closeAll(p.supervisor.output)
	p.supervisor.control.Close()
}

// copyOutput copies the pipe to p.output until its end or its read deadline.
func (p *Process) copyOutput() {
	buf := make([]byte, 64<<10)
	for {
		n, err := p.supervisor.output.Read(buf)
		p.output.write(buf[:n])
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return
		case errors.Is(err, os.ErrDeadlineExceeded):
			// On a busy machine this may be the first time that this goroutine
			// reads.
			drain(p.supervisor.output, buf, p.output.write)
			return
		default:
			p.output.write([]byte("\n[the output could not be read to its end: " + err.Error() + "]\n"))
			return
		}
	}
}
