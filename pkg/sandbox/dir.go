package sandbox

import (
	"io/fs"
	"math"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/secret"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Stat holds the metadata of a file. Device, inode, links and owner are 0 on systems
// without them.
type Stat struct {
	Mode            fs.FileMode
	Size            int64
	ModTime         time.Time
	ChangeTime      time.Time
	Dev, Ino, Nlink uint64
	UID, GID        uint32
}

// ModNano returns the modification time in nanoseconds since 1970, for comparing
// files. Years before 1678 and after 2262, which occur in archives and with wrong
// clocks, become the first and the last possible time.
func (s Stat) ModNano() int64 {
	switch seconds := s.ModTime.Unix(); {
	case seconds >= math.MaxInt64/int64(time.Second):
		return math.MaxInt64
	case seconds <= math.MinInt64/int64(time.Second):
		return math.MinInt64
	}
	return s.ModTime.UnixNano()
}

// DirEntry is a name in a directory. Type holds the type bits of the mode, or
// fs.ModeIrregular if only Lstat can tell the type. FS.DeniedIn and FS.Masked are
// false for the entry unless the entry or its directory is MaybeSecret.
type DirEntry struct {
	Name        string
	Type        fs.FileMode
	MaybeSecret bool
}

// IsDir reports whether the entry is a directory. It is false for a link to a
// directory.
func (e DirEntry) IsDir() bool { return e.Type.IsDir() }

// TypeUnknown is the Type of an entry on a file system that does not report types.
const TypeUnknown = fs.ModeIrregular

// readFileStart is the smallest buffer that ReadFile allocates, in bytes.
const readFileStart = 512

// checkComponent returns INVALID_PARAMS for anything except the name of one
// entry ("", ".", ".." and names with a slash or NUL are refused), so that no
// argument of a Dir's method leads out of the directory.
func checkComponent(name string) error {
	if name == "" || name == "." || name == ".." || strings.IndexByte(name, '/') >= 0 || strings.IndexByte(name, 0) >= 0 {
		return toolerr.New(toolerr.InvalidParams, "%q is not the name of a directory entry: give one name without separators", name)
	}
	return nil
}

// errSpecial returns SPECIAL_FILE for a fifo, socket or device at path.
func errSpecial(path string, mode fs.FileMode) error {
	return toolerr.New(toolerr.SpecialFile, "%s is a %s: only regular files are read; name another file", pathname.Escape(path), typeNameOf(mode))
}

// errTooLarge returns TOO_LARGE for the entry name, a file of more than limit
// bytes.
func (d *Dir) errTooLarge(name string, limit int64) error {
	return toolerr.New(toolerr.TooLarge, "%s is larger than %d bytes", pathname.Escape(d.join(name)), limit)
}

// typeNameOf returns the type of a file in words, such as "named pipe".
func typeNameOf(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		return "named pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	case mode&fs.ModeDevice != 0:
		return "device"
	case mode.IsDir():
		return "directory"
	case mode.IsRegular():
		return "file"
	}
	return "special file"
}

// join returns the absolute path of the entry name.
func (d *Dir) join(name string) string {
	if strings.HasSuffix(d.path, pathSeparator) {
		return d.path + name
	}
	return d.path + pathSeparator + name
}

// MaybeSecret reports whether FS.DeniedIn can be true for entries of the directory,
// because of the directory's name.
func (d *Dir) MaybeSecret() bool { return secret.MaybeIn(d.path) }

// Path returns the absolute path that the directory had when it was opened, with links
// resolved. It is for messages and for finding parent directories; the methods use the
// descriptor.
func (d *Dir) Path() string { return d.path }

// ReadAll appends all entries of the directory to buf, unsorted and without "." and "..".
// On an error it returns the entries that it has read so far.
func (d *Dir) ReadAll(buf []DirEntry) ([]DirEntry, error) {
	var r DirReader
	if err := d.Rewind(); err != nil {
		return buf, err
	}
	buf, _, err := r.Read(d, "", buf, 0)
	return buf, err
}
