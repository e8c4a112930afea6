package supervise

import (
	"bufio"
	"io"
	"time"
)

// command is a started command on a system other than Linux, where no process adopts the
// orphans of others: its processes are found by looking.
type command interface {
	// wait waits for the end of the program itself and returns its report, with Exited.
	wait() Report
	// countOthers finds processes that the command has started since the last call. It returns
	// the number that still run, except for the program itself.
	countOthers() int
	// terminate asks all processes to end, kill ends them. They return the ids of the
	// processes that they tried to end.
	terminate() []int
	kill() []int
	// signal sends a signal to the process group of the program.
	signal(number int)
}

// lookInterval is the interval between two calls of command.countOthers.
const lookInterval = 20 * time.Millisecond

// followCommand handles the messages of the server and ends the command, until no process
// of it is left. in receives the server's messages after the spec; at their end everything
// is killed at once.
func followCommand(control io.Writer, in *bufio.Reader, s *Spec, c command) {
	messages, enough := make(chan ControlMessage), make(chan struct{})
	defer close(enough)
	go func() {
		defer close(messages)
		for {
			var next ControlMessage
			if ReadMessage(in, &next) != nil {
				return
			}
			select {
			case messages <- next:
			case <-enough:
				return
			}
		}
	}()
	exited := make(chan Report, 1)
	go func() { exited <- c.wait() }()
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	f := &followedCommand{control: control, spec: s, command: c, running: true, left: map[int]bool{}}
	for {
		select {
		case r := <-exited:
			if f.programEnded(r) {
				return
			}
		case <-look.C:
			if c.countOthers() == 0 && !f.running {
				f.report(Report{Done: true, Left: len(f.left)})
				return
			}
		case m, ok := <-messages:
			switch {
			case !ok: // the server is gone
				messages, f.term = nil, nil
				f.killAfter = time.After(0)
			case m.Stop && f.killAfter == nil:
				f.terminateAll(time.Duration(s.GraceMS) * time.Millisecond)
			case m.Signal != 0 && f.running:
				c.signal(m.Signal)
			}
		case <-f.term:
			f.terminateAll(time.Duration(s.WaitMS) * time.Millisecond)
		case <-f.killAfter:
			f.countEnded(c.kill())
			f.killAfter = time.After(lookInterval)
		}
	}
}

// followedCommand is the state of followCommand.
type followedCommand struct {
	control io.Writer
	spec    *Spec
	command command
	running bool         // the program itself runs
	left    map[int]bool // processes that the program left running and that had to be ended

	term, killAfter <-chan time.Time // nil: not decided
}

// report sends a report to the server. It ignores errors: the server may be gone.
func (f *followedCommand) report(r Report) { f.control.Write(AppendMessage(nil, &r)) }

// programEnded reports the end of the program, and whether no other process is left.
func (f *followedCommand) programEnded(r Report) (done bool) {
	f.running = false
	if f.command.countOthers() == 0 {
		r.Done, r.Left = true, len(f.left)
		f.report(r)
		return true
	}
	f.report(r)
	if f.killAfter == nil {
		f.term = time.After(time.Duration(f.spec.WaitMS) * time.Millisecond)
	}
	return false
}

// terminateAll asks all processes to end now, and kills them after a delay.
func (f *followedCommand) terminateAll(delay time.Duration) {
	f.term = nil
	f.countEnded(f.command.terminate())
	f.killAfter = time.After(delay)
}

// countEnded counts processes that were ended after the program itself.
func (f *followedCommand) countEnded(pids []int) {
	if f.running {
		return
	}
	for _, pid := range pids {
		f.left[pid] = true
	}
}
