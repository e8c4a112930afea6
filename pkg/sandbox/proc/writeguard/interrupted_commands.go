package writeguard

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

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

// judgeKilled reverts the changes that the commands of a killed server left
// behind.
func (w *RootGuard) judgeKilled(c *Command, mark byte) *judge {
	return w.judge(c, true, func(path string) bool { return c.open(path) || mark == markL2 && w.guardedAtL2(path) })
}
