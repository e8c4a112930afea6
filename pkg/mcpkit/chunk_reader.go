package mcpkit

import (
	"io"
)

// chunkReader reads a stream in a goroutine, one chunk at a time and only on
// request, so that the caller can stop waiting and read the stream later.
type chunkReader struct {
	src     io.Reader
	arrived chan struct{}
	pending bool // a read is running, or its chunk has not been taken
	chunk   []byte
	rest    []byte // of a chunk that Read took
	err     error
	ended   bool
}

func newChunkReader(src io.Reader) *chunkReader {
	return &chunkReader{src: src, arrived: make(chan struct{}, 1)}
}

// requestChunk starts a read unless one is pending, and returns a channel that
// becomes readable when it is done.
func (c *chunkReader) requestChunk() <-chan struct{} {
	if !c.pending {
		c.pending = true
		go func() {
			buf := make([]byte, 32<<10)
			n, err := c.src.Read(buf)
			c.chunk, c.err = buf[:n], err
			c.arrived <- struct{}{}
		}()
	}
	return c.arrived
}

// takeChunk returns the chunk that was read, after the caller received from
// ready.
func (c *chunkReader) takeChunk() []byte {
	c.pending = false
	c.ended = c.err != nil
	return c.chunk
}

// Read reads on from the stream directly, after the chunk of a pending read.
func (c *chunkReader) Read(p []byte) (int, error) {
	if c.pending {
		<-c.arrived
		c.rest = c.takeChunk()
	}
	if len(c.rest) > 0 {
		n := copy(p, c.rest)
		c.rest = c.rest[n:]
		return n, nil
	}
	if c.ended {
		return 0, c.err
	}
	return c.src.Read(p)
}
