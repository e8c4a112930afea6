package main

import (
	"context"
	"runtime/debug"
)

// largeBuffer is the single shared buffer for large files. A worker must take
// it to hold more than ownSize of a file.
type largeBuffer struct {
	free chan struct{}
	buf  []byte // belongs to the worker that took the large buffer
}

func (s *largeBuffer) take(ctx context.Context) error {
	select {
	case s.free <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// grow returns a buffer of at least the given capacity that begins with text.
func (s *largeBuffer) grow(size int, text []byte) []byte {
	if cap(s.buf) < size {
		s.buf = make([]byte, 0, size)
	}
	return append(s.buf[:0], text...)
}

func (s *largeBuffer) release() { <-s.free }

// drop returns the buffer's memory to the system at the end of a call, unless
// another call holds the large buffer.
func (s *largeBuffer) drop() {
	select {
	case s.free <- struct{}{}:
	default:
		return
	}
	if s.buf != nil {
		s.buf = nil
		debug.FreeOSMemory()
	}
	<-s.free
}

func newLargeBuffer() *largeBuffer { return &largeBuffer{free: make(chan struct{}, 1)} }

// bufferPool is a pool of the buffers of finished searches.
type bufferPool struct{ unused chan []byte }

func (s *bufferPool) take() []byte {
	select {
	case buf := <-s.unused:
		return buf
	default:
		return make([]byte, 0, wholeSize+1)
	}
}

// giveBack returns a buffer to the pool, unless it has grown for a large file.
func (s *bufferPool) giveBack(buf []byte) {
	if buf == nil || cap(buf) > 2*wholeSize {
		return
	}
	select {
	case s.unused <- buf:
	default:
	}
}

// maxSpare bounds the buffers in the pool.
const maxSpare = maxWorkers

func newBufferPool() *bufferPool { return &bufferPool{make(chan []byte, maxSpare)} }
