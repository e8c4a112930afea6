package walk

import "github.com/toolroom-mcp/toolroom/pkg/sandbox"

// minHandOver is the number of entries that a worker visits between checks for
// idle workers, and the smallest number that it hands over.
const minHandOver = 32

// entryRange is a range of a directory's entries: list[from:to]. These are all
// entries of a piece, unless a worker handed the later ones to another. A
// shared list is immutable.
type entryRange struct {
	frame    *frame
	list     []sandbox.DirEntry
	from, to int // in list
}

// handOver gives the second half of the entries of p, from index i on, to an
// idle worker, if there is one; otherwise a directory of thousands of entries
// would keep the others waiting.
func (w *walker) handOver(p *entryRange, i int) {
	if !w.opts.AnyOrder || w.idle.Load() == 0 || p.to-i < 2*minHandOver {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.handedOver) > 0 { // a worker is about to take it
		return
	}
	middle := i + (p.to-i)/2
	w.handedOver = append(w.handedOver, entryRange{frame: p.frame, list: p.list, from: middle, to: p.to})
	p.to = middle
	p.frame.openRanges++
	w.wake.Signal()
}

// finishRange ends a range, after which the sub-directories subdirs will be
// entered. After the last range of a piece, the directory is pushed, or closed
// if nothing is left in it.
func (w *worker) finishRange(f *frame, subdirs []string) {
	w.mu.Lock()
	f.subdirs = append(f.subdirs, subdirs...)
	f.openRanges--
	last := f.openRanges == 0
	w.mu.Unlock()
	switch {
	case !last:
	case len(f.subdirs) == 0 && f.done:
		w.closeWhenUnused(f)
	default:
		w.pushFrame(f)
	}
}
