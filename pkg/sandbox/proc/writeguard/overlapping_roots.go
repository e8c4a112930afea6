package writeguard

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// overlappingRoot is the state of another guarded root that has files in
// common with this one: one of the roots contains the other, or both are the
// same directory under two paths or with two state directories.
type overlappingRoot struct {
	stateDir          string // the other root's directory of state
	root              string // its path
	isForeign         bool   // its state is not in the state directory of this server
	lowerInUpper      string // path of the lower root, relative to the upper
	isUpper           bool   // the other root contains this one
	useFile, lockFile *os.File
	baseline          baseline
	loadedInfo        os.FileInfo // of the file that baseline was read from
}

// findOverlapping updates w.overlapping from the state directory, if a root was
// added to that since the last call.
func (w *RootGuard) findOverlapping() {
	if w.stateDir == "" {
		return
	}
	state := filepath.Dir(w.stateDir)
	info, err := os.Stat(state)
	if err != nil || info.ModTime().Equal(w.stateDirChanged) && w.stateDirRead.Sub(w.stateDirChanged) >= supervise.SettledAfter {
		return
	}
	w.stateDirChanged, w.stateDirRead = info.ModTime(), time.Now()
	entries, _ := os.ReadDir(state)
	var overlapping []*overlappingRoot
	for _, entry := range entries {
		dir := filepath.Join(state, entry.Name())
		if dir == w.stateDir {
			continue
		}
		if at := slices.IndexFunc(w.overlapping, func(n *overlappingRoot) bool { return n.stateDir == dir }); at >= 0 {
			overlapping = append(overlapping, w.overlapping[at])
			w.overlapping = slices.Delete(w.overlapping, at, at+1)
		} else if n := w.openOverlapping(dir); n != nil {
			overlapping = append(overlapping, n)
		}
	}
	for _, n := range w.overlapping {
		if n.isForeign {
			overlapping = append(overlapping, n)
		} else {
			n.close()
		}
	}
	w.overlapping = overlapping
}

// findForeign adds overlapping roots of other state directories while commands
// run in them, and drops those whose state was removed. For a server whose
// state cannot be read, only the start time of its command is known, see
// runningCommand.
func (w *RootGuard) findForeign() {
	w.overlapping = slices.DeleteFunc(w.overlapping, func(n *overlappingRoot) bool {
		_, err := os.Lstat(n.stateDir)
		if err != nil {
			n.close()
		}
		return err != nil
	})
	if len(w.commandLocks.commandsOfOthers()) == 0 {
		return
	}
	for _, dir := range foreignStateDirs() {
		if dir == w.stateDir || slices.ContainsFunc(w.overlapping, func(n *overlappingRoot) bool { return n.stateDir == dir }) {
			continue
		}
		if n := w.openOverlapping(dir); n != nil {
			n.isForeign = true
			w.overlapping = append(w.overlapping, n)
		}
	}
}

// close closes the files of the other root's state, which releases their locks.
func (n *overlappingRoot) close() { closeAll(n.useFile, n.lockFile) }

// openOverlapping opens the state of another root in its directory of state. It
// returns nil if the roots do not overlap or the state cannot be opened.
func (w *RootGuard) openOverlapping(dir string) *overlappingRoot {
	text, err := os.ReadFile(filepath.Join(dir, "root"))
	if err != nil {
		return nil
	}
	n := &overlappingRoot{stateDir: dir, root: string(text)}
	if !n.setOverlap(w.root) {
		return nil
	}
	n.useFile, err = os.OpenFile(filepath.Join(dir, "use"), os.O_RDWR, 0)
	if err == nil {
		n.lockFile, err = os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	}
	if err != nil {
		closeAll(n.useFile)
		return nil
	}
	return n
}

// closeOverlapping closes and forgets all overlapping roots.
func (w *RootGuard) closeOverlapping() {
	for _, n := range w.overlapping {
		n.close()
	}
	w.overlapping = nil
}

// wouldWatch reports whether the other root's baseline would contain a file if
// the file had existed when it was recorded. theirs is its name in the other
// root, name that in ours. For directories of hooks and included files it may
// be wrong, as these depend on the settings of the other root's user.
func (n *overlappingRoot) wouldWatch(theirs string, now *fileState, name string) bool {
	if _, ok := n.baseline.Items[theirs]; ok {
		return true
	}
	repo, inside := n.toTheirName(now.Repo)
	switch now.Spot {
	case gitSettingsKind:
		return slices.Contains([]string{"config", "config.worktree"}, filepath.Base(name)) || inside && n.baseline.Tops[repo] && filepath.Base(name) == ".gitmodules"
	case projectSettingsKind:
		rel, err := filepath.Rel(now.Repo, name)
		return inside && err == nil && isProjectSettingsName(firstComponent(rel)) && (n.baseline.Tops[repo] || n.baseline.Seen.has(dirKey(repo)))
	}
	return true
}

// commandState reports whether a command is running in the other root, and
// whether a command was interrupted: it was running when its server was killed.
// The caller holds n.lockFile.
func (n *overlappingRoot) commandState() (running, interrupted bool) {
	if !tryFlock(n.useFile, lockExclusive) {
		return true, false
	}
	tryFlock(n.useFile, lockRelease)
	var mark [1]byte
	count, _ := n.useFile.ReadAt(mark[:], 0)
	return false, count == 1 && mark[0] != markIdle
}

// reload reads the other root's baseline if it has changed. It returns false if
// there is no readable baseline.
func (n *overlappingRoot) reload() bool {
	path := filepath.Join(n.stateDir, "baseline")
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	if n.loadedInfo == nil || !isSameVersion(info, n.loadedInfo) {
		if n.baseline.load(path) != nil {
			return false
		}
		n.loadedInfo = info
	}
	return true
}

// isSameVersion reports whether a and b describe the same file, and it was not
// written in between.
func isSameVersion(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// lockWithOverlapping takes the lock of this root and the locks of all overlapping roots,
// and waits for them. If the server of an overlapping root was killed while a command
// ran, it first checks that root: the changes of that command must not become the user's.
// It returns the reverted files, and errBusy after maxLockWait.
func (w *RootGuard) lockWithOverlapping(c *Command) (reverted []string, err error) {
	w.reopenStateFiles()
	checked := false
	for began := time.Now(); ; time.Sleep(time.Millisecond + rand.N(4*time.Millisecond)) {
		if err := w.lock(); err != nil {
			return reverted, err
		}
		w.findOverlapping()
		if w.runningCount == 0 {
			w.findForeign()
		}
		if w.tryLockOverlapping() {
			interrupted := w.interruptedRoots()
			if checked || len(interrupted) == 0 {
				return reverted, nil
			}
			w.unlockOverlapping()
			w.unlock()
			reverted, checked = checkInterruptedRoots(c, interrupted), true
			continue
		}
		w.unlock()
		if time.Since(began) > maxLockWait {
			return reverted, errBusy
		}
	}
}

// tryLockOverlapping takes the locks of all overlapping roots. If another
// server holds one of them, it takes none of them and returns false.
func (w *RootGuard) tryLockOverlapping() bool {
	for i, n := range w.overlapping {
		if !tryFlock(n.lockFile, lockExclusive) {
			for _, locked := range w.overlapping[:i] {
				tryFlock(locked.lockFile, lockRelease)
			}
			return false
		}
	}
	return true
}

// unlockOverlapping releases the locks of tryLockOverlapping.
func (w *RootGuard) unlockOverlapping() {
	for _, n := range w.overlapping {
		tryFlock(n.lockFile, lockRelease)
	}
}

// otherCommands returns the commands of other servers in this root, and the
// overlapping roots with running or interrupted commands. hadBaseline means
// that this root has a baseline.
func (w *RootGuard) otherCommands(hadBaseline bool) *otherCommands {
	d := &otherCommands{root: w.root, running: w.commandLocks.commandsOfOthers(), hadBaseline: hadBaseline, omitted: map[string]bool{}}
	for _, n := range w.overlapping {
		if running, interrupted := n.commandState(); (running || interrupted) && n.reload() {
			d.overlapping = append(d.overlapping, n)
		}
	}
	return d
}
