package walk

import "github.com/toolroom-mcp/toolroom/pkg/sandbox"

// givenSize is the number of entries that a worker visits between checks for
// idle workers, and the smallest number that it hands over.
const givenSize = 32

// part is a range of a directory's entries: all of them, unless a worker handed
// the later ones to another. A shared list is immutable.
type part struct {
	frame    *frame
	list     []sandbox.DirEntry
	from, to int // in list
}

// handOver hands half of the entries from i on to an idle worker; otherwise a
// directory of thousands would keep the others waiting.
func (w *walker) handOver(p *part, i int) {
	if !w.opts.AnyOrder || w.waiting.Load() == 0 || p.to-i < 2*givenSize {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.handedOver) > 0 { // a worker is about to take it
		return
	}
	middle := i + (p.to-i)/2
	w.handedOver = append(w.handedOver, part{frame: p.frame, list: p.list, from: middle, to: p.to})
	p.to = middle
	p.frame.parts++
	w.wake.Signal()
}

// finish ends a part. After the last part of a directory, its sub-directories
// are queued.
func (w *worker) finish(f *frame, kids []string) {
	w.mu.Lock()
	f.kids = append(f.kids, kids...)
	f.parts--
	last := f.parts == 0
	w.mu.Unlock()
	switch {
	case !last:
	case len(f.kids) == 0 && f.done:
		w.drop(f)
	default:
		w.push(f)
	}
}
