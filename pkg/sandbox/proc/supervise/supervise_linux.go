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
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// killEvery is how often what is left is killed again.
const killEvery = 2 * time.Millisecond

// supervise starts bash as the server says and stays until no descendant is
// left. One thread is confined and has bash cloned from it; the others, which
// end the command, stay outside.
func supervise() int {
	// Nothing of the server is inherited, whatever it forgot to close.
	unix.CloseRange(controlFD, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
	if err := adopt(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	ahead, err := expect()
	if err != nil {
		return 2
	}
	control := os.NewFile(controlFD, "control") // blocking, so that it wakes the thread that reads
	engagement := &engagement{ahead: ahead, control: control, done: make(chan outcome, 1)}
	ahead.onPrepared(engagement.begin)
	begun := <-engagement.done
	if begun.pid == 0 {
		return begun.code
	}
	guard := &guard{
		spec: &engagement.spec, pid: begun.pid, control: control,
		exited: make(chan struct{}), gone: make(chan struct{}), running: true, left: map[int]bool{}, shared: begun.shared,
		recorder: engagement.recorder,
	}
	orders := make(chan Order)
	go func() { // ends with the process
		defer close(orders)
		for {
			var next Order
			if Read(engagement.in, &next) != nil {
				return
			}
			orders <- next
		}
	}()
	go guard.reap()
	guard.watch(orders)
	return 0
}

// engagement is how a supervisor comes to its command.
type engagement struct {
	ahead   *prepared
	control *os.File
	in      *bufio.Reader // of what comes after the files
	spec    Spec
	files   []uintptr
	done    chan outcome

	recorder *recorder // nil without an undo record
}

// outcome is the command that was started, or the exit status where none was.
type outcome struct {
	pid, code int
	shared    int64 // memory of the machine before
}

// begin waits for a command and starts it: where all was prepared for it, on
// this thread, which then has nobody to wait for.
func (e *engagement) begin() {
	first, files, err := takeFiles()
	if err != nil {
		e.done <- outcome{code: 2}
		return
	}
	if len(files) < 2 { // nothing to do, and nobody to do it for
		e.done <- outcome{}
		return
	}
	e.in = bufio.NewReader(io.MultiReader(bytes.NewReader(first), e.control))
	if err := Read(e.in, &e.spec); err != nil || !e.spec.complete(e.ahead.expected()) {
		e.done <- outcome{code: 2}
		return
	}
	if files, err = e.spec.takeHeld(files); err != nil {
		e.report(Report{Error: err.Error()})
		e.done <- outcome{code: 1}
		return
	}
	if e.files, err = offerListener(&e.spec, files); err != nil {
		e.report(Report{Error: err.Error()})
		e.done <- outcome{code: 1}
		return
	}
	if e.ahead.fits(&e.spec) {
		calls, err := e.ahead.confine(&e.spec)
		if calls != nil && err == nil {
			e.recorder = calls.recorder
			go calls.serve() // ends with the process
		}
		e.start(err, true)
	} else {
		onOtherThread(func() {
			calls, err := confine(&e.spec)
			if calls != nil && err == nil {
				e.recorder = calls.recorder
				go calls.serve() // ends with the process
			}
			e.start(err, false)
		})
	}
}

func (e *engagement) report(r Report) { e.control.Write(Append(nil, &r)) }

// start starts bash from this thread, unless something kept that from being
// confined.
func (e *engagement) start(err error, prepared bool) {
	pid, shared := 0, machineShared()
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
		e.done <- outcome{code: 1}
		return
	}
	for _, fd := range e.files {
		unix.Close(int(fd))
	}
	e.report(Report{Started: pid, Ahead: prepared})
	e.done <- outcome{pid: pid, shared: shared}
}

// onOtherThread runs f on a thread that stays until the process ends, since a
// thread that bash was cloned from takes it along. It is not the first thread:
// that stands for the process where the kernel asks who may signal or trace
// it, and must not be in the command's own domain.
func onOtherThread(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			onOtherThread(f)
		} else {
			f()
		}
		select {}
	}()
}

// adopt makes this process the adoptive parent of all that is to come.
func adopt() error {
	// Signals that the server ignores would be ignored by bash, too; one that
	// is caught here is back at its default after exec.
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGPIPE,
		unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGCHLD, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no subreaper: %w", err)
	}
	os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0) // rather than the server
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("not dumpable: %w", err)
	}
	return nil
}

// startBash clones bash from this thread.
func startBash(s *Spec, files []uintptr) (pid int, err error) {
	files = slices.Insert(slices.Clone(files), 1, files[1]) // both output streams
	pid, err = syscall.ForkExec(s.Argv[0], s.Argv, &syscall.ProcAttr{
		Dir: s.Dir, Env: s.Env, Files: files,
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return 0, &programError{s, err}
	}
	return pid, nil
}

// programError is a program that the system did not start.
type programError struct {
	spec *Spec
	err  error
}

func (e *programError) Error() string {
	if errors.Is(e.err, unix.E2BIG) {
		return fmt.Sprintf("it has %d bytes and its environment %d, which together are more than the system gives to a program: "+
			"put the script or the data into a file, or set fewer variables", size(e.spec.Argv), size(e.spec.Env))
	}
	return fmt.Sprintf("%s in %s: %v", e.spec.Argv[0], e.spec.Dir, e.err)
}

func size(texts []string) (n int) {
	for _, text := range texts {
		n += len(text) + 1
	}
	return n
}

// guard watches over one command.
type guard struct {
	spec     *Spec
	pid      int
	exited   chan struct{} // closed when bash has ended
	gone     chan struct{} // closed when no descendant is left
	rounds   int           // of killing
	recorder *recorder
	shared   int64 // least memory of the machine since the command began, see machineShared

	mu      sync.Mutex
	control *os.File
	running bool         // bash is
	left    map[int]bool // those that bash left and that were signalled
}

// reap collects every child and orphan until the kernel says that there are
// none. As all orphans come here, none can then be left anywhere. It reports
// that itself, with the end of bash where that was the last: somebody waits for
// it.
func (g *guard) reap() {
	defer close(g.gone)
	var last Report // of bash's end, until it is known whether others are left
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

func (g *guard) report(r Report) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.Exited {
		g.running = false
		close(g.exited)
	}
	if r.Done {
		r.Left = len(g.left)
	}
	g.control.Write(Append(nil, &r))
}

// runs reports whether bash has not ended.
func (g *guard) runs() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.running
}

// watch runs until no descendant is left.
func (g *guard) watch(orders <-chan Order) {
	var term, kill <-chan time.Time
	memory := time.NewTicker(time.Second)
	defer memory.Stop()
	end := func() { // TERM now, KILL when the grace is over
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
		case o, ok := <-orders:
			switch {
			case !ok: // the server is gone
				orders, term = nil, nil
				kill = time.After(0)
			case o.Stop && kill == nil:
				end()
			case o.Signal != 0 && g.runs():
				unix.Kill(-g.pid, syscall.Signal(o.Signal))
			}
		case <-term:
			end()
			if !g.runs() { // what bash left behind gets no second chance
				kill = time.After(time.Duration(g.spec.WaitMS) * time.Millisecond)
			}
		case <-kill:
			g.killAll()
			kill = time.After(killEvery)
		case <-memory.C:
			if kill == nil && g.overMemory() {
				g.report(Report{Memory: true})
				end()
			}
		}
	}
}
