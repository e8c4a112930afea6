package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// pathSeparator separates the components of a path on this system.
const pathSeparator = "/"

// Dir is an open directory. Its methods take the name of one entry and never follow a
// link, so they cannot leave the directory. Several goroutines may use it, but only
// one at a time may read its entries.
type Dir struct {
	fd     atomic.Int64 // -1 when closed
	path   string
	cached bool           // opened by OpenDirCached
	linked *linkedSecrets // FS.linked
}

// newDir returns a Dir that owns fd, a directory opened for reading. path is
// its absolute path with links resolved.
func newDir(fd int, path string) *Dir {
	d := &Dir{path: path}
	d.fd.Store(int64(fd))
	return d
}

// newDirRoot returns the Dir of root's directory, with a descriptor of its own,
// and closes root. It is used on kernels without openat2.
func newDirRoot(root *os.Root, path string) (*Dir, error) {
	defer root.Close()
	f, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return newDir(fd, path), nil
}

// Close closes the descriptor. A second Close returns fs.ErrClosed.
func (d *Dir) Close() error {
	fd := d.fd.Swap(-1)
	if fd < 0 {
		return fs.ErrClosed
	}
	if d.cached {
		return closeCached(int(fd))
	}
	return unix.Close(int(fd))
}

// sameMountFlags make openat2 fail at a link and at a mount point; openMounted handles
// mount points.
const sameMountFlags = unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

// openDirFlags are the open(2) flags for a directory, which is not followed if
// it is a link.
const openDirFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// OpenDir opens the subdirectory name. It returns NOT_A_DIRECTORY for anything else,
// including a link to a directory, and SPECIAL_FILE for a mounted pseudo file system
// (proc, sysfs, devices).
func (d *Dir) OpenDir(name string) (*Dir, error) {
	if err := errors.Join(checkComponent(name), d.checkNotDenied(name)); err != nil {
		return nil, err
	}
	how := unix.OpenHow{Flags: openDirFlags, Resolve: sameMountFlags}
	fd, err := retryInterrupted(func() (int, error) { return unix.Openat2(int(d.fd.Load()), name, &how) })
	switch err {
	case nil:
		return d.newChild(fd, name), nil
	case unix.EXDEV, unix.ENOSYS, unix.EPERM, unix.EAGAIN:
		return d.openMounted(name) // another file system, or a kernel without openat2
	}
	return nil, d.dirError("open", name, err)
}

// openMounted opens a directory that may be a mount point. It returns SPECIAL_FILE for
// a pseudo file system.
func (d *Dir) openMounted(name string) (*Dir, error) {
	fd, err := retryInterrupted(func() (int, error) { return unix.Openat(int(d.fd.Load()), name, openDirFlags, 0) })
	if err != nil {
		return nil, d.dirError("open", name, err)
	}
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || isPseudoFile(fd) || devDevice() != 0 && uint64(st.Dev) == devDevice() {
		unix.Close(fd)
		return nil, toolerr.New(toolerr.SpecialFile, "%s is a pseudo file system: it is not entered", pathname.Escape(d.join(name)))
	}
	return d.newChild(fd, name), nil
}

// newChild returns a Dir that owns fd, the opened subdirectory name of d.
func (d *Dir) newChild(fd int, name string) *Dir {
	child := newDir(fd, d.join(name))
	child.linked = d.linked
	return child
}

// dirError returns the error of the operation op on the subdirectory name. It
// replaces ELOOP, the kernel's error for a link, by ENOTDIR.
func (d *Dir) dirError(op, name string, err error) error {
	if err == unix.ELOOP {
		err = unix.ENOTDIR // O_NOFOLLOW refused a link
	}
	return &fs.PathError{Op: op, Path: d.join(name), Err: err}
}

// openFileFlags are the open(2) flags for a file: it is not followed if it is a
// link, and does not block at a fifo.
const openFileFlags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC

// openRegular opens the regular file name for reading and returns its
// descriptor. It returns SPECIAL_FILE for links and special files, at which it
// does not block, and EISDIR for a directory.
func (d *Dir) openRegular(name string) (int, Stat, error) {
	if err := errors.Join(checkComponent(name), d.checkNotDenied(name)); err != nil {
		return -1, Stat{}, err
	}
	fd, err := retryInterrupted(func() (int, error) { return unix.Openat(int(d.fd.Load()), name, openFileFlags, 0) })
	switch err {
	case nil:
	case unix.ELOOP:
		return -1, Stat{}, errSpecial(d.join(name), fs.ModeSymlink)
	case unix.ENXIO:
		return -1, Stat{}, errSpecial(d.join(name), fs.ModeSocket)
	default:
		return -1, Stat{}, &fs.PathError{Op: "open", Path: d.join(name), Err: err}
	}
	var raw unix.Stat_t
	if err := unix.Fstat(fd, &raw); err != nil {
		unix.Close(fd)
		return -1, Stat{}, &fs.PathError{Op: "stat", Path: d.join(name), Err: err}
	}
	st := statOf(&raw)
	switch {
	case st.Mode.IsRegular():
		if err = d.checkFileNotDenied(name, st); err == nil {
			return fd, st, nil
		}
	case st.Mode.IsDir():
		err = &fs.PathError{Op: "open", Path: d.join(name), Err: unix.EISDIR}
	default:
		err = errSpecial(d.join(name), st.Mode)
	}
	unix.Close(fd)
	return -1, Stat{}, err
}

// Open opens the regular file name for reading; it never blocks. It returns SPECIAL_FILE
// for links and special files, EISDIR for a directory, and an error for a name of several
// components and for a file that the rules deny.
func (d *Dir) Open(name string) (*os.File, Stat, error) {
	fd, st, err := d.openRegular(name)
	if err != nil {
		return nil, Stat{}, err
	}
	return os.NewFile(uintptr(fd), d.join(name)), st, nil
}

// ReadFile returns the content of the regular file name, in buf if its capacity
// suffices. It returns TOO_LARGE for a file of more than limit bytes, also if the file
// grows while it is read. It creates no os.File, which makes it faster than Open.
func (d *Dir) ReadFile(name string, buf []byte, limit int64) ([]byte, Stat, error) {
	fd, st, err := d.openRegular(name)
	if err != nil {
		return nil, Stat{}, err
	}
	defer unix.Close(fd)
	if st.Size > limit {
		return nil, st, d.errTooLarge(name, limit)
	}
	buf = buf[:0]
	if need := st.Size + 1; int64(cap(buf)) < need {
		buf = make([]byte, 0, max(need, readFileStart))
	}
	for {
		if int64(len(buf)) > limit {
			return nil, st, d.errTooLarge(name, limit)
		}
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := retryInterrupted(func() (int, error) { return unix.Read(fd, buf[len(buf):cap(buf)]) })
		if err != nil {
			return nil, st, &fs.PathError{Op: "read", Path: d.join(name), Err: err}
		}
		short := n < cap(buf)-len(buf)
		buf = buf[:len(buf)+n]
		// The buffer was larger than the file and the read returned exactly the file:
		// no second read is needed to find its end.
		if n == 0 || short && int64(len(buf)) == st.Size && st.Size <= limit {
			return buf, st, nil
		}
	}
}

// Stat returns the metadata of the directory itself.
func (d *Dir) Stat() (Stat, error) {
	var raw unix.Stat_t
	var err error
	if fd := int(d.fd.Load()); d.cached {
		err = fstatCached(fd, &raw)
	} else {
		err = unix.Fstat(fd, &raw)
	}
	if err != nil {
		return Stat{}, &fs.PathError{Op: "stat", Path: d.path, Err: err}
	}
	return statOf(&raw), nil
}

// Lstat returns the metadata of the entry name; for a link, those of the link itself.
// name must be a single component: for another name it returns INVALID_PARAMS, otherwise
// a *fs.PathError.
func (d *Dir) Lstat(name string) (Stat, error) {
	if err := checkComponent(name); err != nil {
		return Stat{}, err
	}
	var raw unix.Stat_t
	if err := unix.Fstatat(int(d.fd.Load()), name, &raw, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return Stat{}, &fs.PathError{Op: "lstat", Path: d.join(name), Err: err}
	}
	return statOf(&raw), nil
}

// Readlink returns the target of the link name as it is stored, which may be relative.
// name must be a single component. The error is a *fs.PathError for an entry that is
// missing or no link.
func (d *Dir) Readlink(name string) (string, error) {
	if err := checkComponent(name); err != nil {
		return "", err
	}
	for size := 256; ; size *= 4 {
		buf := make([]byte, size)
		n, err := unix.Readlinkat(int(d.fd.Load()), name, buf)
		if err != nil {
			return "", &fs.PathError{Op: "readlink", Path: d.join(name), Err: err}
		}
		if n < size {
			return string(buf[:n]), nil
		}
	}
}

// Rewind makes the next read of the directory start at its first entry.
func (d *Dir) Rewind() error { return d.seek(0) }

// seek sets the position of the next read of entries. offset is a position from
// the kernel (getdents(2), d_off), not a number of entries; 0 is the first
// entry.
func (d *Dir) seek(offset int64) error {
	if _, err := unix.Seek(int(d.fd.Load()), offset, unix.SEEK_SET); err != nil {
		return &fs.PathError{Op: "seek", Path: d.path, Err: err}
	}
	return nil
}

// retryInterrupted repeats a system call until no signal interrupts it (EINTR),
// and returns its results.
func retryInterrupted(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != unix.EINTR {
			return n, err
		}
	}
}

// IsLocal reports whether the directory is known to be on a file system of this machine,
// whose clock sets its times. Then every change of an entry changes the directory's
// times at once. It is false for network file systems and FUSE.
func (d *Dir) IsLocal() bool {
	var st unix.Statfs_t
	if unix.Fstatfs(int(d.fd.Load()), &st) != nil {
		return false
	}
	switch uint32(st.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC,
		unix.TMPFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC, zfsMagic, bcachefsMagic:
		return true
	}
	return false
}

// Magic numbers that golang.org/x/sys lacks, from the file systems' sources.
const (
	zfsMagic      = 0x2fc12fc1
	bcachefsMagic = 0xca451a4e
)

// isPseudoFile reports whether fd is on a file system that shows the state of
// the kernel or of devices, or whose type cannot be read.
func isPseudoFile(fd int) bool {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return true
	}
	return isPseudoType(&st)
}
