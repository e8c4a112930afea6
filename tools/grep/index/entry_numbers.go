package index

import (
	"sync"
	"sync/atomic"
)

// refs maps numbers to entries. An entry has its number until it is dropped;
// numbers are reused. 0 means no entry. It is safe for concurrent use.
type refs struct {
	chunks atomic.Pointer[[]*chunk]

	mu   sync.Mutex
	last uint32   // the highest number so far
	free []uint32 // numbers to reuse
}

// add gives an entry a number, which it stores in e.ref. No other goroutine may
// have the entry yet.
func (r *refs) add(e *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.free); n > 0 {
		e.ref, r.free = r.free[n-1], r.free[:n-1]
	} else {
		r.last++
		e.ref = r.last
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

// remove makes an entry's number free.
func (r *refs) remove(e *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	(*r.chunks.Load())[e.ref/chunkSize][e.ref%chunkSize].Store(nil)
	r.free = append(r.free, e.ref)
}

// chunkSize is the number of entries in a chunk.
const chunkSize = 4096

// chunk is a part of refs: the entries of chunkSize consecutive numbers.
type chunk [chunkSize]atomic.Pointer[entry]
