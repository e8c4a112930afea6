//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package state

// dirLocksWork is false: directories cannot be locked on this system, so only the
// age of a file shows that it was abandoned.
const dirLocksWork = false

func lockDirShared(string) (release func(), err error) { return func() {}, nil }

func tryLockDirExclusive(string) (release func(), alone bool) { return func() {}, true }
