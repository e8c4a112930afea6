package supervise

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
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
	files, err := takeFiles()
	if err != nil {
		return 2
	}
	if len(files) < 2 { // nothing to do, and nobody to do it for
		return 0
	}
	control := os.NewFile(controlFD, "control")
	decoder, encoder := json.NewDecoder(control), json.NewEncoder(control)
	var s Spec
	if err := decoder.Decode(&s); err != nil || !s.complete(ahead.expected()) {
		return 2
	}
	if files, err = offerListener(&s, files); err != nil {
		encoder.Encode(Report{Error: err.Error()})
		return 1
	}
	type start struct {
		pid int
		err error
	}
	started := make(chan start)
	prepared := ahead.onConfined(&s, func(err error) {
		pid := 0
		if err == nil {
			encoder.Encode(Report{Ready: true})
			pid, err = startBash(&s, files)
		}
		started <- start{pid, err}
	})
	first := <-started
	pid := first.pid
	if first.err != nil {
		var program *programError
		encoder.Encode(Report{Error: first.err.Error(), Program: errors.As(first.err, &program)})
		return 1
	}
	for _, fd := range files {
		unix.Close(int(fd))
	}
	encoder.Encode(Report{Started: pid, Ahead: prepared})

	guard := &guard{spec: &s, pid: pid, reports: encoder, exited: make(chan syscall.WaitStatus, 1), gone: make(chan struct{})}
	orders := make(chan Order)
	go func() { // ends with the process
		defer close(orders)
		for {
			var next Order
			if decoder.Decode(&next) != nil {
				return
			}
			orders <- next
		}
	}()
	go guard.reap()
	guard.watch(orders)
	return 0
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
	spec    *Spec
	pid     int
	reports *json.Encoder
	exited  chan syscall.WaitStatus
	gone    chan struct{} // closed when no descendant is left
	running bool          // bash is
	left    map[int]bool  // those that bash left and that were signalled
	rounds  int           // of killing
}

// reap collects every child and orphan until the kernel says that there are
// none. As all orphans come here, none can then be left anywhere.
func (g *guard) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			close(g.gone)
			return
		case pid == g.pid:
			g.exited <- status
		}
	}
}

// watch runs until no descendant is left.
func (g *guard) watch(orders <-chan Order) {
	g.left = map[int]bool{}
	var term, kill <-chan time.Time
	memory := time.NewTicker(time.Second)
	defer memory.Stop()
	end := func() { // TERM now, KILL when the grace is over
		term = nil
		g.signalAll(unix.SIGTERM)
		kill = time.After(time.Duration(g.spec.GraceMS) * time.Millisecond)
	}
	g.running = true
	for {
		select {
		case status := <-g.exited:
			g.running = false
			g.reports.Encode(Report{Exited: true, Status: int(status)})
			if kill == nil {
				term = time.After(time.Duration(g.spec.WaitMS) * time.Millisecond)
			}
		case <-g.gone:
			if g.running {
				g.reports.Encode(Report{Exited: true, Status: int(<-g.exited)})
			}
			g.reports.Encode(Report{Done: true, Left: len(g.left)})
			return
		case o, ok := <-orders:
			switch {
			case !ok: // the server is gone
				orders, term = nil, nil
				kill = time.After(0)
			case o.Stop && kill == nil:
				end()
			case o.Signal != 0 && g.running:
				unix.Kill(-g.pid, syscall.Signal(o.Signal))
			}
		case <-term:
			end()
			if !g.running { // what bash left behind gets no second chance
				kill = time.After(time.Duration(g.spec.WaitMS) * time.Millisecond)
			}
		case <-kill:
			g.killAll()
			kill = time.After(killEvery)
		case <-memory.C:
			if kill == nil && g.overMemory() {
				g.reports.Encode(Report{Memory: true})
				end()
			}
		}
	}
}
