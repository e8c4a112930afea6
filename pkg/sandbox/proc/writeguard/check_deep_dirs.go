package writeguard

import (
	"crypto/rand"
	"path/filepath"
)

// moveUpDeepDirs moves new directories that are too deep to be examined to the
// top of the root, where they can be checked: git examines them by relative
// paths. It adds their earlier paths to rc.reverted.
func (rc *rootCheck) moveUpDeepDirs() {
	for _, name := range rc.found.tooDeep {
		if rc.baseline.Seen.has(dirKey(name)) {
			continue
		}
		err := rc.withAccess(name, func() error { return rc.handle.Rename(name, "toolroom-deep-"+rand.Text()) })
		rc.recordRevert(filepath.Join(rc.root, name), err)
	}
}
