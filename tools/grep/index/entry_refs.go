package index

import (
	"sync"
	"sync/atomic"
)

// refs maps numbers to entries until they are dropped; numbers are reused. 0
// means no entry.
type refs struct {
	chunks atomic.Pointer[[]*chunk]

	mu   sync.Mutex
	next uint32
	free []uint32
}

// add assigns a number to an entry, before other goroutines can find it.
func (r *refs) add(e *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.free); n > 0 {
		e.ref, r.free = r.free[n-1], r.free[:n-1]
	} else {
		r.next++
		e.ref = r.next
	}
	var chunks []*chunk
	if now := r.chunks.Load(); now != nil {
		chunks = *now
	}
	if int(e.ref/chunkSize) == len(chunks) {
		chunks = append(chunks[:len(chunks):len(chunks)], new(chunk))
		r.chunks.Store(&chunks)
	}
	chunks[e.ref/chunkSize][e.ref%chunkSize].Store(e)
}

// get returns the entry with a number, or nil.
func (r *refs) get(ref uint32) *entry {
	if ref == 0 {
		return nil
	}
	return (*r.chunks.Load())[ref/chunkSize][ref%chunkSize].Load()
}

// remove releases an entry's number.
func (r *refs) remove(e *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	(*r.chunks.Load())[e.ref/chunkSize][e.ref%chunkSize].Store(nil)
	r.free = append(r.free, e.ref)
}

const chunkSize = 4096

type chunk [chunkSize]atomic.Pointer[entry]
