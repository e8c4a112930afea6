package writeguard

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// overlappingRoot is the state of another root that overlaps with this one: one of
// the roots contains the other, or both are the same directory under two paths
// or in two state directories.
type overlappingRoot struct {
	stateDir, root    string
	foreignStateDir   bool   // belongs to another state directory
	lowerInUpper      string // path of the lower root, relative to the upper
	isUpper           bool   // this neighbour's root is the upper one
	useFile, lockFile *os.File
	baseline          baseline
	loadedInfo        os.FileInfo
}

// findOverlapping lists the neighbours in the state directory, if a root was
// added to it since the last call.
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
	var near []*overlappingRoot
	for _, entry := range entries {
		dir := filepath.Join(state, entry.Name())
		if dir == w.stateDir {
			continue
		}
		if at := slices.IndexFunc(w.overlapping, func(n *overlappingRoot) bool { return n.stateDir == dir }); at >= 0 {
			near = append(near, w.overlapping[at])
			w.overlapping = slices.Delete(w.overlapping, at, at+1)
		} else if n := w.openOverlapping(dir); n != nil {
			near = append(near, n)
		}
	}
	for _, n := range w.overlapping {
		if n.foreignStateDir {
			near = append(near, n)
		} else {
			n.close()
		}
	}
	w.overlapping = near
}

// findForeign adds the neighbours of other state directories while commands run
// in overlapping roots. For a server whose state cannot be read, only the
// start time of its command is known, see doubt.
func (w *RootGuard) findForeign() {
	w.overlapping = slices.DeleteFunc(w.overlapping, func(n *overlappingRoot) bool {
		_, err := os.Lstat(n.stateDir)
		if err != nil {
			n.close()
		}
		return err != nil
	})
	if len(w.presence.others()) == 0 {
		return
	}
	for _, dir := range foreignStateDirs() {
		if dir == w.stateDir || slices.ContainsFunc(w.overlapping, func(n *overlappingRoot) bool { return n.stateDir == dir }) {
			continue
		}
		if n := w.openOverlapping(dir); n != nil {
			n.foreignStateDir = true
			w.overlapping = append(w.overlapping, n)
		}
	}
}

func (n *overlappingRoot) close() { closeAll(n.useFile, n.lockFile) }

// openOverlapping opens the state of another root. It returns nil if the roots do
// not overlap.
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

func (w *RootGuard) closeOverlapping() {
	for _, n := range w.overlapping {
		n.close()
	}
	w.overlapping = nil
}

// wouldWatch reports whether the neighbour's baseline would contain the file if
// it had existed then. Directories of hooks and included files depend on the
// settings of the neighbour's user.
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

// commandState reports whether a command is running in the neighbour's root
// (running), and whether one was running when its server was killed (left).
// The caller holds the neighbour's lock.
func (n *overlappingRoot) commandState() (running, interrupted bool) {
	if !tryFlock(n.useFile, lockExclusive) {
		return true, false
	}
	tryFlock(n.useFile, lockRelease)
	var mark [1]byte
	count, _ := n.useFile.ReadAt(mark[:], 0)
	return false, count == 1 && mark[0] != markIdle
}

// reload reads the neighbour's baseline if it has changed. It returns false
// if there is no readable baseline.
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

// isSameVersion reports whether two infos describe the same file without a write
// in between.
func isSameVersion(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// lockWithOverlapping takes the locks of the baseline and of all neighbours. If the
// server of a neighbour was killed while a command ran, it first judges that
// root: the changes of that command must not become the user's. It returns the
// reverted files.
func (w *RootGuard) lockWithOverlapping(c *Command) (taken []string, err error) {
	w.reopenStateFiles()
	settled := false
	for began := time.Now(); ; time.Sleep(time.Millisecond + rand.N(4*time.Millisecond)) {
		if err := w.lock(); err != nil {
			return taken, err
		}
		w.findOverlapping()
		if w.runningCount == 0 {
			w.findForeign()
		}
		if w.tryLockOverlapping() {
			left := w.interruptedRoots()
			if settled || len(left) == 0 {
				return taken, nil
			}
			w.unlockOverlapping()
			w.unlock()
			taken, settled = checkInterruptedRoots(c, left), true
			continue
		}
		w.unlock()
		if time.Since(began) > maxLockWait {
			return taken, errBusy
		}
	}
}

// tryLockOverlapping takes the locks of all neighbours. If one is held, it takes
// none and returns false.
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

func (w *RootGuard) unlockOverlapping() {
	for _, n := range w.overlapping {
		tryFlock(n.lockFile, lockRelease)
	}
}

// otherCommands lists the running commands in this root and the neighbours with
// running or interrupted commands. known means that this root has a baseline.
func (w *RootGuard) otherCommands(hadBaseline bool) *otherCommands {
	d := &otherCommands{root: w.root, running: w.presence.others(), hadBaseline: hadBaseline, omitted: map[string]bool{}}
	for _, n := range w.overlapping {
		if running, left := n.commandState(); (running || left) && n.reload() {
			d.overlapping = append(d.overlapping, n)
		}
	}
	return d
}
