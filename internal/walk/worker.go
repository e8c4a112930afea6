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

// run does jobs until the walk ends.
func (w *worker) run() {
	w.mu.Lock()
	w.busy++
	w.mu.Unlock()
	for {
		j, ok := w.takeJob()
		if !ok {
			return
		}
		switch {
		case j.seed != nil:
			w.resume(*j.seed)
		case j.entries != nil:
			w.visitRange(*j.entries, position{path: j.entries.frame.node.path})
		case j.subdir != "":
			node, err := w.openChild(j.frame.node, j.subdir)
			w.release(j.frame)
			if err != nil {
				w.countUnreadable(j.subdir, err)
				continue
			}
			w.visitNextPiece(&frame{node: node}, position{path: j.subdir})
		default:
			f := j.frame
			w.mu.Lock()
			f.users--
			w.mu.Unlock()
			w.visitNextPiece(f, position{path: f.node.path, entriesDone: f.entriesBefore + f.entriesInPiece})
		}
	}
}

// visitNextPiece reads and visits the next piece of a directory, from a
// position on, and pushes its sub-directories.
func (w *worker) visitNextPiece(f *frame, from position) {
	n := f.node
	f.openRanges = 1
	n.reader, n.entries = &w.reader, w.buffer
	list, done, err := n.nextPiece()
	w.buffer = n.entries
	n.reader, n.entries = nil, nil
	if err != nil {
		w.countUnreadable(n.Path(), err)
		w.closeWhenUnused(f)
		return
	}
	if w.halted() {
		w.recordRemaining(f, from)
		return
	}
	f.subdirs, f.entriesBefore, f.entriesInPiece, f.done = nil, from.entriesDone, len(list), done
	w.visitRange(entryRange{frame: f, list: list, to: len(list)}, from)
}

// visitRange visits a range of a directory's entries, from a position on.
func (w *worker) visitRange(p entryRange, from position) {
	f, n := p.frame, p.frame.node
	var kids []string
	e := &w.entry // shared by all visits: a local one would escape to the heap each time
	for i := p.from; i < p.to; i++ {
		if n.fromCache && i%handOverSize == 0 {
			w.handOver(&p, i)
		}
		n.fillEntry(e, p.list, i)
		if isGitEntry(e.Name) {
			continue
		}
		if !from.visited(e.Name) && w.halted() {
			from.visitFrom = e.Name
			w.recordRemaining(f, from)
			return
		}
		enter, err := w.visitEntry(e, from.visited(e.Name))
		if enter && e.Name >= from.enterFrom && !(w.opts.Prune != nil && w.opts.Prune(e.Path)) {
			kids = append(kids, e.Path)
		}
		if err != nil {
			w.stop(err, false)
			if errors.Is(err, fs.SkipAll) {
				if i == len(p.list)-1 && f.done && len(kids) == 0 && !w.opts.AnyOrder {
					w.closeWhenUnused(f)
					return
				}
				from.visitFrom = e.Name + "\x00" // the next possible name
			} else {
				from.visitFrom = e.Name
			}
			w.recordRemaining(f, from)
			return
		}
	}
	w.finishRange(f, kids)
}

// visitEntry visits an entry unless it is hidden, ignored, or was visited
// before (before). enter reports whether it is a directory to be entered.
func (w *worker) visitEntry(e *Entry, before bool) (enter bool, err error) {
	if e.Hidden && !w.opts.Hidden {
		return false, nil
	}
	if e.Ignored {
		if !before {
			w.countIgnored(e)
		}
		if !w.opts.ShowIgnored {
			return false, nil
		}
	}
	if !before {
		if err := w.visit(w.id, e); err != nil {
			if err == fs.SkipDir && e.IsDir() {
				w.countVisited(e)
				return false, nil
			}
			if err == fs.SkipAll {
				w.countVisited(e)
			}
			return w.shouldEnter(e), err
		}
		w.countVisited(e)
	}
	return w.shouldEnter(e), nil
}

// shouldEnter reports whether an entry is a directory that is not ignored and
// above the maximum depth. It counts directories that are too deep.
func (w *worker) shouldEnter(e *Entry) bool {
	if !e.IsDir() || e.Ignored {
		return false
	}
	if e.Depth < w.opts.MaxDepth {
		return true
	}
	if e.Depth >= MaxDepth {
		w.countTooDeep(e.Path)
	}
	return false
}

// recordRemaining records the remaining work in a directory, from a position
// on, when the walk has stopped.
func (w *worker) recordRemaining(f *frame, from position) {
	w.mu.Lock()
	w.interrupted = append(w.interrupted, from)
	f.openRanges--
	last := f.openRanges == 0
	w.mu.Unlock()
	if last {
		w.closeWhenUnused(f)
	}
}
