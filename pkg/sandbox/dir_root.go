//go:build !linux

package sandbox

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/secret"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

const pathSeparator = string(os.PathSeparator)

// Dir is an open directory. Its methods take the name of one entry, never
// follow a link, and so cannot leave the directory. They may be used from
// several goroutines, reading its entries from one at a time.
type Dir struct {
	root   *os.Root
	path   string
	linked *linkedSecrets // FS.linked

	mu      sync.Mutex
	listing *os.File // open while its entries are being read
}

// newDirRoot takes over root; path is its absolute path with links resolved.
func newDirRoot(root *os.Root, path string) (*Dir, error) {
	return &Dir{root: root, path: path}, nil
}

// Close frees the descriptors. A second Close is an error.
func (d *Dir) Close() error {
	return errors.Join(d.Rewind(), d.root.Close())
}

// OpenDir opens the sub-directory name: NOT_A_DIRECTORY for anything else,
// also for a link to a directory.
func (d *Dir) OpenDir(name string) (*Dir, error) {
	if err := d.checkNotDenied(name); err != nil {
		return nil, err
	}
	before, err := d.lstat(name)
	if err != nil {
		return nil, err
	}
	if !before.IsDir() {
		return nil, toolerr.New(toolerr.NotADirectory, "%s is a %s, not a directory", pathname.Escape(d.join(name)), kindOf(before.Mode()))
	}
	child, err := d.root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	after, err := child.Stat(".")
	if err == nil && !os.SameFile(before, after) {
		// OpenRoot follows links inside the root: somebody put one here
		// after we looked.
		err = toolerr.New(toolerr.NotADirectory, "%s was replaced while it was opened: try again", pathname.Escape(d.join(name)))
	}
	if err != nil {
		return nil, errors.Join(err, child.Close())
	}
	below, err := newDirRoot(child, d.join(name))
	if err == nil {
		below.linked = d.linked
	}
	return below, err
}

// Open opens the regular file name for reading. Links and special files are
// SPECIAL_FILE; nothing blocks.
func (d *Dir) Open(name string) (*os.File, Stat, error) {
	if err := d.checkNotDenied(name); err != nil {
		return nil, Stat{}, err
	}
	before, err := d.lstat(name)
	if err != nil {
		return nil, Stat{}, err
	}
	if before.IsDir() {
		return nil, Stat{}, toolerr.New(toolerr.IsADirectory, "%s is a directory", pathname.Escape(d.join(name)))
	}
	if !before.Mode().IsRegular() {
		return nil, Stat{}, errSpecial(d.join(name), before.Mode())
	}
	f, err := d.root.OpenFile(name, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, Stat{}, err
	}
	after, err := f.Stat()
	if err == nil && !os.SameFile(before, after) {
		err = toolerr.New(toolerr.SpecialFile, "%s was replaced while it was opened: try again", pathname.Escape(d.join(name)))
	}
	if err == nil {
		err = d.checkFileNotDenied(name, statOfInfo(after))
	}
	if err != nil {
		return nil, Stat{}, errors.Join(err, f.Close())
	}
	return f, statOfInfo(after), nil
}

// ReadFile returns the content of the regular file name, using buf's space
// where it suffices. A file over limit bytes is TOO_LARGE, also when it grows
// while it is read.
func (d *Dir) ReadFile(name string, buf []byte, limit int64) ([]byte, Stat, error) {
	f, st, err := d.Open(name)
	if err != nil {
		return nil, Stat{}, err
	}
	defer f.Close()
	if st.Size > limit {
		return nil, st, d.tooLarge(name, limit)
	}
	buf = buf[:0]
	if need := st.Size + 1; int64(cap(buf)) < need {
		buf = make([]byte, 0, max(need, readFileStart))
	}
	for {
		if int64(len(buf)) > limit {
			return nil, st, d.tooLarge(name, limit)
		}
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := f.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			return buf, st, nil
		}
		if err != nil {
			return nil, st, err
		}
	}
}

// Stat returns what the system tells about the directory itself.
func (d *Dir) Stat() (Stat, error) {
	info, err := d.root.Stat(".")
	if err != nil {
		return Stat{}, err
	}
	return statOfInfo(info), nil
}

// Lstat returns what the system tells about an entry, a link itself.
func (d *Dir) Lstat(name string) (Stat, error) {
	info, err := d.lstat(name)
	if err != nil {
		return Stat{}, err
	}
	return statOfInfo(info), nil
}

func (d *Dir) lstat(name string) (fs.FileInfo, error) {
	if err := checkComponent(name); err != nil {
		return nil, err
	}
	return d.root.Lstat(name)
}

// Readlink returns the target of a link as it is written.
func (d *Dir) Readlink(name string) (string, error) {
	if err := checkComponent(name); err != nil {
		return "", err
	}
	return d.root.Readlink(name)
}

// Rewind makes the next reading start at the first entry.
func (d *Dir) Rewind() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.listing
	d.listing = nil
	if f == nil {
		return nil
	}
	return f.Close()
}

// list returns the open listing, opening it at the first entry if need be.
func (d *Dir) list() (*os.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.listing == nil {
		f, err := d.root.Open(".")
		if err != nil {
			return nil, err
		}
		d.listing = f
	}
	return d.listing, nil
}

// DirReader reads directories. It serves one goroutine.
type DirReader struct{}

// maxNames bounds the bytes of names that a limited Read gathers, which
// matters where a deep directory's prefix is long.
const maxNames = 1 << 20

// readBatch is the number of entries read with one system call.
const readBatch = 512

// Read appends to buf the entries that follow the last one read from d,
// unsorted, without "." and "..", each name preceded by prefix. With limit > 0
// it stops at limit entries or a mebibyte of names, and done is false when
// there may be more.
func (r *DirReader) Read(d *Dir, prefix string, buf []DirEntry, limit int) (entries []DirEntry, done bool, err error) {
	f, err := d.list()
	if err != nil {
		return buf, false, err
	}
	first, names := len(buf), 0
	for {
		batch := readBatch
		if limit > 0 {
			if left := limit - (len(buf) - first); left <= 0 || names >= maxNames {
				return buf, false, nil
			} else {
				batch = min(batch, left)
			}
			// Names are bounded before they are read, not after: what was
			// read cannot be put back.
			batch = min(batch, 1+(maxNames-names)/(len(prefix)+256))
		}
		list, err := f.ReadDir(batch)
		for _, e := range list {
			buf = append(buf, DirEntry{Name: prefix + e.Name(), Type: e.Type(), MaybeSecret: secret.MaybeEntry(e.Name()) || d.isLinkedName(e.Name())})
			names += len(prefix) + len(e.Name())
		}
		if err == io.EOF {
			return buf, true, nil
		}
		if err != nil {
			return buf, false, err
		}
	}
}

// Local reports whether the directory is on a file system whose times this
// machine keeps. It says no where it is not known.
func (d *Dir) Local() bool { return localPath(d.path) }
