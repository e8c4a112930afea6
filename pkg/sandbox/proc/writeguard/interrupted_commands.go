package writeguard

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// interruptedRoots lists the overlapping roots whose server was killed while a
// command ran. The caller holds their locks.
func (w *RootGuard) interruptedRoots() (interrupted []*overlappingRoot) {
	for _, n := range w.overlapping {
		if _, isInterrupted := n.commandState(); !isInterrupted {
			continue
		}
		if _, err := os.Lstat(n.root); errors.Is(err, fs.ErrNotExist) {
			n.useFile.WriteAt([]byte{markIdle}, 0) //nolint:errcheck // on failure the next call tries again
			continue
		}
		interrupted = append(interrupted, n)
	}
	return interrupted
}

// checkInterruptedRoots checks the roots of killed servers, and returns the
// reverted files.
func checkInterruptedRoots(c *Command, interrupted []*overlappingRoot) (reverted []string) {
	for _, n := range interrupted {
		other, err := openRootGuard(n.root, filepath.Dir(n.stateDir))
		if err != nil {
			continue // its baseline is used, see otherCommands
		}
		reverted = append(reverted, other.checkIfInterrupted(c)...)
		other.close()
	}
	return reverted
}

// checkIfInterrupted checks the root if its server was killed while a command
// ran and no other command is running in it. It returns the reverted files.
func (w *RootGuard) checkIfInterrupted(c *Command) (reverted []string) {
	if w.lock() != nil {
		return nil
	}
	defer w.unlock()
	w.reloadBaseline()
	mark := w.readMark()
	if mark == markIdle || !w.tryLockUseFile() {
		return nil
	}
	defer tryFlock(w.useFile, lockRelease)
	failed := false
	if w.hasBaseline {
		rc := w.checkInterrupted(c, mark)
		reverted, failed = rc.reverted, rc.failed
	}
	if !failed {
		w.writeMark(markIdle) //nolint:errcheck // on failure it is checked again
	}
	return reverted
}

// checkInterrupted reverts the changes that the commands of a killed server
// left behind. mark is the root's mark: with markL2, changes of files that the
// kernel protected are the user's and stay.
func (w *RootGuard) checkInterrupted(c *Command, mark byte) *rootCheck {
	return w.check(c, true, func(path string) bool { return c.skips(path) || mark == markL2 && w.wasReadOnlyAtL2(path) })
}
