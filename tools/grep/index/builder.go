package index

import (
	"context"
	"hash/maphash"
	"sync"
	"time"
)

// Content is the result of reading a file, for Add.
type Content struct {
	Key    Key       // of the open file, by a stat before the reading
	Taken  time.Time // before that stat
	Text   []byte    // decoded as for a search
	Binary bool      // Text is empty
	Opaque bool      // Text is empty; every search must read the file, and need not queue it again
}

// Read reads the file of a queued path; the Builder passes paths on without
// interpreting them. Calls do not overlap, so Text may be in a reused buffer.
// For a file that is not wanted (denied, gone) it returns an error, which only
// skips the file. ctx ends when the Builder is closed.
type Read func(ctx context.Context, path string) (Content, error)

// queueBytes bounds the queue, with pathCost added for each path: enough for
// 300 000 usual paths.
const (
	queueBytes = 32 << 20
	pathCost   = 48
)

// Builder reads files and adds them to an index while no call is in flight, in
// one goroutine.
//
//	b := index.StartBuilder(ctx, x, read)
//	defer b.Close()
//
//	resume := b.Pause() // in each call
//	defer resume()
//	// … search …
//	b.Queue(unknown)
type Builder struct {
	index *Index
	read  Read
	ctx   context.Context
	stop  context.CancelFunc
	done  chan struct{}

	mu      sync.Mutex
	changed *sync.Cond // signals changes of the fields below and of contexts
	calls   int        // in flight
	working bool
	paths   []string
	queued  map[uint64]struct{} // hashes of paths
	bytes   int
	seed    maphash.Seed
}

// StartBuilder starts a Builder that stops when ctx ends or it is closed.
func StartBuilder(ctx context.Context, x *Index, read Read) *Builder {
	b := &Builder{index: x, read: read, done: make(chan struct{}), seed: maphash.MakeSeed()}
	b.ctx, b.stop = context.WithCancel(ctx)
	b.changed = sync.NewCond(&b.mu)
	b.drop()
	go b.run()
	return b
}

// Close stops the Builder and waits for it. Queued files are dropped.
func (b *Builder) Close() {
	b.stop()
	<-b.done
}

// Pause stops the Builder's work until resume is called: at the next file, or
// within a large one. Pauses may overlap.
func (b *Builder) Pause() (resume func()) {
	b.mu.Lock()
	b.calls++
	b.mu.Unlock()
	return sync.OnceFunc(func() {
		b.mu.Lock()
		b.calls--
		b.changed.Broadcast()
		b.mu.Unlock()
	})
}

// Queue adds files to read. It skips files already queued and those beyond
// queueBytes: a later search that finds them unknown may queue them again.
func (b *Builder) Queue(paths []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ctx.Err() != nil {
		return
	}
	for _, path := range paths {
		cost := len(path) + pathCost
		// Two paths with equal hashes are rare: the second is skipped.
		hash := maphash.String(b.seed, path)
		if _, waits := b.queued[hash]; waits || b.bytes+cost > queueBytes {
			continue
		}
		b.queued[hash] = struct{}{}
		b.paths = append(b.paths, path)
		b.bytes += cost
	}
	b.changed.Broadcast()
}

// Wait waits until the queue is empty, the Builder has stopped, or ctx ends;
// then it returns ctx's error.
func (b *Builder) Wait(ctx context.Context) error {
	defer context.AfterFunc(ctx, b.wake)()
	b.mu.Lock()
	defer b.mu.Unlock()
	for (b.working || len(b.paths) > 0) && ctx.Err() == nil && b.ctx.Err() == nil {
		b.changed.Wait()
	}
	return ctx.Err()
}

func (b *Builder) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changed.Broadcast()
}

func (b *Builder) run() {
	defer close(b.done)
	defer context.AfterFunc(b.ctx, b.wake)()
	for {
		path, ok := b.next()
		if !ok {
			return
		}
		c, err := b.read(b.ctx, path)
		if err == nil {
			_ = b.index.add(c, b.pause)
		}
	}
}

// next waits for a path and for a moment without calls. It returns false at the
// end.
func (b *Builder) next() (string, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.working = false
	if !b.index.hasRoom() {
		b.drop()
	}
	if len(b.paths) == 0 {
		b.drop() // and the memory
	}
	b.changed.Broadcast()
	for len(b.paths) == 0 || b.calls > 0 {
		if b.ctx.Err() != nil {
			break
		}
		b.changed.Wait()
	}
	if b.ctx.Err() != nil {
		b.drop()
		return "", false
	}
	path := b.paths[0]
	b.paths[0], b.paths = "", b.paths[1:]
	b.bytes -= len(path) + pathCost
	delete(b.queued, maphash.String(b.seed, path))
	b.working = true
	return path, true
}

// pause waits, while a file is being added, for a moment without calls.
func (b *Builder) pause() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.calls > 0 && b.ctx.Err() == nil {
		b.changed.Wait()
	}
	return b.ctx.Err()
}

// drop empties the queue.
func (b *Builder) drop() {
	b.paths, b.queued, b.bytes = nil, map[uint64]struct{}{}, 0
}
