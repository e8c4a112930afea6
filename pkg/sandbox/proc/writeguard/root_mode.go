package writeguard

import (
	"io/fs"
	"os"
)

// ownerAccess is the permission of an owner to list, change and enter a
// directory.
const ownerAccess fs.FileMode = 0o700

// recordRootMode records the permissions of the root before a command of this
// process starts, unless another one is running. Without the server's own access
// to the root, nothing in it could be examined.
func (w *RootGuard) recordRootMode() {
	if w.runningCount > 0 {
		return
	}
	w.rootMode = 0
	if info, err := os.Stat(w.root); err == nil {
		w.rootMode = info.Mode().Perm()
	}
}

// restoreRootMode restores the permissions of the root if a command has taken
// some from its owner, and reports whether it did. The permissions of the group
// and of others count only then.
func (w *RootGuard) restoreRootMode() bool {
	if w.rootMode == 0 {
		return false
	}
	info, err := os.Stat(w.root)
	if err != nil || w.rootMode&ownerAccess&^info.Mode() == 0 {
		return false
	}
	l, err := addMode(w.root, ".", w.rootMode&ownerAccess)
	if err != nil {
		return false
	}
	l.closeWithMode(w.rootMode)
	return true
}
