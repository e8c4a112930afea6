package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// What an Output keeps in memory, whatever is written: its beginning and, past
// that, its end. Both hold what Excerpt shows at four bytes a character.
const (
	keptHead = 128 << 10
	keptTail = 128 << 10
)

// DefaultSpillBytes bounds the file that holds the whole output.
const DefaultSpillBytes = 256 << 20

// Output is what a command writes, standard output and standard error in the
// order of the writes. It grows while the command runs; its methods may be
// used at any time from several goroutines.
//
// The first 128 KiB are in memory only. Longer output is in a file of its own
// (mode 0600) up to a bound; past that only the last 128 KiB are kept, and
// everything is counted.
type Output struct {
	mu      sync.Mutex
	head    []byte // the first bytes
	ring    []byte // the last bytes, once head is full; the oldest is at next
	next    int
	total   int64
	breaks  int64 // line ends
	last    byte
	changed chan struct{} // closed at the next change
	closed  bool

	spillDir string
	spillMax int64
	spill    *os.File
	spilled  int64
	spillErr error
}

func newOutput(spillDir string, spillMax int64) *Output {
	if spillMax <= 0 {
		spillMax = DefaultSpillBytes
	}
	return &Output{spillDir: spillDir, spillMax: spillMax, changed: make(chan struct{})}
}

// Size is how many bytes were written so far.
func (o *Output) Size() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.total
}

// Lines is how many lines were written so far; one without an end counts.
func (o *Output) Lines() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lines()
}

func (o *Output) lines() int64 {
	if o.total > 0 && o.last != '\n' {
		return o.breaks + 1
	}
	return o.breaks
}

// Spill names the file that holds the output from its beginning, and how many
// bytes of it. The name is empty while everything is in memory, and where no
// file could be made; then err says why. The file is the caller's to remove.
func (o *Output) Spill() (name string, size int64, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.spill == nil {
		return "", 0, o.spillErr
	}
	return o.spill.Name(), o.spilled, o.spillErr
}

// Changed returns a channel that is closed at the next change: more output, or
// its end.
func (o *Output) Changed() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.changed
}

// Read copies output from the byte offset on. Bytes that were not kept, which
// are those between the end of the file and the tail, are skipped and counted:
// p[:n] begins at offset+skipped. At the end of what there is, n is 0.
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
	tail := o.tail()
	start := o.total - int64(len(tail))
	if offset < start {
		skipped = start - offset
	}
	if offset += skipped; offset >= o.total {
		return 0, skipped, nil
	}
	return copy(p, tail[offset-start:]), skipped, nil
}

// tail returns the bytes of the ring in their order.
func (o *Output) tail() []byte {
	if len(o.ring) < keptTail {
		return o.ring
	}
	return append(append(make([]byte, 0, keptTail), o.ring[o.next:]...), o.ring[:o.next]...)
}

// write takes p. It never fails: output that cannot be kept is counted.
func (o *Output) write(p []byte) {
	if len(p) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.total += int64(len(p))
	o.breaks += int64(bytes.Count(p, []byte{'\n'}))
	o.last = p[len(p)-1]
	fits := min(len(p), keptHead-len(o.head))
	o.head = append(o.head, p[:fits]...)
	if rest := p[fits:]; len(rest) > 0 {
		o.keepTail(rest)
		o.writeSpill(rest)
	}
	close(o.changed)
	o.changed = make(chan struct{})
}

func (o *Output) keepTail(p []byte) {
	if len(p) > keptTail {
		p = p[len(p)-keptTail:]
	}
	if grow := min(len(p), keptTail-len(o.ring)); grow > 0 {
		o.ring = append(o.ring, p[:grow]...)
		p = p[grow:]
	}
	for len(p) > 0 {
		n := copy(o.ring[o.next:], p)
		o.next = (o.next + n) % keptTail
		p = p[n:]
	}
}

// writeSpill appends to the file, which is made by the first bytes that head
// does not hold.
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

func (o *Output) appendSpill(p []byte) bool {
	p = p[:max(0, min(int64(len(p)), o.spillMax-o.spilled))]
	n, err := o.spill.Write(p)
	o.spilled += int64(n)
	o.spillErr = err
	return err == nil
}

// end says that no more will come.
func (o *Output) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.closed = true
		close(o.changed)
		o.changed = make(chan struct{})
	}
}

// Close frees the descriptor of the file. What is in memory stays readable.
func (o *Output) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.spill == nil {
		return nil
	}
	return o.spill.Close()
}
