//go:build !linux || !(amd64 || arm64)

package sandbox

// LstatCached is Lstat. On Linux it is faster for an entry that the kernel has in its
// cache.
func (d *Dir) LstatCached(name string) (Stat, error) { return d.Lstat(name) }

// OpenDirCached is OpenDir. On Linux it is faster for a directory that the kernel has in
// its cache.
func (d *Dir) OpenDirCached(name string) (*Dir, error) { return d.OpenDir(name) }
