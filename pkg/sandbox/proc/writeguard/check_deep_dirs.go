package writeguard

import (
	"crypto/rand"
	"path/filepath"
	"slices"
)

// maxDeepRounds bounds how often new directories are moved up in one check.
const maxDeepRounds = 1000

// moveUpDeepDirs moves new directories that are too deep to be examined to the
// top of the root, where they can be checked: git examines them by relative
// paths. It adds their earlier paths to rc.reverted.
func (rc *rootCheck) moveUpDeepDirs() {
	for _, name := range rc.found.tooDeep {
		if rc.baseline.Seen.has(dirKey(name)) {
			continue // the user's
		}
		err := rc.withAccess(name, func() error { return rc.handle.Rename(name, "toolroom-deep-"+rand.Text()) })
		rc.recordRevert(filepath.Join(rc.root, name), err)
	}
}

// hasNewDeepDirs reports whether the root has directories that are too deep to
// be examined and that the baseline does not have.
func (rc *rootCheck) hasNewDeepDirs() bool {
	return slices.ContainsFunc(rc.found.tooDeep, func(name string) bool { return !rc.baseline.Seen.has(dirKey(name)) })
}
