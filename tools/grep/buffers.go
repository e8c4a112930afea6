package main

import (
	"context"
	"runtime/debug"
)

// largeBuffer is the single buffer for large files that all workers of all
// calls share. A worker must acquire it to hold more than ownBufferSize of a
// file.
type largeBuffer struct {
	acquired chan struct{} // holds an item while a worker has the buffer
	buf      []byte        // belongs to the worker that acquired it
}

// acquire waits for the buffer. It returns ctx's error if ctx ends first.
func (s *largeBuffer) acquire(ctx context.Context) error {
	select {
	case s.acquired <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// grow returns a buffer of at least the given capacity that begins with a copy
// of text. The caller must have acquired the buffer.
func (s *largeBuffer) grow(size int, text []byte) []byte {
	if cap(s.buf) < size {
		s.buf = make([]byte, 0, size)
	}
	return append(s.buf[:0], text...)
}

// release lets another worker acquire the buffer.
func (s *largeBuffer) release() { <-s.acquired }

// freeUnused returns the buffer's memory to the system at the end of a call,
// unless another call has acquired the buffer.
func (s *largeBuffer) freeUnused() {
	select {
	case s.acquired <- struct{}{}:
	default:
		return
	}
	if s.buf != nil {
		s.buf = nil
		debug.FreeOSMemory()
	}
	<-s.acquired
}

// newLargeBuffer returns a buffer that nobody has acquired.
func newLargeBuffer() *largeBuffer { return &largeBuffer{acquired: make(chan struct{}, 1)} }

// bufferPool is a pool of buffers for files of up to wholeSize. It is safe for
// concurrent use.
type bufferPool struct{ unused chan []byte }

// get returns an empty buffer.
func (s *bufferPool) get() []byte {
	select {
	case buf := <-s.unused:
		return buf
	default:
		return make([]byte, 0, wholeSize+1)
	}
}

// put returns a buffer to the pool, unless it is nil or has grown for a large
// file.
func (s *bufferPool) put(buf []byte) {
	if buf == nil || cap(buf) > 2*wholeSize {
		return
	}
	select {
	case s.unused <- buf:
	default:
	}
}

// maxPooled bounds the buffers in the pool.
const maxPooled = maxWorkers

// newBufferPool returns an empty pool.
func newBufferPool() *bufferPool { return &bufferPool{make(chan []byte, maxPooled)} }
