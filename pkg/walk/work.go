package walk

import (
	"cmp"
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// maxOpen is how many directories one walk keeps open for their
// sub-directories still to come. Beyond it they are closed and found again by
// their names, from the nearest open one above.
const maxOpen = 256

// maxWorkers bounds the goroutines of one walk.
const maxWorkers = 8

// Walk visits the entries below start, which remains open and the caller's.
// A directory is visited before what is in it, its entries in the order of
// their names, unless Options.AnyOrder; else the order is not defined, since several goroutines visit.
// worker, from 0 to Options.Workers-1, tells them apart, so that each can
// have its own state. An Entry serves for the visit only, its strings beyond.
//
// visit may return fs.SkipDir for a directory that need not be entered,
// fs.SkipAll to end the walk, or any other error to end it with that error.
// When ctx ends, no further visit begins and the walk ends with its error. In these cases the report
// holds what was visited so far, and a cursor: an entry counts as visited
// unless its visit failed with an error of its own.
func Walk(ctx context.Context, start *Node, visit func(worker int, e *Entry) error) (Report, error) {
	w := &walker{ctx: ctx, done: ctx.Done(), start: start, opts: start.tree.opts, visit: visit, maxOpen: cmp.Or(start.tree.opts.maxOpen, maxOpen)}
	w.wake.L = &w.mu
	count := w.opts.Workers
	if count <= 0 {
		count = min(runtime.GOMAXPROCS(0), maxWorkers)
	}
	if err := w.seed(); err != nil {
		return Report{}, err
	}
	workers := make([]*worker, count)
	var group sync.WaitGroup
	for i := range workers {
		workers[i] = &worker{walker: w, id: i}
		group.Go(workers[i].run)
	}
	group.Wait()
	return w.report(workers)
}

// frame is a directory with sub-directories, or pieces of itself, to come.
type frame struct {
	node  *Node
	kids  []string // paths of the sub-directories to enter, ascending
	raw   int      // entries before the piece that kids are of
	size  int      // entries in that piece
	done  bool     // no piece follows
	users int      // workers that are using node.dir
	parts int      // of that piece, not visited to their ends
	spent bool     // off the stack
}

// walker is the state that the workers of one walk share.
type walker struct {
	ctx     context.Context
	done    <-chan struct{} // of ctx
	start   *Node
	opts    Options
	visit   func(worker int, e *Entry) error
	maxOpen int

	stopped atomic.Bool
	waiting atomic.Int32 // workers without a job

	mu    sync.Mutex
	wake  sync.Cond // something was added, a worker became idle, or the walk stopped
	stack []*frame
	given []part
	seeds []position // of the cursor, not begun yet
	rest  []position // begun and not finished, when stopped
	busy  int
	open  int // directories open beside the start
	err   error
	ended bool // err is that of the context
}

// job is one step of a worker: to enter a sub-directory, to go on with the
// next piece of a directory, to help with one, or to take up a position of the
// cursor.
type job struct {
	frame *frame
	kid   string
	part  *part
	seed  *position
}

// halted reports whether no visit may begin any more.
func (w *walker) halted() bool {
	if w.stopped.Load() {
		return true
	}
	select {
	case <-w.done:
		w.stop(w.ctx.Err(), true)
		return true
	default:
		return false
	}
}

// stop ends the walk; the first reason counts, and ended says that it is the
// context's.
func (w *walker) stop(reason error, ended bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stopped.Load() {
		w.err, w.ended = reason, ended
		w.stopped.Store(true)
	}
	w.wake.Broadcast()
}

// take waits for a job; false when there will be none.
func (w *walker) take() (job, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy--
	for {
		if w.stopped.Load() {
			return job{}, false
		}
		if n := len(w.given); n > 0 {
			given := w.given[n-1]
			w.given = w.given[:n-1]
			w.busy++
			return job{part: &given}, true
		}
		if n := len(w.stack); n > 0 {
			f := w.stack[n-1]
			w.busy++
			f.users++
			if len(f.kids) > 0 {
				kid := f.kids[0]
				f.kids = f.kids[1:]
				if len(f.kids) == 0 && f.done {
					w.stack = w.stack[:n-1]
					f.spent = true
				}
				return job{frame: f, kid: kid}, true
			}
			w.stack = w.stack[:n-1]
			return job{frame: f}, true
		}
		if n := len(w.seeds); n > 0 {
			seed := w.seeds[n-1]
			w.seeds = w.seeds[:n-1]
			w.busy++
			return job{seed: &seed}, true
		}
		if w.busy == 0 {
			w.wake.Broadcast()
			return job{}, false
		}
		w.waiting.Add(1)
		w.wake.Wait()
		w.waiting.Add(-1)
	}
}

// push adds a directory whose current piece was visited.
func (w *walker) push(f *frame) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stack = append(w.stack, f)
	if f.done && w.open > w.maxOpen {
		w.close(f.node)
	}
	w.wake.Broadcast()
}

// release ends the use of a frame's directory and closes it after the last.
func (w *walker) release(f *frame) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f.users--
	if f.spent && f.users == 0 {
		w.close(f.node)
	}
}

// drop closes the directory of a frame that is not on the stack any more, or
// leaves that to the last worker that uses it.
func (w *walker) drop(f *frame) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f.spent = true
	if f.users == 0 {
		w.close(f.node)
	}
}

// close closes a node's directory; callers hold the lock. What is below it
// is found again by its name.
func (w *walker) close(n *Node) {
	if n == w.start || n.dir == nil {
		return
	}
	if err := n.dir.Close(); err != nil {
		w.start.tree.fault(n.Path(), err)
	}
	n.dir = nil
	w.open--
}

// shed closes every directory that nobody uses, when descriptors ran out.
func (w *walker) shed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.stack {
		if f.users == 0 && f.done {
			w.close(f.node)
		}
	}
	w.maxOpen = min(w.maxOpen, max(w.open, 1))
}
