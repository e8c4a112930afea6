package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// Bounds of the bytes that an Output keeps in memory: the beginning of the
// output and, beyond that, its end. Each is enough for an Excerpt with four
// bytes a character.
const (
	maxHeadBytes = 128 << 10
	maxTailBytes = 128 << 10
)

// DefaultSpillBytes is the default bound of the file with the output, in bytes.
const DefaultSpillBytes = 256 << 20

// Output collects a command's standard output and standard error, in the order
// of the writes. It grows while the command runs. Its methods are safe for
// concurrent use.
//
// The first 128 KiB are kept in memory only. Longer output is written to a
// separate file (mode 0600) up to a bound. Beyond that bound only the last 128
// KiB are kept, and the rest is counted.
type Output struct {
	mu       sync.Mutex
	head     []byte // the first bytes, up to maxHeadBytes
	ring     []byte // the last bytes, up to maxTailBytes, once head is full
	oldest   int    // index of the oldest byte in ring
	total    int64  // bytes written
	lineEnds int64
	last     byte          // the last byte written
	changed  chan struct{} // closed at the next change
	complete bool

	spillDir string // "": no file
	spillMax int64
	spill    *os.File // nil until the output exceeds head
	spilled  int64    // bytes in the file
	spillErr error    // why nothing more is written to the file
}

// newOutput returns an empty Output. spillDir "" means no file, spillMax <= 0
// means DefaultSpillBytes.
func newOutput(spillDir string, spillMax int64) *Output {
	if spillMax <= 0 {
		spillMax = DefaultSpillBytes
	}
	return &Output{spillDir: spillDir, spillMax: spillMax, changed: make(chan struct{})}
}

// Size returns the number of bytes written so far.
func (o *Output) Size() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.total
}

// Lines returns the number of lines written so far. It counts a last line
// without a line end.
func (o *Output) Lines() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lineCount()
}

// lineCount is Lines for a caller that holds o.mu.
func (o *Output) lineCount() int64 {
	if o.total > 0 && o.last != '\n' {
		return o.lineEnds + 1
	}
	return o.lineEnds
}

// Spill returns the name of the file that holds the output from its beginning,
// and the number of bytes in it. The name is "" while the output is in memory
// only, and if no file could be created; then err gives the reason. The file
// stays after Close: the caller of Spill removes it.
func (o *Output) Spill() (name string, size int64, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.spill == nil {
		return "", 0, o.spillErr
	}
	return o.spill.Name(), o.spilled, o.spillErr
}

// Changed returns a channel that is closed at the next change: more output, or
// the end of the output.
func (o *Output) Changed() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.changed
}

// Read copies output from the byte offset on to p. It skips bytes that were not
// kept, between the end of the file and the last 128 KiB: p[:n] begins at
// offset+skipped. At the end of the output so far, n is 0 and err is nil.
func (o *Output) Read(offset int64, p []byte) (n int, skipped int64, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if offset < 0 {
		return 0, 0, fmt.Errorf("offset %d is before the beginning", offset)
	}
	if offset < int64(len(o.head)) {
		return copy(p, o.head[offset:]), 0, nil
	}
	if offset < o.spilled {
		n, err = o.spill.ReadAt(p[:min(int64(len(p)), o.spilled-offset)], offset)
		if errors.Is(err, io.EOF) && n > 0 {
			err = nil
		}
		return n, 0, err
	}
	tail := o.lastBytes()
	start := o.total - int64(len(tail))
	if offset < start {
		skipped = start - offset
	}
	if offset += skipped; offset >= o.total {
		return 0, skipped, nil
	}
	return copy(p, tail[offset-start:]), skipped, nil
}

// lastBytes returns the content of the ring, oldest byte first. The result may
// share memory with the ring.
func (o *Output) lastBytes() []byte {
	if len(o.ring) < maxTailBytes {
		return o.ring
	}
	return append(append(make([]byte, 0, maxTailBytes), o.ring[o.oldest:]...), o.ring[:o.oldest]...)
}

// write adds p. It never fails: output that cannot be kept is only counted.
func (o *Output) write(p []byte) {
	if len(p) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.total += int64(len(p))
	o.lineEnds += int64(bytes.Count(p, []byte{'\n'}))
	o.last = p[len(p)-1]
	fits := min(len(p), maxHeadBytes-len(o.head))
	o.head = append(o.head, p[:fits]...)
	if rest := p[fits:]; len(rest) > 0 {
		o.keepTail(rest)
		o.writeSpill(rest)
	}
	close(o.changed)
	o.changed = make(chan struct{})
}

// keepTail writes p to the ring, in place of its oldest bytes.
func (o *Output) keepTail(p []byte) {
	if len(p) > maxTailBytes {
		p = p[len(p)-maxTailBytes:]
	}
	if grow := min(len(p), maxTailBytes-len(o.ring)); grow > 0 {
		o.ring = append(o.ring, p[:grow]...)
		p = p[grow:]
	}
	for len(p) > 0 {
		n := copy(o.ring[o.oldest:], p)
		o.oldest = (o.oldest + n) % maxTailBytes
		p = p[n:]
	}
}

// writeSpill appends p to the file. It creates the file, with the content of
// head, at the first call.
func (o *Output) writeSpill(p []byte) {
	if o.spillErr != nil || o.spillDir == "" {
		return
	}
	if o.spill == nil {
		if o.spill, o.spillErr = os.CreateTemp(o.spillDir, "output-*.txt"); o.spillErr != nil {
			o.spill = nil
			return
		}
		if !o.appendSpill(o.head) {
			return
		}
	}
	o.appendSpill(p)
}

// appendSpill writes the part of p within the bound to the file. It returns
// false on an error, which it stores in spillErr.
func (o *Output) appendSpill(p []byte) bool {
	p = p[:max(0, min(int64(len(p)), o.spillMax-o.spilled))]
	n, err := o.spill.Write(p)
	o.spilled += int64(n)
	o.spillErr = err
	return err == nil
}

// setComplete marks the output as complete: no write follows.
func (o *Output) setComplete() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.complete {
		o.complete = true
		close(o.changed)
		o.changed = make(chan struct{})
	}
}

// Close closes the file, which stays on disk. Output in memory stays readable.
func (o *Output) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.spill == nil {
		return nil
	}
	return o.spill.Close()
}
