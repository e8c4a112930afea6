package writeguard

import (
	"os"
	"path/filepath"
	"slices"
)

// mostIncludes bounds the depth of includes in settings files, as git does.
const mostIncludes = 10

// adoptTries bounds the attempts to read a root while commands of other
// servers begin or end.
const adoptTries = 3

// adopt makes the root's current state the baseline, except for changes since
// a command of another server or in an overlapping root began.
func (w *RootGuard) adopt(guard []string) error {
	defer w.inventory.shut()
	before, known, began := w.base, w.fresh, fileClock()
	var d *doubts
	changed := false
	for try := 1; ; try++ {
		d, w.base = w.doubts(known), before
		if try == adoptTries {
			d.running = append(d.running, doubt{since: began})
		}
		if changed = w.adoptOnce(guard, d); !changed || try == adoptTries {
			break
		}
		// A command that ran meanwhile either still runs, or was judged, which
		// restores the files.
		if again := w.doubts(known); d.equal(again) && !w.base.movedSince(w.root, &before) {
			break
		}
		w.inventory.recent = nil
	}
	if d.none() {
		w.inventory.trustIndexes()
	}
	changed = w.base.forgetMade(w.root) || changed
	if changed || w.base.Dirs == nil {
		w.base.note(w.root, !d.none())
		changed = true
	}
	if w.dir == "" || !changed && w.fresh && w.loaded != nil {
		w.fresh = true
		return nil
	}
	w.base.Kept = map[string][2]uint64{}
	for _, path := range w.guarded() {
		if node, ok := holderOf(path); ok {
			w.base.Kept[path] = node
		}
	}
	w.fresh = true
	return w.save()
}

// adoptOnce makes the root's current state the baseline, except for the files
// in doubt. The adopted settings may name further directories and files, so it
// repeats until they do not. It reports whether the baseline changed.
func (w *RootGuard) adoptOnce(guard []string, d *doubts) (changed bool) {
	changed = w.base.adopt(w.root, w.inventory.take(w.base.HookDirs, w.base.Included, w.base.Programs, guard), w.trustTimes, d)
	for range mostIncludes {
		p := w.base.gitPlaces(w.root, w.git)
		if slices.Equal(p.hookDirs, w.base.HookDirs) && slices.Equal(p.included, w.base.Included) && slices.Equal(p.programs, w.base.Programs) {
			break
		}
		w.base.HookDirs, w.base.Included, w.base.Programs, changed = p.hookDirs, p.included, p.programs, true
		w.base.adopt(w.root, w.inventory.take(p.hookDirs, p.included, p.programs, guard), w.trustTimes, d)
	}
	return changed
}

// save writes the baseline for other servers, if there is a state directory.
func (w *RootGuard) save() error {
	if w.dir == "" {
		return nil
	}
	err := w.base.save(w.file())
	if err == nil {
		w.loaded, err = os.Stat(w.file())
	}
	return err
}

// refresh reads the baseline if another server has written it.
func (w *RootGuard) refresh() {
	if w.dir == "" {
		return
	}
	info, err := os.Stat(w.file())
	if err != nil || w.loaded != nil && sameVersion(info, w.loaded) {
		return
	}
	if w.base.load(w.file()) == nil {
		w.loaded, w.fresh = info, true
	}
}

func (w *RootGuard) file() string { return filepath.Join(w.dir, "baseline") }
