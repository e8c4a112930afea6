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

// Stat holds the metadata of a file. Device, inode, links and owner are zero on
// systems without them.
type Stat struct {
	Mode            fs.FileMode
	Size            int64
	ModTime         time.Time
	ChangeTime      time.Time
	Dev, Ino, Nlink uint64
	UID, GID        uint32
}

// ModNano is the modification time in nanoseconds since 1970, to compare files
// by: years before 1678 and after 2262, which archives and broken clocks leave
// behind, are the first and the last there are.
func (s Stat) ModNano() int64 {
	switch seconds := s.ModTime.Unix(); {
	case seconds >= math.MaxInt64/int64(time.Second):
		return math.MaxInt64
	case seconds <= math.MinInt64/int64(time.Second):
		return math.MinInt64
	}
	return s.ModTime.UnixNano()
}

// DirEntry is a name in a directory. Type holds the type bits of the mode;
// it is fs.ModeIrregular where only Lstat can tell. Unless the entry or its
// directory is MaybeSecret, FS.DeniedIn and FS.Masked have nothing against it.
type DirEntry struct {
	Name        string
	Type        fs.FileMode
	MaybeSecret bool
}

// IsDir reports whether the entry is a directory (a link to one is not).
func (e DirEntry) IsDir() bool { return e.Type.IsDir() }

// TypeUnknown is the Type of an entry whose file system does not tell it.
const TypeUnknown = fs.ModeIrregular

// readFileStart is the least space ReadFile makes.
const readFileStart = 512

// checkComponent refuses what is not the name of one entry, so that nothing
// given to a Dir's methods can lead out of the directory.
func checkComponent(name string) error {
	if name == "" || name == "." || name == ".." || strings.IndexByte(name, '/') >= 0 || strings.IndexByte(name, 0) >= 0 {
		return toolerr.New(toolerr.InvalidParams, "%q is not the name of a directory entry: give one name without separators", name)
	}
	return nil
}

// errSpecial is the refusal of fifos, sockets and devices.
func errSpecial(path string, mode fs.FileMode) error {
	return toolerr.New(toolerr.SpecialFile, "%s is a %s: only regular files are read", pathname.Escape(path), kindOf(mode))
}

// tooLarge is the refusal of a file that is larger than a reader takes.
func (d *Dir) tooLarge(name string, limit int64) error {
	return toolerr.New(toolerr.TooLarge, "%s is larger than %d bytes", pathname.Escape(d.join(name)), limit)
}

// kindOf names what is not a regular file.
func kindOf(mode fs.FileMode) string {
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

// join appends an entry's name to a directory's path.
func (d *Dir) join(name string) string {
	if strings.HasSuffix(d.path, pathSeparator) {
		return d.path + name
	}
	return d.path + pathSeparator + name
}

// MaybeSecret reports whether, because of the directory's name, FS.DeniedIn may be
// true for entries in it.
func (d *Dir) MaybeSecret() bool { return secret.MaybeIn(d.path) }

// Path returns the absolute path the directory had when it was opened, links
// resolved. It is for messages and for finding what lies above: operations
// go by the descriptor.
func (d *Dir) Path() string { return d.path }

// ReadAll appends the directory's entries to buf, unsorted and without "."
// and "..", from its beginning.
func (d *Dir) ReadAll(buf []DirEntry) ([]DirEntry, error) {
	var r DirReader
	if err := d.Rewind(); err != nil {
		return buf, err
	}
	buf, _, err := r.Read(d, "", buf, 0)
	return buf, err
}
