package sandbox

import (
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// Every object is opened with O_PATH first, which does not block at a fifo and does
// not start a device. readFlags open a regular file, and do not block if another file
// has replaced it.
const readFlags = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC

// openNonblock is added to the flags with which os.Root opens a file.
const openNonblock = unix.O_NONBLOCK | unix.O_NOCTTY

// haveOpenat2 reports whether openat2 works. Containers may refuse it, and kernels
// before 5.6 lack it. After any error os.Root is used.
var haveOpenat2 = sync.OnceValue(func() bool {
	fd, err := unix.Openat2(unix.AT_FDCWD, "/", &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return false
	}
	return unix.Close(fd) == nil
})

// openRootObject opens the directory path as a root: with openat2, or with os.Root if openat2
// does not work.
func openRootObject(path string) (object, error) {
	if haveOpenat2() {
		return openKernelRoot(path)
	}
	return openPortableRoot(path)
}

// kernelObject is an object opened with O_PATH through openat2(2). It owns the
// descriptor.
type kernelObject struct {
	fd int
	st unix.Stat_t
	// root and rel are the path of the object, without links. Without /proc, the
	// object is opened again by this path.
	root *kernelObject
	rel  string
}

// openKernelRoot opens the directory at path as a root with openat2(2). The
// garbage collector closes it, since calls may still use it when the roots
// change.
func openKernelRoot(path string) (object, error) {
	root, err := openat2(unix.AT_FDCWD, path, unix.O_DIRECTORY, unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_NO_MAGICLINKS)
	if err != nil {
		return nil, err
	}
	runtime.SetFinalizer(root, (*kernelObject).close)
	root.rel = "."
	return root, nil
}

// openat2 opens name in the directory dir with O_PATH, the open flags flags and
// the resolve flags resolve (openat2(2)), and reads its metadata.
func openat2(dir int, name string, flags, resolve uint64) (*kernelObject, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | flags, Resolve: resolve}
	fd, err := retryInterrupted(func() (int, error) { return unix.Openat2(dir, name, &how) })
	if err != nil {
		return nil, err
	}
	h := &kernelObject{fd: fd}
	if err := unix.Fstat(fd, &h.st); err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

// stat implements object.
func (h *kernelObject) stat() Stat { return statOf(&h.st) }

// isSameFile implements object: it compares device and inode.
func (h *kernelObject) isSameFile(info fs.FileInfo) bool {
	st := statOfInfo(info)
	return st.Dev == uint64(h.st.Dev) && st.Ino == h.st.Ino
}

// isPseudo implements object: it reports whether the file is on a pseudo file system or
// in /dev.
func (h *kernelObject) isPseudo() bool {
	defer runtime.KeepAlive(h)
	return isPseudoFile(h.fd) || devDevice() != 0 && uint64(h.st.Dev) == devDevice()
}

// beneathFlags are the resolve flags for every path in a root.
const beneathFlags = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS

// openChild implements object. It returns errChanged if the entry was moved meanwhile.
func (h *kernelObject) openChild(name string) (object, error) {
	defer runtime.KeepAlive(h)
	c, err := openat2(h.fd, name, unix.O_NOFOLLOW, beneathFlags)
	if err == unix.EXDEV || err == unix.EAGAIN {
		err = errChanged // moved while the kernel resolved the path
	}
	if err != nil {
		return nil, err
	}
	c.root, c.rel = h.rootOf(), name
	if h.rel != "." {
		c.rel = h.rel + "/" + name
	}
	return c, nil
}

// openDeep implements object.
func (h *kernelObject) openDeep(rel string) (object, error) {
	defer runtime.KeepAlive(h)
	c, err := openat2(h.fd, rel, 0, beneathFlags|unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return nil, err
	}
	c.root, c.rel = h.rootOf(), rel
	return c, nil
}

// rootOf returns the object of the root that h was found in; h itself for a root.
func (h *kernelObject) rootOf() *kernelObject {
	if h.root != nil {
		return h.root
	}
	return h
}

// readlink implements object.
func (h *kernelObject) readlink() (string, error) {
	for size := 256; ; size *= 4 {
		buf := make([]byte, size)
		n, err := unix.Readlinkat(h.fd, "", buf)
		if err != nil {
			return "", err
		}
		if n < size {
			return string(buf[:n]), nil
		}
	}
}

// openFile implements object.
func (h *kernelObject) openFile() (*os.File, Stat, error) { return h.openThroughProc(procSelfFD()) }

// openThroughProc opens the descriptor's object through /proc/self/fd. It does not use
// the path, so another program cannot substitute another object. proc is a descriptor
// of /proc/self/fd, negative without /proc.
func (h *kernelObject) openThroughProc(proc int) (*os.File, Stat, error) {
	fd, err := retryInterrupted(func() (int, error) {
		if proc < 0 {
			return h.reopenByPath(readFlags)
		}
		return unix.Openat(proc, strconv.Itoa(h.fd), readFlags, 0)
	})
	if proc < 0 && (err == unix.ENOENT || err == unix.ENOTDIR || err == unix.ELOOP) {
		err = errChanged
	}
	if err != nil {
		return nil, Stat{}, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return nil, Stat{}, err
	}
	if st.Dev != h.st.Dev || st.Ino != h.st.Ino || st.Mode&unix.S_IFMT != unix.S_IFREG {
		unix.Close(fd)
		return nil, Stat{}, errChanged
	}
	return os.NewFile(uintptr(fd), h.rel), statOf(&st), nil
}

// procSelfFD returns a descriptor of /proc/self/fd, which it opens once; -1 if /proc
// is missing or is not the kernel's.
var procSelfFD = sync.OnceValue(func() int {
	fd, err := unix.Open("/proc/self/fd", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	var st unix.Statfs_t
	if unix.Fstatfs(fd, &st) != nil || st.Type != unix.PROC_SUPER_MAGIC {
		unix.Close(fd)
		return -1
	}
	return fd
})

// reopenByPath opens the file that is now at the object's path, which may be another
// one. The caller compares its device and inode with h.st: they are not reused while
// h.fd is open.
func (h *kernelObject) reopenByPath(flags uint64) (int, error) {
	root := h.rootOf()
	defer runtime.KeepAlive(root)
	how := unix.OpenHow{Flags: flags | unix.O_NOFOLLOW, Resolve: beneathFlags | unix.RESOLVE_NO_SYMLINKS}
	return unix.Openat2(root.fd, h.rel, &how)
}

// openReadableDirs opens the directory for reading its entries.
func (h *kernelObject) openReadable() (int, error) {
	defer runtime.KeepAlive(h)
	return retryInterrupted(func() (int, error) { return unix.Openat(h.fd, ".", openDirFlags, 0) })
}

// openDir implements object.
func (h *kernelObject) openDir(path string) (*Dir, error) {
	fd, err := h.openReadable()
	if err != nil {
		return nil, err
	}
	return newDir(fd, path), nil
}

// readNames implements object. It returns nil if the directory cannot be read.
func (h *kernelObject) readNames(limit int) []string {
	fd, err := h.openReadable()
	if err != nil {
		return nil
	}
	return readNames(os.NewFile(uintptr(fd), h.rel), limit)
}

// close implements object. A second close does nothing.
func (h *kernelObject) close() {
	if h.fd >= 0 {
		unix.Close(h.fd)
		h.fd = -1
	}
}
