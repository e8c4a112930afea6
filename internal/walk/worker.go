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
		case j.entries != nil:
			w.visitRange(*j.entries)
		case j.subdir != "":
			node, err := w.openChild(j.frame.node, j.subdir)
			w.release(j.frame)
			if err != nil {
				w.countUnreadable(j.subdir, err)
				continue
			}
			w.visitNextPiece(&frame{node: node})
		default:
			f := j.frame
			w.mu.Lock()
			f.users--
			w.mu.Unlock()
			w.visitNextPiece(f)
		}
	}
}

// visitNextPiece reads and visits the next piece of a directory, and pushes its
// sub-directories.
func (w *worker) visitNextPiece(f *frame) {
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
	if w.isHalted() {
		w.interrupt(f)
		return
	}
	f.subdirs, f.done = nil, done
	w.visitRange(entryRange{frame: f, list: list, to: len(list)})
}

// visitRange visits a range of a directory's entries.
func (w *worker) visitRange(p entryRange) {
	f, n := p.frame, p.frame.node
	var subdirs []string
	e := &w.entry // shared by all visits: a local one would escape to the heap each time
	for i := p.from; i < p.to; i++ {
		if n.fromCache && i%minHandOver == 0 {
			w.handOver(&p, i)
		}
		n.fillEntry(e, p.list, i)
		if isGitEntry(e.Name) {
			continue
		}
		if w.isHalted() {
			w.interrupt(f)
			return
		}
		enter, err := w.visitEntry(e)
		if enter && !(w.opts.Prune != nil && w.opts.Prune(e.Path)) {
			subdirs = append(subdirs, e.Path)
		}
		if err != nil {
			w.stop(err, false)
			if errors.Is(err, fs.SkipAll) && i == len(p.list)-1 && f.done && len(subdirs) == 0 && !w.opts.AnyOrder {
				w.closeWhenUnused(f) // the directory's last entry was visited
				return
			}
			w.interrupt(f)
			return
		}
	}
	w.finishRange(f, subdirs)
}

// visitEntry visits an entry unless it is hidden or ignored. enter reports
// whether it is a directory to be entered.
func (w *worker) visitEntry(e *Entry) (enter bool, err error) {
	if e.Hidden && !w.opts.Hidden {
		return false, nil
	}
	if e.Ignored {
		w.countIgnored(e)
		if !w.opts.ShowIgnored {
			return false, nil
		}
	}
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
		w.tooDeep++
	}
	return false
}

// interrupt ends a range of a directory in which entries remain, because the
// walk has stopped.
func (w *worker) interrupt(f *frame) {
	w.mu.Lock()
	w.interrupted = true
	f.openRanges--
	last := f.openRanges == 0
	w.mu.Unlock()
	if last {
		w.closeWhenUnused(f)
	}
}
