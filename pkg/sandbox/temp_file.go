package sandbox

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/filelock"
	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
)

// tempFile is a file with new content before it gets its final name. It has no name if
// the system supports that, else a recognizable one. The writer locks it, so a file
// with such a name that is not locked belongs to a process that has ended.
type tempFile struct {
	*os.File
	in   *writableDir
	base string
	name string // "" without a name and after publishing
}

// tempFileSlots is the number of fixed temporary names for a file; after these, names
// are random. More than one is needed only if two processes write without a lock. The
// names are derived from the file's name, so that the next writer finds the temporary
// file of a killed process and removes it.
const tempFileSlots = 4

// tempFileName matches the names that nameTempFile returns below tempFileSlots.
var tempFileName = lazyregexp.New(`^\.toolroom-[0-9a-f]{16}-[0-9]\.tmp$`)

// nameTempFile returns a temporary name. Below tempFileSlots it depends only on base
// and slot, so that a later call finds abandoned files; then it is random.
func nameTempFile(base string, slot int) string {
	var sum [8]byte
	if slot < tempFileSlots {
		h := fnv.New64a()
		h.Write([]byte(base))
		h.Sum(sum[:0])
	} else {
		rand.Read(sum[:])
	}
	return fmt.Sprintf(".toolroom-%s-%d.tmp", hex.EncodeToString(sum[:]), min(slot, tempFileSlots))
}

// newTempFile creates a temporary file that will become base, open for reading
// and writing and, if the file system has locks, locked. perm are its
// permission bits. The caller publishes or discards it.
func (d *writableDir) newTempFile(base string, perm uint32) (*tempFile, error) {
	f, ok, err := d.createAnonymous(perm)
	if err != nil {
		return nil, err
	}
	if ok {
		filelock.TryLock(f) // the file has no name, so nobody else can lock it
		return &tempFile{File: f, in: d, base: base}, nil
	}
	s := &tempFile{in: d, base: base}
	s.name, err = d.withTempName(base, func(name string) error {
		f, err := d.createExclusive(name, perm)
		if err != nil {
			return err
		}
		locked, err := filelock.TryLock(f)
		now, err2 := d.lstat(name)
		info, err3 := f.Stat()
		if !locked && err == nil || err2 != nil || err3 != nil || !isSameFileAs(now, info) {
			f.Close() // another process removed the file before it was locked
			return fs.ErrExist
		}
		s.File = f
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// isSameFileAs reports whether a Stat and a FileInfo describe the same file, as far as the
// system shows it.
func isSameFileAs(st Stat, info fs.FileInfo) bool {
	other := statOfInfo(info)
	return st.Dev == other.Dev && st.Ino == other.Ino
}

// withTempName calls try with temporary names until it does not fail with fs.ErrExist,
// and returns the name. It removes a file that an ended writer left at such a name. After
// tempFileSlots+8 names it returns fs.ErrExist.
func (d *writableDir) withTempName(base string, try func(name string) error) (string, error) {
	var name string
	var err error
	for slot := range tempFileSlots + 8 {
		name = nameTempFile(base, slot)
		if err = try(name); !errors.Is(err, fs.ErrExist) {
			return name, err
		}
		d.removeIfStale(name)
		if err = try(name); !errors.Is(err, fs.ErrExist) {
			return name, err
		}
	}
	return "", err
}

// publishOver renames the file to base and replaces the old file.
func (s *tempFile) publishOver(base string) error {
	if s.name == "" {
		name, err := s.in.withTempName(base, func(name string) error { return s.in.link(s.File, name) })
		if err != nil {
			return err
		}
		s.name = name
	}
	if err := s.in.rename(s.name, base); err != nil {
		return err
	}
	s.name = ""
	return s.checkPublished(base)
}

// publishNew renames the file to base. It returns fs.ErrExist if base exists.
func (s *tempFile) publishNew(base string) error {
	if s.name == "" {
		return s.in.link(s.File, base)
	}
	if err := s.in.renameNoReplace(s.name, base); err != nil {
		return err
	}
	s.name = ""
	return s.checkPublished(base)
}

// checkPublished returns an error if the file at base is not this one: another program
// can guess the temporary name and replace the file.
func (s *tempFile) checkPublished(base string) error {
	now, err := s.in.lstat(base)
	info, err2 := s.Stat()
	if err == nil && err2 == nil && !isSameFileAs(now, info) {
		return errChanged
	}
	return nil
}

// discard closes the file, and removes it if it was not published.
func (s *tempFile) discard() {
	if s.name != "" {
		// Remove the file before unlocking it, so that no other process removes it
		// meanwhile.
		s.in.remove(s.name)
	}
	s.Close()
}

const (
	// maxSweepEntries bounds the entries of a directory that are searched for temporary
	// files of ended processes. The next write of the same file finds its own in any
	// case.
	maxSweepEntries = 512
	// minSweepAge is the least age at which a temporary file is removed if locks of other
	// machines may be invisible.
	minSweepAge = time.Hour
)

// removeOldTempFiles removes temporary files of ended processes among the first
// maxSweepEntries entries of the directory. It ignores errors.
func (d *writableDir) removeOldTempFiles() {
	for _, name := range d.entryNames(maxSweepEntries) {
		if tempFileName().MatchString(name) {
			d.removeIfStale(name)
		}
	}
}

// removeIfStale removes a temporary file whose writer has ended. It removes nothing
// else: the file must be a regular file of this program with one hard link that nobody
// has locked.
func (d *writableDir) removeIfStale(name string) {
	st, err := d.lstat(name)
	if err != nil || !st.Mode.IsRegular() || st.Nlink > 1 || hasPOSIXOwners && os.Geteuid() != 0 && st.UID != uint32(os.Geteuid()) {
		return
	}
	f, opened, err := d.open(name, os.O_RDONLY)
	if err != nil {
		return
	}
	defer f.Close()
	locked, err := filelock.TryLock(f)
	old := time.Since(st.ModTime) > minSweepAge
	if !old && (err != nil || !filelock.Advisory || !d.isLocal()) || err == nil && !locked {
		return
	}
	// While this process holds the lock, no other process removes the file.
	now, err := d.lstat(name)
	if err != nil || now.Ino != opened.Ino || now.Dev != opened.Dev {
		return
	}
	if !filelock.Advisory {
		f.Close() // this system cannot remove an open file
	}
	d.remove(name)
}
