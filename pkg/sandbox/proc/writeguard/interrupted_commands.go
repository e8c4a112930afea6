package writeguard

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// interruptedRoots lists the neighbours whose server was killed while a command ran.
func (w *RootGuard) interruptedRoots() (left []*overlappingRoot) {
	for _, n := range w.overlapping {
		if _, killed := n.commandState(); !killed {
			continue
		}
		if _, err := os.Lstat(n.root); errors.Is(err, fs.ErrNotExist) {
			n.useFile.WriteAt([]byte{markIdle}, 0) //nolint:errcheck // on failure the next call tries again
			continue
		}
		left = append(left, n)
	}
	return left
}

// checkInterruptedRoots judges the roots of killed servers, and returns the reverted files.
func checkInterruptedRoots(c *Command, left []*overlappingRoot) (taken []string) {
	for _, n := range left {
		other, err := openRootGuard(n.root, filepath.Dir(n.stateDir))
		if err != nil {
			continue // its baseline is used, see doubts
		}
		taken = append(taken, other.checkIfInterrupted(c)...)
		other.close()
	}
	return taken
}

// checkIfInterrupted judges the root if its server was killed while a command ran and
// no other command is running in it. It returns the reverted files.
func (w *RootGuard) checkIfInterrupted(c *Command) (taken []string) {
	if w.lock() != nil {
		return nil
	}
	defer w.unlock()
	w.reloadBaseline()
	mark := w.readMark()
	if mark == markIdle || !w.tryUseExclusive() {
		return nil
	}
	defer tryFlock(w.useFile, lockRelease)
	failed := false
	if w.hasBaseline {
		rc := w.checkInterrupted(c, mark)
		taken, failed = rc.reverted, rc.failed
	}
	if !failed {
		w.writeMark(markIdle) //nolint:errcheck // on failure it is judged again
	}
	return taken
}

// checkInterrupted reverts the changes that the commands of a killed server left
// behind.
func (w *RootGuard) checkInterrupted(c *Command, mark byte) *rootCheck {
	return w.check(c, true, func(path string) bool { return c.skips(path) || mark == markL2 && w.wasReadOnlyAtL2(path) })
}
