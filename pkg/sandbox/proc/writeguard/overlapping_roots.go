package writeguard

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// neighbour is the state of another root that overlaps with this one: one of
// the roots contains the other, or both are the same directory under two paths
// or in two state directories.
type neighbour struct {
	dir, root string
	peer      bool   // belongs to another state directory
	rel       string // path of the lower root, relative to the upper
	above     bool   // this neighbour's root is the upper one
	use, lock *os.File
	base      baseline
	loaded    os.FileInfo
}

// findNeighbours lists the neighbours in the state directory, if a root was
// added to it since the last call.
func (w *RootGuard) findNeighbours() {
	if w.dir == "" {
		return
	}
	state := filepath.Dir(w.dir)
	info, err := os.Stat(state)
	if err != nil || info.ModTime().Equal(w.listed) && w.read.Sub(w.listed) >= supervise.SettledAfter {
		return
	}
	w.listed, w.read = info.ModTime(), time.Now()
	entries, _ := os.ReadDir(state)
	var near []*neighbour
	for _, entry := range entries {
		dir := filepath.Join(state, entry.Name())
		if dir == w.dir {
			continue
		}
		if at := slices.IndexFunc(w.near, func(n *neighbour) bool { return n.dir == dir }); at >= 0 {
			near = append(near, w.near[at])
			w.near = slices.Delete(w.near, at, at+1)
		} else if n := w.neighbour(dir); n != nil {
			near = append(near, n)
		}
	}
	for _, n := range w.near {
		if n.peer {
			near = append(near, n)
		} else {
			n.close()
		}
	}
	w.near = near
}

// findPeers adds the neighbours of other state directories while commands run
// in overlapping roots. For a server whose state cannot be read, only the
// start time of its command is known, see doubt.
func (w *RootGuard) findPeers() {
	w.near = slices.DeleteFunc(w.near, func(n *neighbour) bool {
		_, err := os.Lstat(n.dir)
		if err != nil {
			n.close()
		}
		return err != nil
	})
	if len(w.presence.others()) == 0 {
		return
	}
	for _, dir := range peerStates() {
		if dir == w.dir || slices.ContainsFunc(w.near, func(n *neighbour) bool { return n.dir == dir }) {
			continue
		}
		if n := w.neighbour(dir); n != nil {
			n.peer = true
			w.near = append(w.near, n)
		}
	}
}

func (n *neighbour) close() { closeAll(n.use, n.lock) }

// neighbour opens the state of another root. It returns nil if the roots do
// not overlap.
func (w *RootGuard) neighbour(dir string) *neighbour {
	text, err := os.ReadFile(filepath.Join(dir, "root"))
	if err != nil {
		return nil
	}
	n := &neighbour{dir: dir, root: string(text)}
	if !n.relate(w.root) {
		return nil
	}
	n.use, err = os.OpenFile(filepath.Join(dir, "use"), os.O_RDWR, 0)
	if err == nil {
		n.lock, err = os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	}
	if err != nil {
		closeAll(n.use)
		return nil
	}
	return n
}

func (w *RootGuard) closeNeighbours() {
	for _, n := range w.near {
		n.close()
	}
	w.near = nil
}

// relate finds out how the roots overlap, by their paths and by the
// directories that these lead to. It returns false if they do not.
func (n *neighbour) relate(root string) bool {
	if !filepath.IsAbs(n.root) {
		return false
	}
	if rel, ok := relateTo(n.root, root); ok {
		n.above, n.rel = true, rel
		return true
	}
	if rel, ok := relateTo(root, n.root); ok {
		n.rel = rel
		return true
	}
	return false
}

// relateTo returns the path of lower relative to upper. ok is false if lower
// is not in upper.
func relateTo(upper, lower string) (rel string, ok bool) {
	if supervise.Beneath(upper, lower) {
		rel, err := filepath.Rel(upper, lower)
		return rel, err == nil
	}
	info, err := os.Stat(upper)
	if err != nil {
		return "", false
	}
	for _, path := range append([]string{lower}, otherPaths(lower)...) {
		for dir := path; ; dir = filepath.Dir(dir) {
			if now, err := os.Stat(dir); err == nil && os.SameFile(now, info) {
				rel, err := filepath.Rel(dir, path)
				return rel, err == nil
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return "", false
}

// toTheirs converts a name in our root to a name in the neighbour's root.
// inside is false if the file is not in that root.
func (n *neighbour) toTheirs(name string) (theirs string, inside bool) {
	if n.above {
		return filepath.Join(n.rel, name), true
	}
	return strip(n.rel, name)
}

// toOurs is the inverse of toTheirs.
func (n *neighbour) toOurs(theirs string) (name string, inside bool) {
	if n.above {
		return strip(n.rel, theirs)
	}
	return filepath.Join(n.rel, theirs), true
}

// strip returns name relative to dir. inside is false if name is not in dir.
func strip(dir, name string) (rest string, inside bool) {
	if !within(dir, name) {
		return "", false
	}
	rest, err := filepath.Rel(dir, name)
	return rest, err == nil
}

// watches reports whether the neighbour's baseline would contain the file if
// it had existed then. Directories of hooks and included files depend on the
// settings of the neighbour's user.
func (n *neighbour) watches(theirs string, now *item, name string) bool {
	if _, ok := n.base.Items[theirs]; ok {
		return true
	}
	repo, inside := n.toTheirs(now.Repo)
	switch now.Spot {
	case settingsKind:
		return slices.Contains([]string{"config", "config.worktree"}, filepath.Base(name)) || inside && n.base.Tops[repo] && filepath.Base(name) == ".gitmodules"
	case projectKind:
		rel, err := filepath.Rel(now.Repo, name)
		return inside && err == nil && isProjectName(firstPart(rel)) && (n.base.Tops[repo] || n.base.Seen.has(keyOf(repo)))
	}
	return true
}

// holds reports whether a command is running in the neighbour's root
// (running), and whether one was running when its server was killed (left).
// The caller holds the neighbour's lock.
func (n *neighbour) holds() (running, left bool) {
	if !flock(n.use, lockExclusive) {
		return true, false
	}
	flock(n.use, lockNone)
	var mark [1]byte
	count, _ := n.use.ReadAt(mark[:], 0)
	return false, count == 1 && mark[0] != markIdle
}

// refresh reads the neighbour's baseline if it has changed. It returns false
// if there is no readable baseline.
func (n *neighbour) refresh() bool {
	path := filepath.Join(n.dir, "baseline")
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	if n.loaded == nil || !sameVersion(info, n.loaded) {
		if n.base.load(path) != nil {
			return false
		}
		n.loaded = info
	}
	return true
}

// sameVersion reports whether two infos describe the same file without a write
// in between.
func sameVersion(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// enterAmong takes the locks of the baseline and of all neighbours. If the
// server of a neighbour was killed while a command ran, it first judges that
// root: the changes of that command must not become the user's. It returns the
// reverted files.
func (w *RootGuard) enterAmong(c *Command) (taken []string, err error) {
	w.reopenState()
	settled := false
	for began := time.Now(); ; time.Sleep(time.Millisecond + rand.N(4*time.Millisecond)) {
		if err := w.enter(); err != nil {
			return taken, err
		}
		w.findNeighbours()
		if w.running == 0 {
			w.findPeers()
		}
		if w.lockNeighbours() {
			left := w.leftBehind()
			if settled || len(left) == 0 {
				return taken, nil
			}
			w.unlockNeighbours()
			w.leave()
			taken, settled = settle(c, left), true
			continue
		}
		w.leave()
		if time.Since(began) > lockWait {
			return taken, errBusy
		}
	}
}

// lockNeighbours takes the locks of all neighbours. If one is held, it takes
// none and returns false.
func (w *RootGuard) lockNeighbours() bool {
	for i, n := range w.near {
		if !flock(n.lock, lockExclusive) {
			for _, locked := range w.near[:i] {
				flock(locked.lock, lockNone)
			}
			return false
		}
	}
	return true
}

func (w *RootGuard) unlockNeighbours() {
	for _, n := range w.near {
		flock(n.lock, lockNone)
	}
}

// leftBehind lists the neighbours whose server was killed while a command ran.
func (w *RootGuard) leftBehind() (left []*neighbour) {
	for _, n := range w.near {
		if _, killed := n.holds(); !killed {
			continue
		}
		if _, err := os.Lstat(n.root); errors.Is(err, fs.ErrNotExist) {
			n.use.WriteAt([]byte{markIdle}, 0) //nolint:errcheck // on failure the next call tries again
			continue
		}
		left = append(left, n)
	}
	return left
}

// settle judges the roots of killed servers, and returns the reverted files.
func settle(c *Command, left []*neighbour) (taken []string) {
	for _, n := range left {
		other, err := openRootGuard(n.root, filepath.Dir(n.dir))
		if err != nil {
			continue // its baseline is used, see doubts
		}
		taken = append(taken, other.settleOwn(c)...)
		other.close()
	}
	return taken
}

// settleOwn judges the root if its server was killed while a command ran and
// no other command is running in it. It returns the reverted files.
func (w *RootGuard) settleOwn(c *Command) (taken []string) {
	if w.enter() != nil {
		return nil
	}
	defer w.leave()
	w.refresh()
	mark := w.readMark()
	if mark == markIdle || !w.alone() {
		return nil
	}
	defer flock(w.use, lockNone)
	failed := false
	if w.fresh {
		j := w.judgeKilled(c, mark)
		taken, failed = j.taken, j.failed
	}
	if !failed {
		w.writeMark(markIdle) //nolint:errcheck // on failure it is judged again
	}
	return taken
}

// doubts lists the running commands in this root and the neighbours with
// running or interrupted commands. known means that this root has a baseline.
func (w *RootGuard) doubts(known bool) *doubts {
	d := &doubts{root: w.root, running: w.presence.others(), known: known, dropped: map[string]bool{}}
	for _, n := range w.near {
		if running, left := n.holds(); (running || left) && n.refresh() {
			d.shared = append(d.shared, n)
		}
	}
	return d
}
