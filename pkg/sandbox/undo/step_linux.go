package undo

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/nofollow"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// take takes one step back. It can be repeated after it was interrupted.
func (u *undoing) take(step *supervise.UndoRecord) error {
	if u.refuse(step.Path) != "" || step.To != "" && u.refuse(step.To) != "" {
		return nil
	}
	dir, base, err := u.at(step.Path)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil // the call failed, or the directory is not held
	}
	if err != nil {
		return err
	}
	defer unix.Close(dir) //nolint:errcheck // was opened for paths only
	switch step.Kind {
	case supervise.UndoEntry:
		return u.entry(dir, base, step)
	case supervise.UndoContent:
		return u.content(dir, base, step)
	case supervise.UndoMeta:
		return metadata(dir, base, &step.Before)
	case supervise.UndoMove:
		return u.move(dir, base, step)
	case supervise.UndoSwap:
		if u.same(u.stat(step.To), &step.Before) {
			return u.rename(step.To, dir, base, unix.RENAME_EXCHANGE)
		}
	}
	return nil
}

// same reports whether what is at a place is the file that was recorded, or the one
// that took its place in this Undo.
func (u *undoing) same(is supervise.UndoState, was *supervise.UndoState) bool {
	if is.Mode == 0 || is.Dev != was.Dev {
		return false
	}
	return is.Ino == was.Ino || u.alias[uint64(is.Ino)] == uint64(was.Ino)
}

// entry makes an entry what it was.
func (u *undoing) entry(dir int, base string, step *supervise.UndoRecord) error {
	was, is := &step.Before, stateAt(dir, base)
	switch {
	case was.Mode == 0 && is.Mode == 0:
		return nil
	case was.Mode == 0:
		u.report.Removed++
		return nofollow.RemoveAll(dir, base)
	case is.Mode != 0 && kind(is.Mode) == kind(was.Mode) && is.Dev == was.Dev && is.Ino == was.Ino && (was.Link != "" || kind(is.Mode) == unix.S_IFDIR):
		if kind(is.Mode) == unix.S_IFDIR { // a new directory may have got the inode of the removed one
			return metadata(dir, base, was)
		}
		return nil // it was not removed
	case kind(was.Mode) == unix.S_IFREG && was.Link == "" && !was.Held:
		u.notHeld[step.Path] = true
		return nil
	}
	if is.Mode != 0 {
		if err := nofollow.RemoveAll(dir, base); err != nil {
			return err
		}
	}
	u.report.Restored++
	if was.Link != "" {
		return unix.Linkat(u.links, was.Link, dir, base, 0)
	}
	if err := u.create(dir, base, was); err != nil {
		return err
	}
	u.alias[uint64(stateAt(dir, base).Ino)] = uint64(was.Ino)
	return metadata(dir, base, was)
}

// create makes a file of its record.
func (u *undoing) create(dir int, base string, was *supervise.UndoState) error {
	switch kind(was.Mode) {
	case unix.S_IFDIR:
		return unix.Mkdirat(dir, base, 0o700)
	case unix.S_IFLNK:
		return unix.Symlinkat(was.Target, dir, base)
	case unix.S_IFREG:
		return u.write(dir, base, was, unix.O_CREAT|unix.O_EXCL)
	}
	return unix.Mknodat(dir, base, uint32(was.Mode), int(was.Number))
}

// content gives a file its content back.
func (u *undoing) content(dir int, base string, step *supervise.UndoRecord) error {
	was, is := &step.Before, stateAt(dir, base)
	switch {
	case kind(is.Mode) != unix.S_IFREG:
		return nil
	case is.Ino == was.Ino && is.Changed == was.Changed:
		return nil // it was opened only
	case was.Held && is.Size == was.Size && u.holds(dir, base, was):
		return metadata(dir, base, was)
	case !was.Held:
		u.notHeld[step.Path] = true
		return nil
	}
	u.report.Restored++
	if is.Mode&0o200 == 0 {
		if err := nofollow.Chmod(dir, base, modeOf(is.Mode)|0o200); err != nil {
			return err
		}
	}
	if err := u.write(dir, base, was, unix.O_TRUNC); err != nil {
		return err
	}
	return metadata(dir, base, was)
}

// holds reports whether a file has the content that is held.
func (u *undoing) holds(dir int, base string, was *supervise.UndoState) bool {
	fd, err := unix.Openat(dir, base, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	f := os.NewFile(uintptr(fd), base)
	defer f.Close() //nolint:errcheck // only read
	held := io.NewSectionReader(u.data, was.Offset, was.Size)
	one, two := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, errOne := io.ReadFull(f, one)
		m, errTwo := io.ReadFull(held, two)
		if n != m || !bytes.Equal(one[:n], two[:m]) {
			return false
		}
		if errOne != nil || errTwo != nil {
			return errOne != nil && errTwo != nil
		}
	}
}

// write copies a held content into a file.
func (u *undoing) write(dir int, base string, was *supervise.UndoState, flags int) error {
	fd, err := unix.Openat(dir, base, unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC|flags, 0o600)
	if err != nil {
		return err
	}
	to := os.NewFile(uintptr(fd), base)
	_, err = io.Copy(to, io.NewSectionReader(u.data, was.Offset, was.Size))
	return errors.Join(err, to.Close())
}

// move renames an entry back. Where it was not renamed, it is still there.
func (u *undoing) move(dir int, base string, step *supervise.UndoRecord) error {
	is, old := u.stat(step.To), stateAt(dir, base)
	if is.Mode == 0 || !u.same(is, &step.Before) && old.Mode != 0 {
		return nil
	}
	if old.Mode != 0 {
		if old.Dev == is.Dev && old.Ino == is.Ino {
			return nil
		}
		if err := nofollow.RemoveAll(dir, base); err != nil {
			return err
		}
	}
	u.report.Moved++
	return u.rename(step.To, dir, base, unix.RENAME_NOREPLACE)
}

func (u *undoing) rename(from string, dir int, base string, flags uint) error {
	fromDir, fromBase, err := u.at(from)
	if err != nil {
		return err
	}
	defer unix.Close(fromDir) //nolint:errcheck // was opened for paths only
	err = unix.Renameat2(fromDir, fromBase, dir, base, flags)
	if errors.Is(err, unix.EINVAL) && flags == unix.RENAME_NOREPLACE { // not every file system has the flag
		err = unix.Renameat(fromDir, fromBase, dir, base)
	}
	return err
}

// metadata gives mode, owner and times back.
func metadata(dir int, base string, was *supervise.UndoState) error {
	is := stateAt(dir, base)
	if is.Mode == 0 || kind(is.Mode) != kind(was.Mode) {
		return nil
	}
	if is.UID != was.UID || is.GID != was.GID {
		// Only root can always do that; the rest is worth more than the owner.
		unix.Fchownat(dir, base, int(was.UID), int(was.GID), unix.AT_SYMLINK_NOFOLLOW) //nolint:errcheck // as above
	}
	if is.Mode != was.Mode && kind(was.Mode) != unix.S_IFLNK {
		if err := nofollow.Chmod(dir, base, modeOf(was.Mode)); err != nil {
			return err
		}
	}
	times := []unix.Timespec{unix.NsecToTimespec(was.Accessed), unix.NsecToTimespec(was.Modified)}
	return unix.UtimesNanoAt(dir, base, times, unix.AT_SYMLINK_NOFOLLOW)
}

// modeOf converts the permission bits of st_mode.
func modeOf(mode int64) fs.FileMode {
	converted := fs.FileMode(mode).Perm()
	for bit, flag := range map[int64]fs.FileMode{unix.S_ISUID: fs.ModeSetuid, unix.S_ISGID: fs.ModeSetgid, unix.S_ISVTX: fs.ModeSticky} {
		if mode&bit != 0 {
			converted |= flag
		}
	}
	return converted
}

func stateAt(dir int, base string) (state supervise.UndoState) {
	var file unix.Stat_t
	if unix.Fstatat(dir, base, &file, unix.AT_SYMLINK_NOFOLLOW) == nil {
		state = supervise.StateOf(&file)
	}
	return state
}
