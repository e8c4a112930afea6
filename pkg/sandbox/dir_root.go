//go:build !linux

package sandbox

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/secret"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// pathSeparator separates the components of a path on this system.
const pathSeparator = string(os.PathSeparator)

// Dir is an open directory. Its methods take the name of one entry, never
// follow a link, and so cannot leave the directory. They may be used from
// several goroutines, reading its entries from one at a time.
type Dir struct {
	root   *os.Root
	path   string
	linked *linkedSecrets // FS.linked

	closed  atomic.Bool
	mu      sync.Mutex
	listing *os.File // open while its entries are being read
}

// newDirRoot returns a Dir that owns root and closes it. path is its absolute
// path with links resolved.
func newDirRoot(root *os.Root, path string) (*Dir, error) {
	return &Dir{root: root, path: path}, nil
}

// Close closes the descriptors. A second Close returns fs.ErrClosed.
func (d *Dir) Close() error {
	if d.closed.Swap(true) {
		return fs.ErrClosed // os.Root would return nil
	}
	return errors.Join(d.Rewind(), d.root.Close())
}

// OpenDir opens the subdirectory name. It returns NOT_A_DIRECTORY for anything else,
// including a link to a directory.
func (d *Dir) OpenDir(name string) (*Dir, error) {
	if err := d.checkNotDenied(name); err != nil {
		return nil, err
	}
	before, err := d.lstat(name)
	if err != nil {
		return nil, err
	}
	if !before.IsDir() {
		return nil, toolerr.New(toolerr.NotADirectory, "%s is a %s, not a directory", pathname.Escape(d.join(name)), typeNameOf(before.Mode()))
	}
	child, err := d.root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	after, err := child.Stat(".")
	if err == nil && !os.SameFile(before, after) {
		// os.Root.OpenRoot follows links inside the root: another program has put a
		// link here after the check.
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

// Open opens the regular file name for reading. It returns IS_A_DIRECTORY for a
// directory and SPECIAL_FILE for links and special files, and never blocks.
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

// ReadFile returns the content of the regular file name, in buf if its capacity
// suffices. It returns TOO_LARGE for a file of more than limit bytes, also if the file
// grows while it is read.
func (d *Dir) ReadFile(name string, buf []byte, limit int64) ([]byte, Stat, error) {
	f, st, err := d.Open(name)
	if err != nil {
		return nil, Stat{}, err
	}
	defer f.Close()
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

// Stat returns the metadata of the directory itself.
func (d *Dir) Stat() (Stat, error) {
	info, err := d.root.Stat(".")
	if err != nil {
		return Stat{}, err
	}
	return statOfInfo(info), nil
}

// Lstat returns the metadata of the entry name; for a link, those of the link itself.
// name must be a single component.
func (d *Dir) Lstat(name string) (Stat, error) {
	info, err := d.lstat(name)
	if err != nil {
		return Stat{}, err
	}
	return statOfInfo(info), nil
}

// lstat returns the metadata of an entry; for a link, those of the link. It
// returns an error for a name that is not a single component.
func (d *Dir) lstat(name string) (fs.FileInfo, error) {
	if err := checkComponent(name); err != nil {
		return nil, err
	}
	return d.root.Lstat(name)
}

// Readlink returns the target of the link name as it is stored, which may be relative.
// name must be a single component. The error is a *fs.PathError for an entry that is
// missing or no link.
func (d *Dir) Readlink(name string) (string, error) {
	if err := checkComponent(name); err != nil {
		return "", err
	}
	return d.root.Readlink(name)
}

// Rewind makes the next read of the directory start at its first entry.
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

// list returns the open listing. Without an open listing, it opens one at the
// first entry.
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

// DirReader reads directories. Only one goroutine may use it at a time.
type DirReader struct{}

// maxNames bounds the bytes of names that a Read with a limit returns. The bound
// matters in deep directories, whose prefix is long.
const maxNames = 1 << 20

// readBatch is the number of entries read with one system call.
const readBatch = 512

// Read appends the entries after the last one read from d to buf, unsorted, without
// "." and "..", each name after prefix. If limit > 0, it stops after limit entries or
// 1 MiB of names; done is false if there may be more entries.
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
			// Bound the names before reading: entries that are read cannot be put
			// back.
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

// IsLocal reports whether the directory is known to be on a file system of this machine,
// whose clock sets its times.
func (d *Dir) IsLocal() bool { return isLocalPath(d.path) }
