package writeguard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// RootGuard compares a root with its baseline, and reverts what commands must
// not change. Its methods are safe for concurrent use.
//
// Servers with the same state directory share the baseline through the files
// of one directory in it:
//
//	baseline  the root as the user left it
//	lock      locked while the baseline is compared or replaced
//	use       locked, shared, while a command runs; contains the highest
//	          of the marks (markL2, …) since no command ran
//	aside/    copies of reverted files
//	root      the root's path
//
// Changes while no command runs are the user's, and become the baseline. If
// the mark shows that a command ran and nobody holds the lock of use, a
// command made the changes and its server was killed: they are checked first.
//
// Commands of other servers may also run in this root: see overlappingRoot for
// overlapping roots, and commandLocks for other state directories.
type RootGuard struct {
	root       string
	stateDir   string // this root's directory of state; "": only this process knows the baseline
	handle     *os.Root
	trustTimes bool // a file with the same metadata has the same content

	mu                sync.Mutex
	inventory         inventory
	rootMode          fs.FileMode // permissions of the root before the commands that run; 0: not known
	baseline          baseline
	hasBaseline       bool // baseline is valid; false: it is empty because none was recorded
	git               UserGitSettings
	userSettings      map[string]cachedRuns // by the user's files with settings
	settings          *settingsCache        // of repositories outside the root
	named             *gitPaths             // as last found, between Begin and finishBegin
	previousItems     map[string]fileState  // of the baseline before its last update
	loadedInfo        os.FileInfo           // of the file that baseline was read from or written to
	useFile, lockFile *os.File              // nil without a state directory
	mark              byte                  // without useFile
	runningCount      int                   // commands of this process in the root
	begunAlone        bool                  // when the last command began, no other was running
	stepsMissing      bool                  // restoreRebaseSteps is to be called before the command starts
	lastChecked       map[supervise.Level]time.Time
	copies            *revertedCopies
	lost              []string // as in rootCheck, until a command reports them

	notShared       error // why the baseline is not shared with other servers
	isHidden        bool  // other servers do not see its commands
	commandLocks    *commandLocks
	overlapping     []*overlappingRoot
	stateDirChanged time.Time // modification time of the directory of all roots' state
	stateDirRead    time.Time // when overlapping was read from it
}

// beginCommand registers the start of a command, and updates the baseline if no
// other command runs in the root. It returns the files that it reverted because
// the command of a killed server had changed them. See Command.Begin for
// dirState. On an error other than errBusy the command is registered, and
// endCommand must be called.
func (w *RootGuard) beginCommand(c *Command, dirState func(dir string) (state DirState, ok bool)) (reverted []string, err error) {
	reverted, err = w.lockWithOverlapping(c)
	if err != nil {
		return reverted, err
	}
	defer func() { err = errors.Join(err, w.notShared) }()
	defer w.unlock()
	w.git = c.Git
	w.git.runs = w.userRunningSettings
	defer w.unlockOverlapping()
	w.reloadBaseline()
	mark := w.readMark()
	if w.runningCount == 0 && !w.isHidden {
		w.commandLocks.acquire()
	}
	alone := w.tryLockUseFile()
	w.recordRootMode()
	defer w.shareUseFile()
	w.begunAlone = false
	if !alone && w.hasBaseline {
		if markOf(c.Level) < mark { // '1' < '2'
			err = w.writeMark(markOf(c.Level))
		}
		return reverted, err
	}
	if mark == markIdle {
		w.inventory.dirState = dirState
		defer func() { w.inventory.dirState = nil }()
	}
	if alone && w.hasBaseline && mark != markIdle {
		rc := w.checkInterrupted(c, mark)
		reverted = append(reverted, rc.reverted...)
		if rc.failed {
			return reverted, w.writeMark(min(mark, markOf(c.Level)))
		}
	}
	if err = w.updateBaseline(c.Protected); err == nil && (alone || markOf(c.Level) < mark) {
		err = w.writeMark(markOf(c.Level))
	}
	w.begunAlone, w.stepsMissing = alone, true
	return reverted, err
}

// addHardLinked adds to paths the absolute paths of watched files that have
// several hard links.
func (w *RootGuard) addHardLinked(paths map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, it := range w.baseline.Items {
		if it.Links > 1 {
			paths[filepath.Join(w.root, name)] = true
		}
	}
}

// check compares the root with the baseline and reverts forbidden changes,
// except in files for which skip returns true. ended is false while the command
// runs. The caller holds the lock.
func (w *RootGuard) check(c *Command, ended bool, skip func(string) bool) *rootCheck {
	defer w.inventory.restoreModes()
	reopened := w.restoreRootMode()
	if ended && w.runningCount <= 1 {
		w.inventory.runningIndexes = nil
	} else if w.inventory.runningIndexes == nil {
		w.inventory.runningIndexes = map[string]fileState{}
	}
	rc := &rootCheck{
		root: w.root, handle: w.handle, baseline: &w.baseline, found: w.inventory.scan(w.baseline.HookDirs, w.baseline.Included, w.baseline.Programs, c.Protected), trustTimes: w.trustTimes,
		skip: skip, mustStay: c.MustStay, inOtherRoot: c.InAnyRoot, copies: w.copies, harmlessIndexes: w.inventory.harmlessIndexes, runningIndexes: w.inventory.runningIndexes, ended: ended, last: ended && w.runningCount <= 1,
	}
	if reopened {
		rc.reverted = append(rc.reverted, w.root)
	}
	if c.Restores {
		rc.restorable = w.previousItems
	}
	for range maxDeepRounds { // a directory that was moved up may have too deep ones below
		before := len(rc.reverted)
		if rc.moveUpDeepDirs(); len(rc.reverted) == before {
			break
		}
		rc.found = w.inventory.scan(w.baseline.HookDirs, w.baseline.Included, w.baseline.Programs, c.Protected)
	}
	rc.failed = rc.failed || rc.hasNewDeepDirs() || isUnreadable(w.root)
	rc.checkAll()
	if len(rc.lost) > 0 {
		w.lost = append(w.lost, rc.lost...)
		rc.failed = w.saveBaseline() != nil || rc.failed
	}
	return rc
}

// checkIfDue checks the root while the command runs, and returns the reverted files. It
// does nothing if that was done less than minInterval ago for any command of this
// level, or if the root's lock cannot be taken. endCommand takes the lock again, and
// returns that error.
func (w *RootGuard) checkIfDue(c *Command, minInterval time.Duration) (reverted []string) {
	if w.lock() != nil {
		return nil
	}
	defer w.unlock()
	if last, ok := w.lastChecked[c.Level]; ok && time.Since(last) < minInterval {
		return nil
	}
	w.reloadBaseline()
	reverted = w.check(c, false, c.skips).reverted
	w.lastChecked[c.Level] = time.Now()
	return reverted
}

// endCommand checks the root after a command has ended, registers the end, and
// returns the reverted files. The error says what could not be checked or
// reverted.
func (w *RootGuard) endCommand(c *Command) (reverted []string, err error) {
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
		if w.tryLockUseFile() && !rc.failed { // else the next command starts with this baseline
			err = errors.Join(err, w.writeMark(markIdle))
		}
		if w.useFile != nil {
			tryFlock(w.useFile, lockRelease)
		}
		w.commandLocks.release()
	}
	for _, lost := range w.lost {
		err = errors.Join(err, errors.New(lost))
	}
	w.lost = nil
	if rc.failed {
		err = errors.Join(err, errors.New("some of them could not be removed or restored"))
	}
	if !rc.found.complete {
		err = errors.Join(err, fmt.Errorf("the root has more than %d entries", maxScanEntries))
	}
	return rc.reverted, err
}

// watchesAtOrBelow reports whether the file at an absolute path, or a file below it, is
// in the baseline. It also returns true for the directory hooks of a repository in the
// baseline, even if that is empty.
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
