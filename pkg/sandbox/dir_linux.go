package sandbox

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

const pathSeparator = "/"

// Dir is an open directory. Its methods take the name of one entry, never
// follow a link, and so cannot leave the directory. They may be used from
// several goroutines, reading its entries from one at a time.
type Dir struct {
	fd   atomic.Int64 // -1 when closed
	path string
}

// newDir takes over fd, a directory opened for reading; path is its absolute
// path with links resolved.
func newDir(fd int, path string) *Dir {
	d := &Dir{path: path}
	d.fd.Store(int64(fd))
	return d
}

// newDirRoot takes over root, for kernels without openat2.
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

// statOfInfo converts the standard library's form.
func statOfInfo(info fs.FileInfo) Stat {
	if raw, ok := info.Sys().(*syscall.Stat_t); ok {
		st := Stat{
			Mode: info.Mode(), Size: raw.Size, ModTime: info.ModTime(),
			ChangeTime: time.Unix(int64(raw.Ctim.Sec), int64(raw.Ctim.Nsec)),
			Dev:        uint64(raw.Dev), Ino: raw.Ino, Nlink: uint64(raw.Nlink), UID: raw.Uid,
		}
		return st
	}
	return Stat{Mode: info.Mode(), Size: info.Size(), ModTime: info.ModTime(), ChangeTime: info.ModTime()}
}

// Close frees the descriptor. A second Close is fs.ErrClosed.
func (d *Dir) Close() error {
	fd := d.fd.Swap(-1)
	if fd < 0 {
		return fs.ErrClosed
	}
	return unix.Close(int(fd))
}

// sameTree is how a child is opened: not through a link, and not onto
// another file system, which is looked at first.
const sameTree = unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

const openDirFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// OpenDir opens the sub-directory name: NOT_A_DIRECTORY for anything else,
// also for a link to a directory, and SPECIAL_FILE where a pseudo file
// system (proc, sysfs, devices) is mounted on it.
func (d *Dir) OpenDir(name string) (*Dir, error) {
	if err := checkComponent(name); err != nil {
		return nil, err
	}
	how := unix.OpenHow{Flags: openDirFlags, Resolve: sameTree}
	fd, err := retry(func() (int, error) { return unix.Openat2(int(d.fd.Load()), name, &how) })
	switch err {
	case nil:
		return newDir(fd, d.join(name)), nil
	case unix.EXDEV, unix.ENOSYS, unix.EPERM, unix.EAGAIN:
		return d.openMounted(name) // another file system, or no openat2 here
	}
	return nil, d.dirError("open", name, err)
}

// openMounted opens a directory that may be a mount point.
func (d *Dir) openMounted(name string) (*Dir, error) {
	fd, err := retry(func() (int, error) { return unix.Openat(int(d.fd.Load()), name, openDirFlags, 0) })
	if err != nil {
		return nil, d.dirError("open", name, err)
	}
	if pseudoFD(fd) {
		unix.Close(fd)
		return nil, toolerr.New(toolerr.SpecialFile, "%s shows the system's state, not files: it is not entered", EscapeName(d.join(name)))
	}
	return newDir(fd, d.join(name)), nil
}

// dirError tells a link apart from the other things that are no directory.
func (d *Dir) dirError(op, name string, err error) error {
	if err == unix.ELOOP {
		err = unix.ENOTDIR // O_NOFOLLOW met a link
	}
	return &fs.PathError{Op: op, Path: d.join(name), Err: err}
}

const openFileFlags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC

// openRegular opens a regular file and nothing else. A fifo does not block
// it, since it is opened without waiting for a writer.
func (d *Dir) openRegular(name string) (int, Stat, error) {
	if err := checkComponent(name); err != nil {
		return -1, Stat{}, err
	}
	fd, err := retry(func() (int, error) { return unix.Openat(int(d.fd.Load()), name, openFileFlags, 0) })
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
		return fd, st, nil
	case st.Mode.IsDir():
		err = &fs.PathError{Op: "open", Path: d.join(name), Err: unix.EISDIR}
	default:
		err = errSpecial(d.join(name), st.Mode)
	}
	unix.Close(fd)
	return -1, Stat{}, err
}

// Open opens the regular file name for reading. Links and special files are
// SPECIAL_FILE; nothing blocks.
func (d *Dir) Open(name string) (*os.File, Stat, error) {
	fd, st, err := d.openRegular(name)
	if err != nil {
		return nil, Stat{}, err
	}
	return os.NewFile(uintptr(fd), d.join(name)), st, nil
}

// ReadFile returns the content of the regular file name, using buf's space
// where it suffices. A file over limit bytes is TOO_LARGE, also when it grows
// while it is read. It makes no os.File, which is what makes it fast.
func (d *Dir) ReadFile(name string, buf []byte, limit int64) ([]byte, Stat, error) {
	fd, st, err := d.openRegular(name)
	if err != nil {
		return nil, Stat{}, err
	}
	defer unix.Close(fd)
	buf = buf[:0]
	if need := min(st.Size, limit) + 1; int64(cap(buf)) < need {
		buf = make([]byte, 0, max(need, readFileStart))
	}
	for {
		if int64(len(buf)) > limit {
			return nil, st, toolerr.New(toolerr.TooLarge, "%s is larger than %d bytes", EscapeName(d.join(name)), limit)
		}
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := retry(func() (int, error) { return unix.Read(fd, buf[len(buf):cap(buf)]) })
		if err != nil {
			return nil, st, &fs.PathError{Op: "read", Path: d.join(name), Err: err}
		}
		if n == 0 {
			return buf, st, nil
		}
		buf = buf[:len(buf)+n]
	}
}

// Stat returns what the system tells about the directory itself.
func (d *Dir) Stat() (Stat, error) {
	var raw unix.Stat_t
	if err := unix.Fstat(int(d.fd.Load()), &raw); err != nil {
		return Stat{}, &fs.PathError{Op: "stat", Path: d.path, Err: err}
	}
	return statOf(&raw), nil
}

// Lstat returns what the system tells about an entry, a link itself.
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

// Readlink returns the target of a link as it is written.
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

// Rewind makes the next reading start at the first entry.
func (d *Dir) Rewind() error { return d.seek(0) }

func (d *Dir) seek(offset int64) error {
	if _, err := unix.Seek(int(d.fd.Load()), offset, unix.SEEK_SET); err != nil {
		return &fs.PathError{Op: "seek", Path: d.path, Err: err}
	}
	return nil
}

// retry repeats a system call that a signal interrupted.
func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != unix.EINTR {
			return n, err
		}
	}
}

// pseudoFD reports whether fd lies in a file system that shows the state of
// kernel or devices.
func pseudoFD(fd int) bool {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return false
	}
	return pseudoType(&st)
}

// statOf converts the system's form.
func statOf(raw *unix.Stat_t) Stat {
	return Stat{
		Mode: modeOf(raw.Mode), Size: raw.Size,
		ModTime:    time.Unix(int64(raw.Mtim.Sec), int64(raw.Mtim.Nsec)),
		ChangeTime: time.Unix(int64(raw.Ctim.Sec), int64(raw.Ctim.Nsec)),
		Dev:        uint64(raw.Dev), Ino: raw.Ino, Nlink: uint64(raw.Nlink), UID: raw.Uid,
	}
}

func modeOf(raw uint32) fs.FileMode {
	mode := fs.FileMode(raw & 0o777)
	if raw&unix.S_ISUID != 0 {
		mode |= fs.ModeSetuid
	}
	if raw&unix.S_ISGID != 0 {
		mode |= fs.ModeSetgid
	}
	if raw&unix.S_ISVTX != 0 {
		mode |= fs.ModeSticky
	}
	switch raw & unix.S_IFMT {
	case unix.S_IFDIR:
		mode |= fs.ModeDir
	case unix.S_IFLNK:
		mode |= fs.ModeSymlink
	case unix.S_IFIFO:
		mode |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		mode |= fs.ModeSocket
	case unix.S_IFCHR:
		mode |= fs.ModeDevice | fs.ModeCharDevice
	case unix.S_IFBLK:
		mode |= fs.ModeDevice
	}
	return mode
}

// typeOf converts the type of a raw directory entry.
func typeOf(raw byte) fs.FileMode {
	switch raw {
	case unix.DT_REG:
		return 0
	case unix.DT_DIR:
		return fs.ModeDir
	case unix.DT_LNK:
		return fs.ModeSymlink
	case unix.DT_FIFO:
		return fs.ModeNamedPipe
	case unix.DT_SOCK:
		return fs.ModeSocket
	case unix.DT_CHR:
		return fs.ModeDevice | fs.ModeCharDevice
	case unix.DT_BLK:
		return fs.ModeDevice
	}
	return TypeUnknown
}

// rawBuffer is the size of one getdents call: about a thousand entries.
const rawBuffer = 32 << 10

// DirReader reads directories, keeping its buffers between them. It serves
// one goroutine.
type DirReader struct {
	raw   []byte
	names []byte
	ends  []int32
}

// Read appends to buf the entries that follow the last one read from d,
// unsorted, without "." and "..", each name preceded by prefix: with a prefix
// "dir/" the names are paths that share one allocation. With limit > 0 it
// stops at limit entries or a mebibyte of names, and done is false when there
// may be more.
func (r *DirReader) Read(d *Dir, prefix string, buf []DirEntry, limit int) (entries []DirEntry, done bool, err error) {
	if r.raw == nil {
		r.raw = make([]byte, rawBuffer)
	}
	first := len(buf)
	r.names, r.ends = r.names[:0], r.ends[:0]
	for !done && err == nil && !r.full(limit) {
		var n int
		n, err = retry(func() (int, error) { return unix.Getdents(int(d.fd.Load()), r.raw) })
		if err != nil {
			err = &fs.PathError{Op: "read", Path: d.path, Err: err}
			break
		}
		if n <= 0 {
			done = true
			break
		}
		buf, err = r.parse(d, r.raw[:n], prefix, buf, limit)
	}
	all := string(r.names)
	start := int32(0)
	for i, end := range r.ends {
		buf[first+i].Name = all[start:end]
		start = end
	}
	return buf, done, err
}

// maxNames bounds the bytes of names that a limited Read gathers, which
// matters where a deep directory's prefix is long.
const maxNames = 1 << 20

func (r *DirReader) full(limit int) bool {
	return limit > 0 && (len(r.ends) >= limit || len(r.names) >= maxNames)
}

// parse takes the entries out of one getdents answer. When it has enough it
// moves the directory's position to just behind the last one taken.
func (r *DirReader) parse(d *Dir, raw []byte, prefix string, buf []DirEntry, limit int) ([]DirEntry, error) {
	const offOffset, lenOffset, typeOffset, nameOffset = 8, 16, 18, 19
	for len(raw) >= nameOffset {
		size := int(binary.NativeEndian.Uint16(raw[lenOffset:]))
		if size < nameOffset || size > len(raw) {
			return buf, &fs.PathError{Op: "read", Path: d.path, Err: errors.New("malformed directory entry")}
		}
		record := raw[:size]
		raw = raw[size:]
		name := record[nameOffset:]
		name = name[:clen(name)]
		if binary.NativeEndian.Uint64(record) == 0 || string(name) == "." || string(name) == ".." {
			continue
		}
		r.names = append(append(r.names, prefix...), name...)
		r.ends = append(r.ends, int32(len(r.names)))
		buf = append(buf, DirEntry{Type: typeOf(record[typeOffset])})
		if len(raw) > 0 && r.full(limit) {
			return buf, d.seek(int64(binary.NativeEndian.Uint64(record[offOffset:])))
		}
	}
	return buf, nil
}

// clen returns the length of a NUL-terminated name.
func clen(name []byte) int {
	for i, c := range name {
		if c == 0 {
			return i
		}
	}
	return len(name)
}
