//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package state

// dirLocksWork is false: directories cannot be locked on this system, so only
// the age of a file shows that it was abandoned.
const dirLocksWork = false

// lockDirShared does nothing and returns a release that does nothing:
// directories cannot be locked on this system.
func lockDirShared(string) (release func(), err error) { return func() {}, nil }

// tryLockDirExclusive returns true: directories cannot be locked on this
// system.
func tryLockDirExclusive(string) (release func(), locked bool) { return func() {}, true }
