package writeguard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// RootGuard compares a root with its baseline. A runner has one for each root.
// Servers with the same state directory share the baseline through these
// files:
//
//	baseline  the root as the user left it
//	lock      held while the baseline is compared or replaced
//	use       locked, shared, while a command runs; contains the highest
//	          of the marks below since no command ran
//	aside/    copies of reverted files
//	root      the root's path
//
// Changes while no command runs are the user's, and become the baseline. If
// the mark shows that a command ran and nobody holds the lock of use, a
// command made the changes and its server was killed: they are judged first.
//
// Commands of other servers may also run in this root: see neighbour for
// overlapping roots, and presence for other state directories.
type RootGuard struct {
	root, stateDir string // dir "": shared only by this runner's commands
	handle         *os.Root
	trustTimes     bool

	mu                sync.Mutex
	inventory         inventory
	baseline          baseline
	git               UserGitSettings
	loadedInfo        os.FileInfo // the file that base was read from or written to
	hasBaseline       bool        // base is the root's baseline; false: it is empty because there is none
	useFile, lockFile *os.File
	runningCount      int
	lastChecked       map[supervise.Level]time.Time
	copies            *revertedCopies
	mark              byte

	notShared                     error // why the baseline is not shared with other servers
	isHidden                      bool  // see Runner
	presence                      *presence
	overlapping                   []*overlappingRoot
	stateDirChanged, stateDirRead time.Time // state directory's time of change, and time when near was read
}

// beginCommand registers the start of a command. It returns the files that it
// reverted because the command of a killed server had changed them.
func (w *RootGuard) beginCommand(c *Command, dirChanged func(dir string) (changed int64, closed, ok bool)) (taken []string, err error) {
	taken, err = w.lockWithOverlapping(c)
	if err != nil {
		return taken, err
	}
	defer func() { err = errors.Join(err, w.notShared) }()
	defer w.unlock()
	w.git = c.Git
	defer w.unlockOverlapping()
	w.reloadBaseline()
	mark := w.readMark()
	if w.runningCount == 0 && !w.isHidden {
		w.presence.publish()
	}
	alone := w.tryUseExclusive()
	defer w.useShared()
	if !alone && w.hasBaseline {
		if markOf(c.Level) < mark { // '1' < '2'
			err = w.writeMark(markOf(c.Level))
		}
		return taken, err
	}
	if mark == markIdle {
		w.inventory.dirChanged = dirChanged
		defer func() { w.inventory.dirChanged = nil }()
	}
	if alone && w.hasBaseline && mark != markIdle {
		rc := w.checkInterrupted(c, mark)
		taken = append(taken, rc.reverted...)
		if rc.failed {
			return taken, w.writeMark(min(mark, markOf(c.Level)))
		}
	}
	if err = w.updateBaseline(c.Protected); err == nil && (alone || markOf(c.Level) < mark) {
		err = w.writeMark(markOf(c.Level))
	}
	if err == nil && w.restoreRebaseSteps() {
		err = w.saveBaseline()
	}
	return taken, err
}

// addHardLinked adds the paths of files that have several hard links.
func (w *RootGuard) addHardLinked(paths map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, it := range w.baseline.Items {
		if it.Links > 1 {
			paths[filepath.Join(w.root, name)] = true
		}
	}
}

// check compares the root with the baseline and reverts forbidden changes.
// ended is false while the command runs.
func (w *RootGuard) check(c *Command, ended bool, skip func(string) bool) *rootCheck {
	defer w.inventory.restoreModes()
	rc := &rootCheck{
		root: w.root, handle: w.handle, baseline: &w.baseline, found: w.inventory.scan(w.baseline.HookDirs, w.baseline.Included, w.baseline.Programs, c.Protected), trustTimes: w.trustTimes,
		skip: skip, inOtherRoot: c.InAnyRoot, copies: w.copies, harmlessIndexes: w.inventory.harmlessIndexes, ended: ended,
	}
	if rc.moveUpDeepDirs(); len(rc.reverted) > 0 {
		rc.found = w.inventory.scan(w.baseline.HookDirs, w.baseline.Included, w.baseline.Programs, c.Protected)
	}
	rc.checkFiles()
	return rc
}

// checkWhileRunning judges while commands run. It does nothing if another command of the
// level did so within this time.
func (w *RootGuard) checkWhileRunning(c *Command, minInterval time.Duration) (taken []string) {
	if w.lock() != nil {
		return nil
	}
	defer w.unlock()
	if last, ok := w.lastChecked[c.Level]; ok && time.Since(last) < minInterval {
		return nil
	}
	w.reloadBaseline()
	taken = w.check(c, false, c.skips).reverted
	w.lastChecked[c.Level] = time.Now()
	return taken
}

// endCommand judges the changes of an ended command, and registers its end.
func (w *RootGuard) endCommand(c *Command) (taken []string, err error) {
	if err := w.lock(); err != nil {
		return nil, err
	}
	defer w.unlock()
	w.reloadBaseline()
	rc := w.check(c, true, c.skips)
	if made := w.hasBaseline && !rc.failed && w.baseline.recordMadeRepositories(w.root, rc.found); made || rc.stepsRemoved {
		err = w.saveBaseline()
	}
	w.runningCount--
	if w.runningCount == 0 {
		if w.tryUseExclusive() && !rc.failed { // else the next command starts with this baseline
			err = errors.Join(err, w.writeMark(markIdle))
		}
		if w.useFile != nil {
			tryFlock(w.useFile, lockRelease)
		}
		w.presence.withdraw()
	}
	if rc.failed {
		err = errors.Join(err, errors.New("some of it could not be taken back"))
	}
	if !rc.found.complete {
		err = errors.Join(err, fmt.Errorf("it has more than %d entries", maxScanEntries))
	}
	return rc.reverted, err
}

// watchesAtOrBelow reports whether the baseline contains a path or a file below it.
func (w *RootGuard) watchesAtOrBelow(path string) bool {
	name, err := filepath.Rel(w.root, path)
	if err != nil || !filepath.IsLocal(name) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.baseline.Repos[filepath.Dir(name)] && filepath.Base(name) == "hooks" {
		return true
	}
	for item := range w.baseline.Items {
		if isAtOrBelow(name, item) {
			return true
		}
	}
	return false
}
