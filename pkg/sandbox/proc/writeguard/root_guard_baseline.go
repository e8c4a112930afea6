package writeguard

import (
	"os"
	"path/filepath"
	"slices"
)

// maxIncludeDepth bounds the depth of includes in settings files, as git does.
const maxIncludeDepth = 10

// maxUpdateTries bounds the attempts to read a root while commands of other
// servers begin or end.
const maxUpdateTries = 3

// updateBaseline makes the root's current state the baseline, except for
// changes since a command of another server or in an overlapping root began. It
// writes the baseline for other servers. protected is as in CommandRules.
func (w *RootGuard) updateBaseline(protected []string) error {
	defer w.inventory.restoreModes()
	before, hadBaseline, began := w.baseline, w.hasBaseline, fileTimeNow()
	w.previousItems = before.Items
	var d *otherCommands
	changed := false
	for try := 1; ; try++ {
		d, w.baseline = w.otherCommands(hadBaseline), before
		if try == maxUpdateTries {
			d.running = append(d.running, runningCommand{since: began})
		}
		if changed = w.tryUpdateBaseline(protected, d); !changed || try == maxUpdateTries {
			break
		}
		// A command that ran meanwhile either still runs, or was checked, which
		// restores the files.
		if again := w.otherCommands(hadBaseline); d.equal(again) && !w.baseline.haveNewItemsChanged(w.root, &before) {
			break
		}
		w.inventory.dirState = nil
	}
	if d.isEmpty() {
		w.inventory.markIndexesHarmless()
	}
	changed = w.baseline.forgetMadeRepositories(w.root) || changed
	if changed || w.baseline.Dirs == nil {
		w.baseline.recordDirs(w.root, !d.isEmpty())
		changed = true
	}
	if w.stateDir == "" || !changed && w.hasBaseline && w.loadedInfo != nil {
		w.hasBaseline = true
		return nil
	}
	w.baseline.Kept = map[string][2]uint64{}
	for _, path := range w.readOnlyPaths() {
		if node, ok := mountNode(path); ok {
			w.baseline.Kept[path] = node
		}
	}
	w.hasBaseline = true
	return w.saveBaseline()
}

// tryUpdateBaseline is one attempt of updateBaseline: it makes the root's current
// state the baseline, except for the files that the commands of d may have
// changed. The new settings of git may name further directories and files, so it
// scans again until they do not, at most maxIncludeDepth times. It reports whether
// the baseline changed.
func (w *RootGuard) tryUpdateBaseline(protected []string, d *otherCommands) (changed bool) {
	changed = w.baseline.update(w.root, w.inventory.scan(w.baseline.HookDirs, w.baseline.Included, w.baseline.Programs, protected), w.trustTimes, d)
	for range maxIncludeDepth {
		p := w.baseline.findGitPaths(w.root, w.git, w.settings)
		p.Programs = w.baseline.withSourcedFiles(w.root, w.git, p.Programs)
		w.named = p
		if slices.Equal(p.HookDirs, w.baseline.HookDirs) && slices.Equal(p.SettingsFiles, w.baseline.Included) && slices.Equal(p.Programs, w.baseline.Programs) {
			break
		}
		w.baseline.HookDirs, w.baseline.Included, w.baseline.Programs, changed = p.HookDirs, p.SettingsFiles, p.Programs, true
		w.baseline.update(w.root, w.inventory.scan(p.HookDirs, p.SettingsFiles, p.Programs, protected), w.trustTimes, d)
	}
	return changed
}

// saveBaseline writes the baseline to the state directory, where other servers
// read it. It does nothing without a state directory.
func (w *RootGuard) saveBaseline() error {
	if w.stateDir == "" {
		return nil
	}
	err := w.baseline.save(w.baselinePath())
	if err == nil {
		w.loadedInfo, err = os.Stat(w.baselinePath())
	}
	return err
}

// reloadBaseline reads the baseline if another server has written it since. If
// it cannot be read, the one in memory is kept.
func (w *RootGuard) reloadBaseline() {
	if w.stateDir == "" {
		return
	}
	info, err := os.Stat(w.baselinePath())
	if err != nil || w.loadedInfo != nil && isSameVersion(info, w.loadedInfo) {
		return
	}
	if w.baseline.load(w.baselinePath()) == nil {
		w.loadedInfo, w.hasBaseline = info, true
	}
}

// baselinePath returns the path of the stored baseline in the state directory.
func (w *RootGuard) baselinePath() string { return filepath.Join(w.stateDir, "baseline") }
