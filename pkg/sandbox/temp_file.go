package sandbox

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"regexp"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/filelock"
)

// tempFile is a new file while it is written: without a name where the system
// can do that, else under one that tells what it is. It is locked, so that a
// name whose file is not locked belongs to a process that is dead.
type tempFile struct {
	*os.File
	in   *parentDir
	base string
	name string // "" while it has none, and when it is published
}

// tempFileSlots is the number of fixed names for a file's temporary files, before
// names are random. More than one is needed only if two processes write without a
// lock. The names follow from the file's name, so that the next writer meets the
// temporary file that a killed process left, and removes it.
const tempFileSlots = 4

var tempFileName = regexp.MustCompile(`^\.toolroom-[0-9a-f]{16}-[0-9]\.tmp$`)

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

// newTempFile makes a temporary file for base.
func (d *parentDir) newTempFile(base string, perm uint32) (*tempFile, error) {
	f, ok, err := d.createAnonymous(perm)
	if err != nil {
		return nil, err
	}
	if ok {
		filelock.TryLock(f) // nobody else can have it
		return &tempFile{File: f, in: d, base: base}, nil
	}
	s := &tempFile{in: d, base: base}
	s.name, err = d.tryTempNames(base, func(name string) error {
		f, err := d.createExclusive(name, perm)
		if err != nil {
			return err
		}
		locked, err := filelock.TryLock(f)
		now, err2 := d.lstat(name)
		info, err3 := f.Stat()
		if !locked && err == nil || err2 != nil || err3 != nil || !sameFile(now, info) {
			f.Close() // somebody who clears up was between the two
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

// sameFile reports whether a Stat and a FileInfo are of one file, as far as
// the system tells.
func sameFile(st Stat, info fs.FileInfo) bool {
	other := statOfInfo(info)
	return st.Dev == other.Dev && st.Ino == other.Ino
}

// tryTempNames finds a free name for a temporary file: try fails with fs.ErrExist
// where it is taken.
func (d *parentDir) tryTempNames(base string, try func(name string) error) (string, error) {
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

// publishOver puts the file in the place of base.
func (s *tempFile) publishOver(base string) error {
	if s.name == "" {
		name, err := s.in.tryTempNames(base, func(name string) error { return s.in.link(s.File, name) })
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

// publishNew gives the file the name base, which nothing else must have.
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

// checkPublished makes sure that it was our file that was renamed: its name could
// be guessed.
func (s *tempFile) checkPublished(base string) error {
	now, err := s.in.lstat(base)
	info, err2 := s.Stat()
	if err == nil && err2 == nil && !sameFile(now, info) {
		return errChanged
	}
	return nil
}

// discard closes the file, and removes it if it was not published.
func (s *tempFile) discard() {
	if s.name != "" {
		// Removed before it is unlocked: nobody else clears it meanwhile.
		s.in.remove(s.name)
	}
	s.Close()
}

const (
	// sweepNames bounds the entries of a directory that are searched for temporary
	// files of dead processes. The next write of the same file finds its own anyway.
	sweepNames = 512
	// sweepAge is how old a temporary file must be where locks may not be seen.
	sweepAge = time.Hour
)

// removeOldTempFiles removes what dead processes left.
func (d *parentDir) removeOldTempFiles() {
	for _, name := range d.entries(sweepNames) {
		if tempFileName.MatchString(name) {
			d.removeIfStale(name)
		}
	}
}

// removeIfStale removes a temporary file whose writer is dead. Nothing else is ever
// removed: it must be a regular file of ours with one name, which nobody has
// locked.
func (d *parentDir) removeIfStale(name string) {
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
	old := time.Since(st.ModTime) > sweepAge
	if !old && (err != nil || !filelock.Advisory || !d.isLocal()) || err == nil && !locked {
		return
	}
	// While we hold its lock nobody else removes it.
	now, err := d.lstat(name)
	if err != nil || now.Ino != opened.Ino || now.Dev != opened.Dev {
		return
	}
	if !filelock.Advisory {
		f.Close() // an open file cannot be removed there
	}
	d.remove(name)
}
