package walk

import (
	"cmp"
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// maxOpen bounds the directories that a walk keeps open for their remaining
// sub-directories. Others are closed, and opened again by name from the nearest
// open directory above.
const maxOpen = 256

// maxWorkers bounds the goroutines of one walk.
const maxWorkers = 8

// Walk visits the entries below start, which it does not close. A directory is
// visited before its contents. Its entries are visited in order of their names,
// unless Options.AnyOrder is set; otherwise the order is undefined, since
// several goroutines visit. worker, from 0 to Options.Workers-1, identifies the
// goroutine, so that each can have its own state. An Entry is valid during the
// visit, its strings also later.
//
// visit may return fs.SkipDir for a directory that need not be entered,
// fs.SkipAll to end the walk without an error, or any other error to end it
// with that error. When ctx ends, no further visit begins and Walk returns the
// error of ctx. In these cases the report covers the visits so far: an entry
// counts as visited unless its visit returned another error.
func Walk(ctx context.Context, start *Node, visit func(worker int, e *Entry) error) (Report, error) {
	w := &walker{ctx: ctx, done: ctx.Done(), start: start, opts: start.tree.opts, visit: visit, maxOpen: cmp.Or(start.tree.opts.maxOpen, maxOpen)}
	w.wake.L = &w.mu
	count := w.opts.Workers
	if count <= 0 {
		count = min(runtime.GOMAXPROCS(0), maxWorkers)
	}
	if err := start.rewind(); err != nil {
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

// frame is a directory with sub-directories or further pieces to visit. Its
// fields are protected by walker.mu once it is on the stack.
type frame struct {
	node       *Node
	subdirs    []string // paths of the sub-directories to enter, ascending
	done       bool     // no piece follows
	users      int      // workers that are using node.dir
	openRanges int      // unfinished ranges of the piece to which subdirs belong
	offStack   bool     // removed from the stack
}

// walker is the state that the workers of one walk share.
type walker struct {
	ctx     context.Context
	done    <-chan struct{} // of ctx
	start   *Node
	opts    Options
	visit   func(worker int, e *Entry) error
	maxOpen int

	stopped atomic.Bool  // no visit may begin
	idle    atomic.Int32 // idle workers

	mu           sync.Mutex
	wake         sync.Cond // work was added, a worker became idle, or the walk stopped
	stack        []*frame  // directories with work, the next one last
	handedOver   []entryRange
	startTaken   bool  // a worker has taken the job to visit the start
	interrupted  bool  // the walk stopped during a visit of a directory
	busy         int   // workers that do a job
	open         int   // open directories, without the start
	err          error // why the walk stopped
	contextEnded bool  // err is the context's
}

// job is one step of a worker: entering a sub-directory, reading the next piece
// of a directory, or visiting a part handed over.
type job struct {
	frame   *frame
	subdir  string
	entries *entryRange
}

// isHalted reports whether the walk has stopped, so that no visit may begin. It stops
// the walk if the context has ended.
func (w *walker) isHalted() bool {
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

// stop ends the walk. Only the first reason is kept. ended means that it is the
// error of ctx.
func (w *walker) stop(reason error, ended bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stopped.Load() {
		w.err, w.contextEnded = reason, ended
		w.stopped.Store(true)
	}
	w.wake.Broadcast()
}

// takeJob waits for a job. ok is false when no more jobs will come.
func (w *walker) takeJob() (next job, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy--
	for {
		if w.stopped.Load() {
			return job{}, false
		}
		if n := len(w.handedOver); n > 0 {
			given := w.handedOver[n-1]
			w.handedOver = w.handedOver[:n-1]
			w.busy++
			return job{entries: &given}, true
		}
		if n := len(w.stack); n > 0 {
			f := w.stack[n-1]
			w.busy++
			f.users++
			if len(f.subdirs) > 0 {
				kid := f.subdirs[0]
				f.subdirs = f.subdirs[1:]
				if len(f.subdirs) == 0 && f.done {
					w.stack = w.stack[:n-1]
					f.offStack = true
				}
				return job{frame: f, subdir: kid}, true
			}
			w.stack = w.stack[:n-1]
			return job{frame: f}, true
		}
		if !w.startTaken {
			w.startTaken = true
			w.busy++
			return job{frame: &frame{node: w.start, users: 1}}, true
		}
		if w.busy == 0 {
			w.wake.Broadcast()
			return job{}, false
		}
		w.idle.Add(1)
		w.wake.Wait()
		w.idle.Add(-1)
	}
}

// pushFrame puts a directory whose current piece has been visited onto the stack, and
// wakes the waiting workers. It closes a directory that was read completely if more
// than maxOpen are open.
func (w *walker) pushFrame(f *frame) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stack = append(w.stack, f)
	if f.done && w.open > w.maxOpen {
		w.closeDir(f.node)
	}
	w.wake.Broadcast()
}

// release ends one use of a frame's directory. It closes the directory after
// the last use.
func (w *walker) release(f *frame) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f.users--
	if f.offStack && f.users == 0 {
		w.closeDir(f.node)
	}
}

// closeWhenUnused closes the directory of a frame that is no longer on the
// stack, at once or after its last use.
func (w *walker) closeWhenUnused(f *frame) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f.offStack = true
	if f.users == 0 {
		w.closeDir(f.node)
	}
}

// closeRemaining closes the open directories of a walk that has ended, and
// reports whether it ended before everything was visited.
func (w *walker) closeRemaining() (partial bool) {
	partial = !w.startTaken || w.interrupted || len(w.handedOver) > 0 || len(w.stack) > 0
	for _, p := range w.handedOver {
		w.closeWhenUnused(p.frame)
	}
	for _, f := range w.stack {
		w.closeWhenUnused(f)
	}
	return partial
}

// closeDir closes a node's directory, except the start. Its sub-directories can
// still be opened by name. The caller holds mu.
func (w *walker) closeDir(n *Node) {
	if n == w.start || n.dir == nil {
		return
	}
	if err := n.dir.Close(); err != nil {
		w.start.tree.addFault(n.Path(), err)
	}
	n.dir = nil
	w.open--
}

// closeUnused closes every directory that no worker is using, after descriptors
// ran out, and lowers maxOpen.
func (w *walker) closeUnused() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.stack {
		if f.users == 0 && f.done {
			w.closeDir(f.node)
		}
	}
	w.maxOpen = min(w.maxOpen, max(w.open, 1))
}
