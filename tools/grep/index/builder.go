package index

import (
	"context"
	"hash/maphash"
	"sync"
	"time"
)

// Content is the result of reading a file.
type Content struct {
	Key    Key       // of the open file, from a stat before the reading
	Taken  time.Time // before that stat
	Text   []byte    // decoded as for a search
	Binary bool      // Text is empty
	Opaque bool      // Text is empty; every search must read the file, and should not queue it again
}

// Read reads the file of a queued path. The Builder passes paths on without
// interpreting them. Calls do not overlap, so Text may be in a reused buffer.
// For a file that should not be indexed (denied, gone) it returns an error,
// which only skips the file. ctx ends when the Builder is closed.
type Read func(ctx context.Context, path string) (Content, error)

// queueBytes bounds the paths in the queue, with pathCost added for each path:
// enough for 300 000 usual paths.
const (
	queueBytes = 32 << 20
	pathCost   = 48
)

// Builder reads queued files and adds them to an index while no call is in
// flight, in one goroutine. It is safe for concurrent use.
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
	done  chan struct{} // closed when the goroutine has ended

	mu        sync.Mutex
	changed   *sync.Cond          // signals changes of the fields below and of contexts
	calls     int                 // in flight, from Pause to resume
	working   bool                // a file is being read or added
	paths     []string            // the queue
	queued    map[uint64]struct{} // hashes of paths
	pathBytes int                 // cost of paths
	seed      maphash.Seed
}

// StartBuilder starts a Builder. It runs until ctx ends or Close is called.
func StartBuilder(ctx context.Context, x *Index, read Read) *Builder {
	b := &Builder{index: x, read: read, done: make(chan struct{}), seed: maphash.MakeSeed()}
	b.ctx, b.stop = context.WithCancel(ctx)
	b.changed = sync.NewCond(&b.mu)
	b.clearQueue()
	go b.run()
	return b
}

// Close stops the Builder and waits until its goroutine has ended. It drops the
// queued files.
func (b *Builder) Close() {
	b.stop()
	<-b.done
}

// Pause stops the Builder's work until resume is called. The work stops at the
// next file, or within a large one. Pauses may overlap, and resume may be
// called several times.
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

// Queue adds files to read. It skips files that are queued already, and files
// beyond queueBytes: a later search that finds them unknown may queue them
// again.
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
		if _, waits := b.queued[hash]; waits || b.pathBytes+cost > queueBytes {
			continue
		}
		b.queued[hash] = struct{}{}
		b.paths = append(b.paths, path)
		b.pathBytes += cost
	}
	b.changed.Broadcast()
}

// WaitIdle waits until the queue is empty, the Builder has stopped, or ctx
// ends. It returns ctx's error.
func (b *Builder) WaitIdle(ctx context.Context) error {
	defer context.AfterFunc(ctx, b.wake)()
	b.mu.Lock()
	defer b.mu.Unlock()
	for (b.working || len(b.paths) > 0) && ctx.Err() == nil && b.ctx.Err() == nil {
		b.changed.Wait()
	}
	return ctx.Err()
}

// wake wakes all goroutines that wait for b.changed.
func (b *Builder) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changed.Broadcast()
}

// run reads and adds queued files until the Builder is closed.
func (b *Builder) run() {
	defer close(b.done)
	defer context.AfterFunc(b.ctx, b.wake)()
	for {
		path, ok := b.nextPath()
		if !ok {
			return
		}
		c, err := b.read(b.ctx, path)
		if err == nil {
			_ = b.index.add(c, b.waitForCalls)
		}
	}
}

// nextPath waits for a queued path and for a moment without calls. It returns
// false when the Builder is closed.
func (b *Builder) nextPath() (string, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.working = false
	if !b.index.hasRoom() {
		b.clearQueue()
	}
	if len(b.paths) == 0 {
		b.clearQueue() // and the memory
	}
	b.changed.Broadcast()
	for len(b.paths) == 0 || b.calls > 0 {
		if b.ctx.Err() != nil {
			break
		}
		b.changed.Wait()
	}
	if b.ctx.Err() != nil {
		b.clearQueue()
		return "", false
	}
	path := b.paths[0]
	b.paths[0], b.paths = "", b.paths[1:]
	b.pathBytes -= len(path) + pathCost
	delete(b.queued, maphash.String(b.seed, path))
	b.working = true
	return path, true
}

// waitForCalls waits, while a file is being added, for a moment without calls.
// It returns the context's error if the Builder is closed.
func (b *Builder) waitForCalls() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.calls > 0 && b.ctx.Err() == nil {
		b.changed.Wait()
	}
	return b.ctx.Err()
}

// clearQueue empties the queue.
func (b *Builder) clearQueue() {
	b.paths, b.queued, b.pathBytes = nil, map[uint64]struct{}{}, 0
}
