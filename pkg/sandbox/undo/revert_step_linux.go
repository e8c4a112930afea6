package undo

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/nofollow"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// revertStep reverts one step of the record. It does nothing for a path that
// u.refuse names. It can be repeated after an interruption.
func (u *undoRun) revertStep(step *supervise.UndoStep) error {
	if u.refuse(step.Path) != "" || step.To != "" && u.refuse(step.To) != "" {
		return nil
	}
	dir, base, err := u.openParent(step.Path)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		if step.Kind == supervise.UndoContent || step.Kind == supervise.UndoEntry && step.Before.Mode != 0 {
			u.addNotHeld(step.Path) // its directory was not recorded
		}
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(dir) //nolint:errcheck // opened only for paths
	switch step.Kind {
	case supervise.UndoEntry:
		return u.restoreEntry(dir, base, step)
	case supervise.UndoContent:
		return u.restoreContent(dir, base, step)
	case supervise.UndoMeta:
		return restoreMetadata(dir, base, &step.Before)
	case supervise.UndoMove:
		return u.moveBack(dir, base, step)
	case supervise.UndoSwap:
		is, err := u.stat(step.To)
		if err != nil || !u.isUnchanged(is, &step.Before) {
			return err
		}
		if stateAt(dir, base).Mode == 0 { // the command has removed what it had made
			return u.renameBack(step.To, dir, base, unix.RENAME_NOREPLACE)
		}
		return u.renameBack(step.To, dir, base, unix.RENAME_EXCHANGE)
	}
	return nil
}

// maxAliases bounds how often a file can be replaced by Undos, one after the other.
const maxAliases = 64

// isUnchanged reports whether is, the state of the file at a path, belongs to
// the recorded file was, or the file that replaced it during this Undo or those of later
// commands. A file that replaced another one can have the inode number of was, which is
// gone then.
func (u *undoRun) isUnchanged(is supervise.UndoState, was *supervise.UndoState) bool {
	if is.Mode == 0 || is.Dev != was.Dev {
		return false
	}
	for ino, n := uint64(is.Ino), 0; n < maxAliases; n++ {
		older, ok := u.aliases[fileKey{uint64(is.Dev), ino}]
		if !ok {
			older, ok = u.aliases[fileKey{0, ino}]
		}
		if ino == uint64(was.Ino) && (n > 0 || !ok) {
			return true
		}
		if !ok {
			return false
		}
		ino = older
	}
	return false
}

// restoreEntry restores the entry base of the directory dir to its state before
// step. If it still is the recorded file, only its metadata are restored;
// otherwise whatever has its name now is removed, and the entry is created
// again. If the content was not kept, it changes nothing and reports the path.
func (u *undoRun) restoreEntry(dir int, base string, step *supervise.UndoStep) error {
	was, is := &step.Before, stateAt(dir, base)
	switch {
	case was.Mode == 0 && is.Mode == 0:
		return nil
	case was.Mode == 0:
		err := u.removeAll(dir, base, step.Path)
		if err == nil {
			u.report.Removed++
		}
		return err
	case u.isRecorded(is, was):
		// The command did not remove it, or it moved it back, or a new directory
		// has got the inode of the removed one.
		return u.restoreAll(dir, base, step, fileType(is.Mode) == unix.S_IFDIR)
	case fileType(was.Mode) == unix.S_IFREG && was.Link == "" && !was.Held:
		u.addNotHeld(step.Path)
		return nil
	}
	if is.Mode != 0 {
		if err := u.removeAll(dir, base, step.Path); err != nil {
			return err
		}
	}
	u.report.Restored++
	var err error
	if was.Link != "" {
		err = unix.Linkat(u.recordDir, was.Link, dir, base, 0)
	} else {
		err = u.createEntry(dir, base, was)
	}
	if err != nil {
		return err
	}
	if is := stateAt(dir, base); is.Ino != was.Ino {
		u.addAlias(fileKey{uint64(is.Dev), uint64(is.Ino)}, was.Ino)
	}
	return u.restoreAll(dir, base, step, was.Link == "")
}

// isRecorded reports whether is, the state of an entry, is that of the recorded file with a
// hard link in the record, or of the recorded directory, also if an Undo of a later command
// has made it again.
func (u *undoRun) isRecorded(is supervise.UndoState, was *supervise.UndoState) bool {
	if is.Mode == 0 || fileType(is.Mode) != fileType(was.Mode) || is.Dev != was.Dev {
		return false
	}
	isDir := fileType(is.Mode) == unix.S_IFDIR
	return was.Link != "" && is.Ino == u.recordedInode(was) || isDir && u.isUnchanged(is, was)
}

// recordedInode returns the inode of a recorded entry. If the record has a hard link of
// it, which may be a copy of the file, it is the inode of that link.
func (u *undoRun) recordedInode(was *supervise.UndoState) int64 {
	if was.Link != "" {
		if is := stateAt(u.recordDir, was.Link); is.Mode != 0 {
			return is.Ino
		}
	}
	return was.Ino
}

// createEntry creates the entry base of the directory dir, a file, link,
// directory or device, as was describes it. It returns EEXIST if the entry
// exists.
func (u *undoRun) createEntry(dir int, base string, was *supervise.UndoState) error {
	switch fileType(was.Mode) {
	case unix.S_IFDIR:
		return unix.Mkdirat(dir, base, 0o700)
	case unix.S_IFLNK:
		return unix.Symlinkat(was.Target, dir, base)
	case unix.S_IFREG:
		return u.writeContent(dir, base, was, unix.O_CREAT|unix.O_EXCL)
	}
	return unix.Mknodat(dir, base, uint32(was.Mode), int(was.Number))
}

// restoreContent restores content and metadata of the file base of the
// directory dir to those before step. If the content was not kept, it changes
// nothing and reports the path.
func (u *undoRun) restoreContent(dir int, base string, step *supervise.UndoStep) error {
	was, is := &step.Before, stateAt(dir, base)
	switch {
	case fileType(is.Mode) != unix.S_IFREG:
		return nil
	case is.Ino == was.Ino && is.Changed == was.Changed:
		return nil // the command only opened it
	case was.Held && is.Size == was.Size && u.hasContent(dir, base, was):
		return restoreMetadata(dir, base, was)
	case !was.Held:
		u.addNotHeld(step.Path)
		return nil
	}
	u.report.Restored++
	if is.Mode&0o200 == 0 {
		if err := nofollow.Chmod(dir, base, modeOf(is.Mode)|0o200); err != nil {
			return err
		}
	}
	if err := u.writeContent(dir, base, was, unix.O_TRUNC); err != nil {
		return err
	}
	if err := restoreMetadata(dir, base, was); err != nil {
		return err
	}
	supervise.SetAttributesAt(dir, base, removedByWrites(was.Attributes), false)
	return nil
}

// removedByWrites returns the attributes of the list that the kernel removes from a file
// when a process writes to it. Commands cannot set the others, but other programs can.
func removedByWrites(attributes []supervise.UndoAttribute) []supervise.UndoAttribute {
	return slices.DeleteFunc(slices.Clone(attributes), func(a supervise.UndoAttribute) bool { return a.Name != "security.capability" })
}

// hasContent reports whether the file base of the directory dir has the content
// that the record keeps for was.
func (u *undoRun) hasContent(dir int, base string, was *supervise.UndoState) bool {
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

// writeContent copies the content that the record keeps for was into the file
// base of the directory dir, opened with the additional open(2) flags.
func (u *undoRun) writeContent(dir int, base string, was *supervise.UndoState, flags int) error {
	fd, err := unix.Openat(dir, base, unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC|flags, 0o600)
	if err != nil {
		return err
	}
	to := os.NewFile(uintptr(fd), base)
	_, err = io.Copy(to, io.NewSectionReader(u.data, was.Offset, was.Size))
	return errors.Join(err, to.Close())
}

// moveBack reverts step, the renaming of the entry base of the directory dir.
// If the entry was not renamed, it does nothing.
func (u *undoRun) moveBack(dir int, base string, step *supervise.UndoStep) error {
	is, err := u.stat(step.To)
	if err != nil {
		return err
	}
	old := stateAt(dir, base)
	if is.Mode == 0 || !u.isUnchanged(is, &step.Before) && old.Mode != 0 {
		return nil
	}
	if old.Mode != 0 {
		if old.Dev == is.Dev && old.Ino == is.Ino {
			return nil
		}
		if err := u.removeAll(dir, base, step.Path); err != nil {
			return err
		}
	}
	u.report.Moved++
	return u.renameBack(step.To, dir, base, unix.RENAME_NOREPLACE)
}

// renameBack renames the file at the path from to the entry base of the directory dir,
// with flags of renameat2.
func (u *undoRun) renameBack(from string, dir int, base string, flags uint) error {
	fromDir, fromBase, err := u.openParent(from)
	if err != nil {
		return err
	}
	defer unix.Close(fromDir) //nolint:errcheck // opened only for paths
	err = unix.Renameat2(fromDir, fromBase, dir, base, flags)
	if errors.Is(err, unix.EINVAL) && flags == unix.RENAME_NOREPLACE { // some file systems do not support the flag
		err = unix.Renameat(fromDir, fromBase, dir, base)
	}
	return err
}

// restoreAll restores the attributes before step of the entry base of the directory dir,
// and what restoreMetadata restores. With made, Undo has made the entry.
func (u *undoRun) restoreAll(dir int, base string, step *supervise.UndoStep, made bool) error {
	was := &step.Before
	// The owner is restored first, since a new owner removes capabilities.
	if err := restoreMetadata(dir, base, was); err != nil {
		return err
	}
	if fileType(was.Mode) != unix.S_IFLNK && supervise.SetAttributesAt(dir, base, was.Attributes, made) {
		u.addLostAccess(step.Path)
	}
	return nil
}

// restoreMetadata restores mode, owner and times of the entry base of the directory
// dir. It does nothing if the entry is missing or now of another kind. It ignores that
// the owner cannot be restored.
func restoreMetadata(dir int, base string, was *supervise.UndoState) error {
	is := stateAt(dir, base)
	if is.Mode == 0 || fileType(is.Mode) != fileType(was.Mode) {
		return nil
	}
	if is.UID != was.UID || is.GID != was.GID {
		// Only root can always restore the owner. Restore the rest in any
		// case.
		unix.Fchownat(dir, base, int(was.UID), int(was.GID), unix.AT_SYMLINK_NOFOLLOW) //nolint:errcheck // as above
	}
	if is.Mode != was.Mode && fileType(was.Mode) != unix.S_IFLNK {
		if err := nofollow.Chmod(dir, base, modeOf(was.Mode)); err != nil {
			return err
		}
	}
	times := []unix.Timespec{unix.NsecToTimespec(was.Accessed), unix.NsecToTimespec(was.Modified)}
	return unix.UtimesNanoAt(dir, base, times, unix.AT_SYMLINK_NOFOLLOW)
}

// modeOf converts the permission, setuid, setgid and sticky bits of st_mode.
func modeOf(mode int64) fs.FileMode {
	converted := fs.FileMode(mode).Perm()
	for bit, flag := range map[int64]fs.FileMode{unix.S_ISUID: fs.ModeSetuid, unix.S_ISGID: fs.ModeSetgid, unix.S_ISVTX: fs.ModeSticky} {
		if mode&bit != 0 {
			converted |= flag
		}
	}
	return converted
}

// stateAt returns the state of the entry base of the directory dir; Mode is 0 if there
// is none.
func stateAt(dir int, base string) (state supervise.UndoState) {
	var file unix.Stat_t
	if unix.Fstatat(dir, base, &file, unix.AT_SYMLINK_NOFOLLOW) == nil {
		state = supervise.StateOf(&file)
	}
	return state
}
