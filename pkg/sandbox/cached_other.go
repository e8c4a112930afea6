//go:build !linux || !(amd64 || arm64)

package sandbox

// LstatAtHand is Lstat; on Linux it is faster for an entry that the kernel
// most likely has in memory.
func (d *Dir) LstatAtHand(name string) (Stat, error) { return d.Lstat(name) }

// OpenDirAtHand is OpenDir; on Linux it is faster for a directory that the
// kernel most likely has in memory.
func (d *Dir) OpenDirAtHand(name string) (*Dir, error) { return d.OpenDir(name) }
