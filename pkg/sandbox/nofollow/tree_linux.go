package nofollow

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Tree is an open directory, below which the methods open and change files
// without following links. Paths are relative to it, with slashes; a link in a
// path is an error, except as the last component for Lstat and Readlink. It is safe for concurrent use, except for Close.
type Tree struct {
	fd int // O_PATH
}

// Open opens the directory at the path dir. It follows links in the path, except in the
// last component: a link or another file there is an error. The error is a *fs.PathError.
// The caller closes the tree.
func Open(dir string) (*Tree, error) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	return &Tree{fd: fd}, nil
}

// Close closes the directory.
func (t *Tree) Close() error { return unix.Close(t.fd) }

// open opens rel with the open(2) flags and returns the descriptor, which the
// caller closes. flags must contain O_NOFOLLOW, or O_CREAT and O_EXCL.
func (t *Tree) open(rel string, flags int, perm uint32) (int, error) {
	how := unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC), Mode: uint64(perm), Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	fd, err := retryInterrupted(func() (int, error) { return unix.Openat2(t.fd, rel, &how) })
	if err == unix.ENOSYS || err == unix.EPERM { // the kernel is older than 5.6, or a container forbids openat2
		fd, err = t.openByComponent(rel, flags, perm)
	}
	return fd, err
}

// openByComponent is open without openat2, with the same results: it opens one component
// after the other.
func (t *Tree) openByComponent(rel string, flags int, perm uint32) (int, error) {
	at := t.fd
	names := strings.Split(path.Clean(rel), "/")
	for i, name := range names {
		if name == ".." || name == "" {
			return -1, unix.EXDEV
		}
		next, mode := unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, uint32(0)
		if i == len(names)-1 {
			next, mode = flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, perm
		}
		fd, err := retryInterrupted(func() (int, error) { return unix.Openat(at, name, next, mode) })
		var target [1]byte
		if err == unix.ENOTDIR {
			if n, _ := unix.Readlinkat(at, name, target[:]); n > 0 {
				err = unix.ELOOP
			}
		}
		if at != t.fd {
			unix.Close(at) //nolint:errcheck // opened only for paths
		}
		if err != nil {
			return -1, err
		}
		at = fd
	}
	return at, nil
}

// retryInterrupted repeats a call that was interrupted by a signal, or that
// openat2 gave up because of a concurrent rename.
func retryInterrupted(call func() (int, error)) (int, error) {
	for {
		if fd, err := call(); err != unix.EINTR && err != unix.EAGAIN {
			return fd, err
		}
	}
}

// OpenParent opens the parent directory of a path, and returns its descriptor
// and the last component, for system calls that take a directory and a name.
// The caller closes the descriptor. For the tree's own directory the name is ".".
func (t *Tree) OpenParent(rel string) (fd int, name string, err error) {
	fd, err = t.open(path.Dir(rel), unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	return fd, path.Base(rel), err
}

// withParent calls f with the descriptor of rel's parent directory and the last
// component of rel. It returns f's error as a *fs.PathError with op.
func (t *Tree) withParent(op, rel string, f func(dir int, name string) error) error {
	dir, name, err := t.OpenParent(rel)
	if err == nil {
		err = f(dir, name)
		unix.Close(dir) //nolint:errcheck // opened only for paths
	}
	if err != nil {
		return &fs.PathError{Op: op, Path: rel, Err: err}
	}
	return nil
}

// Lstat describes the file rel. For a link it describes the link itself.
func (t *Tree) Lstat(rel string) (fs.FileInfo, error) {
	fd, err := t.open(rel, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "lstat", Path: rel, Err: err}
	}
	f := os.NewFile(uintptr(fd), rel)
	defer f.Close() //nolint:errcheck // opened only for paths
	return f.Stat()
}

// Readlink returns the target of the link rel as it is stored.
func (t *Tree) Readlink(rel string) (target string, err error) {
	err = t.withParent("readlink", rel, func(dir int, name string) error {
		buf := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(dir, name, buf)
		target = string(buf[:max(n, 0)])
		return err
	})
	return target, err
}

// Names returns the names of the entries of the directory rel, unsorted.
func (t *Tree) Names(rel string) ([]string, error) {
	fd, err := t.open(rel, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: rel, Err: err}
	}
	f := os.NewFile(uintptr(fd), rel)
	defer f.Close() //nolint:errcheck // only read
	return f.Readdirnames(-1)
}

// OpenFile opens the regular file rel for reading. It returns an error for
// other files. It never blocks, as opening a named pipe would.
func (t *Tree) OpenFile(rel string) (*os.File, error) {
	fd, err := t.open(rel, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: rel, Err: err}
	}
	f := os.NewFile(uintptr(fd), rel)
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close() //nolint:errcheck // nothing was read
		return nil, errors.Join(err, errors.New(rel+" is not a regular file"))
	}
	return f, nil
}

// Create creates the file rel and opens it for writing. It returns fs.ErrExist
// if rel exists.
func (t *Tree) Create(rel string, perm fs.FileMode) (*os.File, error) {
	fd, err := t.open(rel, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, uint32(perm.Perm()))
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: rel, Err: err}
	}
	return os.NewFile(uintptr(fd), rel), nil
}

// Mkdir creates the directory rel with the permissions perm, less the umask. It
// returns fs.ErrExist if rel exists.
func (t *Tree) Mkdir(rel string, perm fs.FileMode) error {
	return t.withParent("mkdir", rel, func(dir int, name string) error { return unix.Mkdirat(dir, name, uint32(perm.Perm())) })
}

// Mkfifo creates the named pipe rel with the permissions perm, less the umask.
// It returns fs.ErrExist if rel exists.
func (t *Tree) Mkfifo(rel string, perm fs.FileMode) error {
	return t.withParent("mkfifo", rel, func(dir int, name string) error {
		return unix.Mknodat(dir, name, unix.S_IFIFO|uint32(perm.Perm()), 0)
	})
}

// Symlink makes a symbolic link rel to target. It returns fs.ErrExist if rel
// exists.
func (t *Tree) Symlink(target, rel string) error {
	return t.withParent("symlink", rel, func(dir int, name string) error { return unix.Symlinkat(target, dir, name) })
}

// Link makes rel another hard link of the file old. Both are paths of the tree.
// It returns fs.ErrExist if rel exists.
func (t *Tree) Link(old, rel string) error {
	return t.withParent("link", rel, func(dir int, name string) error {
		return t.withParent("link", old, func(oldDir int, oldName string) error { return unix.Linkat(oldDir, oldName, dir, name, 0) })
	})
}

// Rename renames the file old of the tree to rel. It replaces an existing file.
func (t *Tree) Rename(old, rel string) error {
	return t.withParent("rename", rel, func(dir int, name string) error {
		return t.withParent("rename", old, func(oldDir int, oldName string) error { return unix.Renameat(oldDir, oldName, dir, name) })
	})
}

// MoveIn renames the file at the absolute path from, outside the tree, to the
// path rel of the tree. It follows links in from.
func (t *Tree) MoveIn(from, rel string) error {
	return t.withParent("rename", rel, func(dir int, name string) error { return unix.Renameat(unix.AT_FDCWD, from, dir, name) })
}

// Remove removes the file or link rel. It returns an error for a directory.
func (t *Tree) Remove(rel string) error {
	return t.withParent("remove", rel, func(dir int, name string) error { return unix.Unlinkat(dir, name, 0) })
}

// RemoveAll removes the file rel, or the directory rel with its content. A
// missing file is no error.
func (t *Tree) RemoveAll(rel string) error {
	err := t.withParent("remove", rel, RemoveAll)
	if IsMissing(err) {
		return nil
	}
	return err
}

// RemoveKnown removes the directory rel with its content, but only entries for which
// known returns true. It stops at another entry, such as one that another process has just
// created, and returns its path; "" if it has removed the directory. The paths are those
// of the tree. known gets the entries below rel. A missing directory is no error.
func (t *Tree) RemoveKnown(rel string, known func(rel string, info fs.FileInfo) bool) (unknown string, err error) {
	err = t.withParent("remove", rel, func(dir int, name string) (err error) {
		unknown, err = removeKnown(dir, name, rel, known)
		return err
	})
	if IsMissing(err) {
		return "", nil
	}
	return unknown, err
}

// Chmod changes the permission bits of the file rel to mode. For a link it
// returns ELOOP.
func (t *Tree) Chmod(rel string, mode fs.FileMode) error {
	return t.withParent("chmod", rel, func(dir int, name string) error { return Chmod(dir, name, mode) })
}

// Chtimes sets the time of modification of the file or link rel. It keeps the
// time of access.
func (t *Tree) Chtimes(rel string, at time.Time) error {
	return t.withParent("chtimes", rel, func(dir int, name string) error {
		times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, unix.NsecToTimespec(at.UnixNano())}
		return unix.UtimesNanoAt(dir, name, times, unix.AT_SYMLINK_NOFOLLOW)
	})
}

// Chmod changes the mode of the file name in the open directory dir. For a
// link it returns ELOOP.
func Chmod(dir int, name string, mode fs.FileMode) error {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd) //nolint:errcheck // opened only for paths
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT == unix.S_IFLNK {
		return unix.ELOOP
	}
	return os.Chmod("/proc/self/fd/"+strconv.Itoa(fd), mode)
}

// RemoveAll removes the file name in the open directory dir, or a directory
// with its content. It makes directories accessible whose mode keeps their
// owner out. A missing file is no error.
func RemoveAll(dir int, name string) error {
	if name == "." {
		return errors.New("a root is not removed")
	}
	err := unix.Unlinkat(dir, name, 0)
	if err == nil || err == unix.ENOENT {
		return nil
	}
	if err != unix.EISDIR {
		return err
	}
	if err = unix.Unlinkat(dir, name, unix.AT_REMOVEDIR); err == nil || err == unix.ENOENT {
		return nil
	}
	var stat unix.Stat_t
	if err := unix.Fstatat(dir, name, &stat, unix.AT_SYMLINK_NOFOLLOW); err == nil && stat.Mode&0o700 != 0o700 {
		if err := Chmod(dir, name, 0o700); err != nil {
			return err
		}
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close() //nolint:errcheck // only read
	names, err := f.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := RemoveAll(int(f.Fd()), name); err != nil {
			return err
		}
	}
	return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
}

// maxRemovals bounds how often removeKnown reads a directory that does not get empty.
const maxRemovals = 1000

// removeKnown is RemoveKnown for the directory name in the open directory dir. rel is its
// path.
func removeKnown(dir int, name, rel string, known func(rel string, info fs.FileInfo) bool) (unknown string, err error) {
	var stat unix.Stat_t
	if err := unix.Fstatat(dir, name, &stat, unix.AT_SYMLINK_NOFOLLOW); err == nil && stat.Mode&unix.S_IFMT == unix.S_IFDIR && stat.Mode&0o700 != 0o700 {
		if err := Chmod(dir, name, 0o700); err != nil {
			return "", err
		}
	}
	for range maxRemovals {
		fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return "", err
		}
		f := os.NewFile(uintptr(fd), name)
		unknown, err = removeKnownIn(f, rel, known)
		f.Close() //nolint:errcheck // only read
		if unknown != "" || err != nil {
			return unknown, err
		}
		if err = unix.Unlinkat(dir, name, unix.AT_REMOVEDIR); err == nil || err == unix.ENOENT {
			return "", nil
		}
		if err != unix.ENOTEMPTY && err != unix.EEXIST {
			return "", err
		}
	}
	return "", unix.ENOTEMPTY
}

// removeKnownIn removes the entries of the open directory f, whose path is rel. known and
// the results are as in RemoveKnown.
func removeKnownIn(f *os.File, rel string, known func(rel string, info fs.FileInfo) bool) (unknown string, err error) {
	names, err := f.Readdirnames(-1)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		info, err := lstatAt(int(f.Fd()), name)
		switch at := path.Join(rel, name); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return "", err
		case !known(at, info):
			return at, nil
		case info.IsDir():
			if unknown, err := removeKnown(int(f.Fd()), name, at, known); unknown != "" || err != nil && err != unix.ENOENT {
				return unknown, err
			}
		default:
			if err := unix.Unlinkat(int(f.Fd()), name, 0); err != nil && err != unix.ENOENT {
				return "", err
			}
		}
	}
	return "", nil
}

// lstatAt describes the entry name of the open directory dir, a link itself.
func lstatAt(dir int, name string) (fs.FileInfo, error) {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close() //nolint:errcheck // opened only for paths
	return f.Stat()
}
