package walk

import (
	"errors"
	"io/fs"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// worker is one goroutine of a walk, with its buffers and counts.
type worker struct {
	*walker
	id     int
	reader sandbox.DirReader
	buffer []sandbox.DirEntry
	entry  Entry
	tally
}

func (w *worker) run() {
	w.mu.Lock()
	w.busy++
	w.mu.Unlock()
	for {
		j, ok := w.take()
		if !ok {
			return
		}
		switch {
		case j.seed != nil:
			w.resume(*j.seed)
		case j.part != nil:
			w.part(*j.part, position{path: j.part.frame.node.path})
		case j.kid != "":
			node, err := w.enter(j.frame.node, j.kid)
			w.release(j.frame)
			if err != nil {
				w.unreadable(j.kid, err)
				continue
			}
			w.piece(&frame{node: node}, position{path: j.kid})
		default:
			f := j.frame
			w.mu.Lock()
			f.users--
			w.mu.Unlock()
			w.piece(f, position{path: f.node.path, raw: f.raw + f.size})
		}
	}
}

// piece reads and visits the next piece of a directory, from a position on, and
// pushes its sub-directories.
func (w *worker) piece(f *frame, from position) {
	n := f.node
	f.parts = 1
	n.reader, n.entries = &w.reader, w.buffer
	list, done, err := n.next()
	w.buffer = n.entries
	n.reader, n.entries = nil, nil
	if err != nil {
		w.unreadable(n.Path(), err)
		w.drop(f)
		return
	}
	if w.halted() {
		w.suspend(f, from)
		return
	}
	f.kids, f.raw, f.size, f.done = nil, from.raw, len(list), done
	w.part(part{frame: f, list: list, to: len(list)}, from)
}

// part visits a range of a directory's entries, from a position on.
func (w *worker) part(p part, from position) {
	f, n := p.frame, p.frame.node
	var kids []string
	e := &w.entry // shared by all visits: a local one would escape to the heap each time
	for i := p.from; i < p.to; i++ {
		if n.known && i%givenSize == 0 {
			w.handOver(&p, i)
		}
		n.entry(e, p.list, i)
		if isGit(e.Name) {
			continue
		}
		if !from.visited(e.Name) && w.halted() {
			from.visit = e.Name
			w.suspend(f, from)
			return
		}
		enter, err := w.visitEntry(e, from.visited(e.Name))
		if enter && e.Name >= from.enter && !(w.opts.Prune != nil && w.opts.Prune(e.Path)) {
			kids = append(kids, e.Path)
		}
		if err != nil {
			w.stop(err, false)
			if errors.Is(err, fs.SkipAll) {
				if i == len(p.list)-1 && f.done && len(kids) == 0 && !w.opts.AnyOrder {
					w.drop(f)
					return
				}
				from.visit = e.Name + "\x00" // the next possible name
			} else {
				from.visit = e.Name
			}
			w.suspend(f, from)
			return
		}
	}
	w.finish(f, kids)
}

// visitEntry visits an entry, unless it is hidden, ignored or was visited before, and
// reports whether to enter it as a directory.
func (w *worker) visitEntry(e *Entry, before bool) (enter bool, err error) {
	if e.Hidden && !w.opts.Hidden {
		return false, nil
	}
	if e.Ignored {
		if !before {
			w.ignore(e)
		}
		if !w.opts.ShowIgnored {
			return false, nil
		}
	}
	if !before {
		if err := w.visit(w.id, e); err != nil {
			if err == fs.SkipDir && e.IsDir() {
				w.count(e)
				return false, nil
			}
			if err == fs.SkipAll {
				w.count(e)
			}
			return w.enters(e), err
		}
		w.count(e)
	}
	return w.enters(e), nil
}

// enters reports whether to enter an entry: a directory, not ignored, above the
// maximum depth.
func (w *worker) enters(e *Entry) bool {
	if !e.IsDir() || e.Ignored {
		return false
	}
	if e.Depth < w.opts.MaxDepth {
		return true
	}
	if e.Depth >= MaxDepth {
		w.deep(e.Path)
	}
	return false
}

// suspend records a stopped worker's remaining work in a directory.
func (w *worker) suspend(f *frame, from position) {
	w.mu.Lock()
	w.rest = append(w.rest, from)
	f.parts--
	last := f.parts == 0
	w.mu.Unlock()
	if last {
		w.drop(f)
	}
}
