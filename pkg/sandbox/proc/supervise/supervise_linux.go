package supervise

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// killInterval is the interval between attempts to kill remaining processes.
const killInterval = 2 * time.Millisecond

// supervise starts bash as the server orders, and runs until no descendant is
// left. It returns the exit status of the supervisor. One thread is confined
// and clones bash; the other threads, which end the command, are not confined.
func supervise() int {
	// bash must not inherit descriptors that the server forgot to close.
	unix.CloseRange(controlFD, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
	if err := becomeSubreaper(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	ahead, err := prepareForExpected()
	if err != nil {
		return 2
	}
	control := os.NewFile(controlFD, "control") // blocking, so that data wakes the thread that reads
	setup := &commandSetup{prepared: ahead, control: control, done: make(chan startOutcome, 1)}
	ahead.runOnPreparedThread(setup.begin)
	begun := <-setup.done
	if begun.pid == 0 {
		return begun.code
	}
	guard := &commandMonitor{
		spec: &setup.spec, pid: begun.pid, control: control,
		exited: make(chan struct{}), gone: make(chan struct{}), running: true, left: map[int]bool{}, shared: begun.shared,
		recorder: setup.recorder,
	}
	messages := make(chan ControlMessage)
	go func() { // ends with the process
		defer close(messages)
		for {
			var next ControlMessage
			if ReadMessage(setup.in, &next) != nil {
				return
			}
			messages <- next
		}
	}()
	setup.watcher.startSending(guard.report)
	go guard.reap()
	guard.monitor(messages)
	return 0
}

// commandSetup holds the state of a supervisor from its start until bash runs.
type commandSetup struct {
	prepared *prepared
	control  *os.File
	in       *bufio.Reader // the data after the files
	spec     Spec
	files    []uintptr
	done     chan startOutcome

	recorder *recorder      // nil without an undo record
	watcher  *accessWatcher // nil for a command that is not watched
}

// startOutcome is the result of starting a command: its process id, or 0 and
// the exit status of the supervisor.
type startOutcome struct {
	pid, code int
	shared    int64 // shared memory of the machine before the start
}

// begin waits for a command and starts it. If the preparations fit, it starts
// bash on this thread, without a switch to another thread.
func (e *commandSetup) begin() {
	first, files, err := receiveFiles()
	if err != nil {
		e.done <- startOutcome{code: 2}
		return
	}
	if len(files) < 3 { // the server wants no command
		e.done <- startOutcome{}
		return
	}
	e.in = bufio.NewReader(io.MultiReader(bytes.NewReader(first), e.control))
	if err := ReadMessage(e.in, &e.spec); err != nil || !e.spec.addShared(e.prepared.expected()) {
		e.done <- startOutcome{code: 2}
		return
	}
	if files, err = e.spec.takePassedFiles(files); err != nil {
		e.report(Report{Error: err.Error()})
		e.done <- startOutcome{code: 1}
		return
	}
	if e.files, err = sendListener(&e.spec, files); err != nil {
		e.report(Report{Error: err.Error()})
		e.done <- startOutcome{code: 1}
		return
	}
	if e.prepared.matches(&e.spec) {
		calls, err := e.prepared.confine(&e.spec)
		if calls != nil && err == nil {
			e.recorder, e.watcher = calls.recorder, calls.watcher
			go calls.serve() // ends with the process
		}
		e.start(err, true)
	} else {
		runOnOtherThread(func() {
			calls, err := confine(&e.spec)
			if calls != nil && err == nil {
				e.recorder, e.watcher = calls.recorder, calls.watcher
				go calls.serve() // ends with the process
			}
			e.start(err, false)
		})
	}
}

// report sends r to the server. It ignores errors: the server may be gone.
func (e *commandSetup) report(r Report) { e.control.Write(AppendMessage(nil, &r)) }

// start starts bash from this thread and reports the start to the server. If
// err is not nil, the confinement failed: then it reports err and starts
// nothing. prepared says whether the preparations were used.
func (e *commandSetup) start(err error, prepared bool) {
	pid, shared := 0, machineSharedMemory()
	if err == nil {
		e.report(Report{Ready: true})
		pid, err = startBash(&e.spec, e.files)
	}
	if err != nil {
		var program *programError
		failed := Report{Error: err.Error(), Program: errors.As(err, &program)}
		if moved := (*movedError)(nil); errors.As(err, &moved) {
			failed.Moved = moved.path
		}
		e.report(failed)
		e.done <- startOutcome{code: 1}
		return
	}
	for _, fd := range e.files {
		unix.Close(int(fd))
	}
	e.report(Report{Started: pid, Ahead: prepared})
	e.done <- startOutcome{pid: pid, shared: shared}
}

// runOnOtherThread runs f on a thread that stays until the process ends, since
// the kernel kills bash when the thread that cloned it ends. It does not use
// the first thread: the kernel checks that one when another process wants to
// signal or trace the supervisor, so it must not be in the command's Landlock
// domain.
func runOnOtherThread(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			runOnOtherThread(f)
		} else {
			f()
		}
		select {}
	}()
}

// becomeSubreaper makes this process the subreaper of its descendants. It also catches
// the signals that the command would otherwise inherit as ignored, lets the kernel end
// this process before the server when memory runs out, and makes it not dumpable.
func becomeSubreaper() error {
	// bash would ignore the signals that the server ignores. A signal that is
	// caught here gets its default action after exec.
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGPIPE,
		unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGCHLD, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no subreaper: %w", err)
	}
	os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0) // the kernel kills the command before the server
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("not dumpable: %w", err)
	}
	return nil
}

// startBash starts Spec.Argv, usually bash, from this thread with the
// descriptors files, and returns its process id. The error is a *programError.
func startBash(s *Spec, files []uintptr) (pid int, err error) {
	pid, err = syscall.ForkExec(s.Argv[0], s.Argv, &syscall.ProcAttr{
		Dir: s.Dir, Env: s.Env, Files: files,
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return 0, &programError{s, err}
	}
	return pid, nil
}

// commandMonitor watches one command until its last descendant has ended: it
// receives the server's messages, checks limits and ends processes.
type commandMonitor struct {
	spec       *Spec
	pid        int
	exited     chan struct{} // closed when bash has ended
	gone       chan struct{} // closed when no descendant is left
	rounds     int           // number of calls of killAll
	recorder   *recorder
	unreadable int   // number of times in succession that the memory could not be read
	shared     int64 // least shared memory of the machine since the command began, in bytes, see machineSharedMemory

	mu      sync.Mutex
	control *os.File
	running bool         // bash is running
	left    map[int]bool // processes left by bash that were signalled
}

// reap waits for every child and orphan until the kernel reports that none are
// left. Since orphans are reparented to this process, none can be elsewhere
// then. reap sends the final report itself, with the end of bash if bash was
// the last process, because the server is waiting for it.
func (g *commandMonitor) reap() {
	defer close(g.gone)
	var last Report // of bash's end, until other processes are known to be left or not
	for {
		options := 0
		if last.Exited {
			options = syscall.WNOHANG
		}
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, options, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			g.recorder.finish()
			last.Done = true
			g.report(last)
			return
		case last.Exited:
			g.report(last)
			last = Report{}
		case pid == g.pid:
			last = Report{Exited: true, Status: int(status)}
		}
	}
}

// report sends r to the server. With Exited it also marks bash as ended.
func (g *commandMonitor) report(r Report) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.Exited {
		g.running = false
		close(g.exited)
	}
	if r.Done {
		r.Left = len(g.left)
	}
	g.control.Write(AppendMessage(nil, &r))
}

// isBashRunning reports whether bash is still running.
func (g *commandMonitor) isBashRunning() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.running
}

// monitor handles the server's messages and checks limits until no descendant
// is left.
func (g *commandMonitor) monitor(messages <-chan ControlMessage) {
	var term, kill <-chan time.Time
	memory := time.NewTicker(time.Second)
	defer memory.Stop()
	cpu := newCPULimiter(g.spec.Limits.CPUPercent)
	defer cpu.ticker.Stop()
	end := func() { // TERM now, KILL after the grace
		term = nil
		g.signalAll(unix.SIGTERM)
		kill = time.After(time.Duration(g.spec.GraceMS) * time.Millisecond)
	}
	exited := g.exited
	for {
		select {
		case <-exited:
			exited = nil
			if kill == nil {
				term = time.After(time.Duration(g.spec.WaitMS) * time.Millisecond)
			}
		case <-g.gone:
			return
		case m, ok := <-messages:
			switch {
			case !ok: // the server is gone
				messages, term = nil, nil
				kill = time.After(0)
			case m.Stop && kill == nil:
				end()
			case m.Signal != 0 && g.isBashRunning():
				unix.Kill(-g.pid, syscall.Signal(m.Signal))
			}
		case <-term:
			end()
			if !g.isBashRunning() { // after TERM, processes that bash left behind get WaitMS instead of the grace
				kill = time.After(time.Duration(g.spec.WaitMS) * time.Millisecond)
			}
		case <-kill:
			g.killAll()
			kill = time.After(killInterval)
		case <-memory.C:
			if kill == nil && g.exceedsMemory() {
				g.report(Report{Memory: true})
				end()
			}
		case <-cpu.ticker.C:
			if kill == nil {
				g.limitCPU(cpu, time.Now())
			}
		}
	}
}
