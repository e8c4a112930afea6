package walk

import "github.com/toolroom-mcp/toolroom/pkg/sandbox"

// givenSize is how many entries a worker visits between two looks for idle
// ones, and the fewest that it gives away.
const givenSize = 32

// part is some of the entries of a directory: all, unless a worker gave the
// later ones to another. The list is then one that nobody changes.
type part struct {
	frame    *frame
	list     []sandbox.DirEntry
	from, to int // in list
}

// give gives half of the entries from the i-th on to a worker that has
// nothing to do: a directory of thousands would keep the others waiting.
func (w *walker) give(p *part, i int) {
	if !w.opts.AnyOrder || w.waiting.Load() == 0 || p.to-i < 2*givenSize {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.given) > 0 { // somebody is about to take that
		return
	}
	middle := i + (p.to-i)/2
	w.given = append(w.given, part{frame: p.frame, list: p.list, from: middle, to: p.to})
	p.to = middle
	p.frame.parts++
	w.wake.Signal()
}

// finish ends a part; after the last one of a directory, its sub-directories
// are entered.
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
