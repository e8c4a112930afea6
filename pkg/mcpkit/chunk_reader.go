package mcpkit

import (
	"io"
)

// chunkReader reads a stream in a goroutine, one chunk at a time and only on
// request, so that its user can stop waiting and read the stream later. It is
// for one goroutine.
type chunkReader struct {
	src     io.Reader
	arrived chan struct{} // gets a value when a requested chunk has been read
	pending bool          // a read is running, or its chunk has not been taken
	chunk   []byte
	rest    []byte // unread part of a chunk that Read took
	err     error  // of the last read
	ended   bool   // err was not nil when the last chunk was taken
}

// newChunkReader returns a chunkReader that has not requested a chunk.
func newChunkReader(src io.Reader) *chunkReader {
	return &chunkReader{src: src, arrived: make(chan struct{}, 1)}
}

// requestChunk starts a read, unless one is pending, and returns a channel that
// gets a value when the chunk has been read.
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

// takeChunk returns the chunk that was read. Call it after receiving from
// requestChunk's channel.
func (c *chunkReader) takeChunk() []byte {
	c.pending = false
	c.ended = c.err != nil
	return c.chunk
}

// Read implements io.Reader: it returns the chunk of a pending read, then reads
// directly from the stream.
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
