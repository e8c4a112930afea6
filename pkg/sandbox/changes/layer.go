package changes

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/filelock"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/nofollow"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A Layer receives the changes of one command. The caller must call End after
// the command, even if the command failed.
type Layer struct {
	set    *Set
	name   string
	mounts []Mount
	lock   *os.File // held while the command runs
}

// Begin adds a layer for a command, whose text Set.Commands returns later. It
// returns LIMIT_REACHED if too many commands run over the set at the same time,
// and NOT_FOUND if the set was applied or discarded.
func (s *Set) Begin(command string) (*Layer, error) {
	l := &Layer{set: s}
	err := s.withFinishedLayers(func(r *setFile) error {
		if err := s.mergeLayers(r); err != nil {
			return err
		}
		if len(r.Layers) >= maxLayers {
			return toolerr.New(toolerr.LimitReached, "%d commands run over the changes %s: wait for one to end", len(r.Layers), s.id)
		}
		r.Next++
		l.name = strconv.Itoa(r.Next)
		var err error
		if l.mounts, err = s.makeLayer(r, l.name); err != nil {
			return err
		}
		if err = os.MkdirAll(filepath.Join(s.dir, l.name), 0o700); err != nil {
			return err
		}
		if l.lock, err = os.OpenFile(filepath.Join(s.dir, l.name, "lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
			return err
		}
		if _, err = filelock.TryLock(l.lock); err != nil {
			return err
		}
		// Use the time of the lock file: the clock for file times differs from
		// time.Now.
		info, err := l.lock.Stat()
		if err != nil {
			return err
		}
		_, began := inodeAndChangeTime(info)
		r.Commands = append(r.Commands, command)
		made := layerRecord{Name: l.name, Began: began, Needs: len(r.Layers)}
		for _, m := range l.mounts {
			info, err := os.Lstat(m.Upper)
			if err != nil {
				return err
			}
			made.RootModes = append(made.RootModes, info.Mode())
		}
		r.Layers = append(r.Layers, made)
		return s.saveFile(r)
	})
	if err != nil {
		if l.lock != nil {
			l.unlock()
		}
		return nil, err
	}
	return l, nil
}

// makeLayer creates the directories of the layer called name, and returns its
// mounts, one for each root. The upper directories get the mode and time of the
// directories below them.
func (s *Set) makeLayer(r *setFile, name string) (mounts []Mount, err error) {
	for i, root := range r.Roots {
		m := Mount{Root: root, Upper: s.upperDir(name, i), Work: filepath.Join(s.dir, name, strconv.Itoa(i), "work")}
		below := root
		for _, l := range slices.Backward(r.Layers) {
			if l.Done {
				m.Lower = append(m.Lower, s.upperDir(l.Name, i))
			}
		}
		if len(m.Lower) > 0 {
			below = m.Lower[0]
		}
		info, err := os.Stat(below)
		if err == nil {
			err = errors.Join(os.MkdirAll(m.Upper, 0o700), os.MkdirAll(m.Work, 0o700))
		}
		if err == nil {
			err = m.shareLinkedFiles(r.linkedPaths(i))
		}
		if err == nil {
			err = errors.Join(os.Chmod(m.Upper, info.Mode().Perm()), os.Chtimes(m.Upper, time.Time{}, info.ModTime()))
		}
		if err != nil {
			return nil, err
		}
		mounts = append(mounts, m)
	}
	return mounts, nil
}

// upperDir returns the path of a layer's upper directory for a root.
func (s *Set) upperDir(layer string, root int) string {
	return filepath.Join(s.dir, layer, strconv.Itoa(root), "upper")
}

// Mounts returns the overlayfs mounts for the command, one for each root.
func (l *Layer) Mounts() []Mount { return l.mounts }

// End finishes the layer. The command must have ended, and the layer must not
// be mounted any more. It returns the entries of all changes of the set, as
// Set.Changes does; entries of earlier commands may be as they were when those
// commands ended.
func (l *Layer) End() (entries []Entry, err error) {
	defer l.unlock()
	err = l.set.withFinishedLayers(func(r *setFile) error {
		before := r.Version
		for i := range r.Layers {
			if r.Layers[i].Name == l.name {
				if err := l.set.finishLayer(r, &r.Layers[i]); err != nil {
					return err
				}
			}
		}
		now, err := l.set.entriesAfter(r, l.name, before)
		if err != nil {
			return errors.Join(err, l.set.mergeLayers(r))
		}
		entries = now.allEntries()
		return l.set.mergeLayers(r)
	})
	return entries, err
}

// unlock releases and closes the lock file, even if a process that another
// goroutine is starting has inherited its descriptor.
func (l *Layer) unlock() {
	filelock.Unlock(l.lock)
	l.lock.Close() //nolint:errcheck // nothing was written
}

// finishLayer records the states that the roots' entries had before the layer's
// changes, and marks the layer as done.
func (s *Set) finishLayer(r *setFile, l *layerRecord) error {
	out, err := newBaseWriter(s.basesFile(), os.O_APPEND)
	if err != nil {
		return err
	}
	out.buf.WriteByte('\n') //nolint:errcheck // ends an incomplete line; close returns the error
	l.Linked = make([][]string, len(r.Roots))
	for i, root := range r.Roots {
		tree, openErr := nofollow.Open(root)
		if openErr != nil {
			continue // the root is gone; Apply reports that
		}
		u, upper := rootDiff{root: i, tree: tree, pathsOnly: true}, s.upperDir(l.Name, i)
		if err = u.compareDir(".", []string{upper}, true); err == nil {
			b := baseRecorder{out: out, root: i, tree: tree, older: s.upperDirs(r, i), began: l.Began}
			if len(b.older) == 0 {
				b.add(".", true) // the changes do not contain it
			}
			b.record(u.sortedChanges())
			l.Linked[i] = linkedPaths(u.changes)
			err = s.recordRootMode(r, l, i, upper)
		}
		tree.Close() //nolint:errcheck // only read
		if err != nil {
			break
		}
	}
	if err = errors.Join(err, out.close()); err != nil {
		return err
	}
	l.Done = true
	r.Version++
	return s.saveFile(r)
}

// recordRootMode records the mode that a root had before the first layer that
// changed it.
func (s *Set) recordRootMode(r *setFile, l *layerRecord, root int, upper string) error {
	info, err := os.Lstat(upper)
	if err != nil || root >= len(l.RootModes) || info.Mode() == l.RootModes[root] {
		return err
	}
	if r.RootModes == nil {
		r.RootModes = map[int]fs.FileMode{}
	}
	if _, known := r.RootModes[root]; !known {
		r.RootModes[root] = l.RootModes[root]
	}
	return nil
}

// finishAbandonedLayers finishes the layers whose process was killed before
// Layer.End.
func (s *Set) finishAbandonedLayers(r *setFile) error {
	for i := range r.Layers {
		if l := &r.Layers[i]; !l.Done && !s.isRunning(*l) {
			if err := s.finishLayer(r, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// isRunning reports whether a command is still running over a layer.
func (s *Set) isRunning(l layerRecord) bool {
	if l.Done {
		return false
	}
	f, err := os.OpenFile(filepath.Join(s.dir, l.Name, "lock"), os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // opened only for its lock
	free, err := filelock.TryLock(f)
	if free {
		filelock.Unlock(f)
	}
	return err == nil && !free
}

// upperDirs returns the upper directories of the finished layers for a root,
// the newest first.
func (s *Set) upperDirs(r *setFile, root int) (dirs []string) {
	for _, l := range slices.Backward(r.Layers) {
		if l.Done {
			dirs = append(dirs, s.upperDir(l.Name, root))
		}
	}
	return dirs
}

// mergeLayers merges each finished layer into the one before it, unless that is
// not finished or a running command uses it.
func (s *Set) mergeLayers(r *setFile) error {
	used := 0
	for i, l := range r.Layers {
		if !l.Done {
			used = i
		}
	}
	for i := len(r.Layers) - 1; i > used; i-- {
		newer, older := r.Layers[i], r.Layers[i-1]
		if !newer.Done || !older.Done {
			continue
		}
		for root := range r.Roots {
			var below []string
			for _, l := range slices.Backward(r.Layers[:i-1]) {
				below = append(below, s.upperDir(l.Name, root))
			}
			below = append(below, r.Roots[root])
			if err := mergeInto(s.upperDir(older.Name, root), s.upperDir(newer.Name, root), below); err != nil {
				return err
			}
		}
		r.Layers[i-1].Linked = mergeLinked(older.Linked, newer.Linked)
		r.Layers = slices.Delete(r.Layers, i, i+1)
		if err := s.saveFile(r); err != nil {
			return err
		}
		removeTree(filepath.Join(s.dir, newer.Name))
	}
	return nil
}
