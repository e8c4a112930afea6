package sandbox

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// openRootObject opens the directory path as a root, with os.Root.
func openRootObject(path string) (object, error) { return openPortableRoot(path) }

// isPseudoRoot reports whether dir is on a file system of devices or descriptors, or an
// automount. It is true for a directory that cannot be opened.
func isPseudoRoot(dir *os.Root, _ string, _ fs.FileInfo) bool {
	f, err := dir.Open(".")
	if err != nil {
		return true
	}
	defer f.Close()
	var st unix.Statfs_t
	return unix.Fstatfs(int(f.Fd()), &st) == nil && isPseudoType(unix.ByteSliceToString(st.Fstypename[:]))
}

// isPseudoPath reports whether a path outside the roots is on a file system of
// isPseudoType, or cannot be examined.
func isPseudoPath(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) != nil || isPseudoType(unix.ByteSliceToString(st.Fstypename[:]))
}

// isPseudoType reports whether a file system with this name shows devices or
// descriptors, or mounts others on access.
func isPseudoType(name string) bool {
	return name == "devfs" || name == "fdesc" || name == "autofs"
}
