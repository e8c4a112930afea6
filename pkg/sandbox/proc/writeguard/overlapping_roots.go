package writeguard

import (
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
