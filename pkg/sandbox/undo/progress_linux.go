package undo

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The files of a record in which Undo stores how far it has come, so that a later
// Undo can go on after an interruption.
const (
	progressName = "undone"       // the number of reverted steps, and the counts of the report
	notesName    = "undone.notes" // what addNotHeld, addLostAccess, addAlias and shareAliases add, one a line
)

// readProgress restores the report and the aliases of an interrupted Undo, and the
// aliases of the Undos of later commands. It returns the number of steps, from the last
// one on, that were reverted, and whether an Undo began at all.
func (u *undoRun) readProgress() (done int, began bool) {
	text, err := os.ReadFile(filepath.Join(u.dir, progressName))
	if began = err == nil; began {
		fmt.Sscan(string(text), &done, &u.report.Restored, &u.report.Removed, &u.report.Moved) //nolint:errcheck // records of earlier versions have no counts
	}
	u.notHeld, u.lostAccess, u.aliases = readNotes(u.dir)
	return done, began
}

// lostAccessMark is the beginning of a line of notesName with a path of
// Report.LostAccess.
const lostAccessMark = "access "

// readNotes returns the notes of the record in dir: paths of contents that were not
// recorded, those of Report.LostAccess, and aliases. All are empty if it has none.
func readNotes(dir string) (notHeld, lostAccess map[string]bool, aliases map[fileKey]uint64) {
	notHeld, lostAccess, aliases = map[string]bool{}, map[string]bool{}, map[fileKey]uint64{}
	notes, _ := os.ReadFile(filepath.Join(dir, notesName))
	for line := range strings.Lines(string(notes)) {
		quoted, isAccess := strings.CutPrefix(strings.TrimSpace(line), lostAccessMark)
		if path, err := strconv.Unquote(quoted); err == nil {
			if isAccess {
				lostAccess[path] = true
			} else {
				notHeld[path] = true
			}
			continue
		}
		var is fileKey
		var was uint64
		if n, _ := fmt.Sscan(line, &is.ino, &was, &is.dev); n >= 2 { // without a device in records of earlier versions
			aliases[is] = was
		}
	}
	return notHeld, lostAccess, aliases
}

// writeProgress stores done, the number of reverted steps, and the counts of the report.
// After a failure, the next Undo repeats a step.
func (u *undoRun) writeProgress(done int) {
	fd, err := unix.Openat(u.recordDir, progressName, unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	if err == nil {
		unix.Pwrite(fd, fmt.Appendf(nil, "%12d %12d %12d %12d\n", done, u.report.Restored, u.report.Removed, u.report.Moved), 0) //nolint:errcheck // see above
		unix.Close(fd)                                                                                                           //nolint:errcheck // see above
	}
}

// addNotHeld adds path, whose content was not recorded, to the report and to
// the notes of the record.
func (u *undoRun) addNotHeld(path string) {
	if !u.notHeld[path] {
		u.notHeld[path] = true
		u.addNote(strconv.Quote(path))
	}
}

// addLostAccess adds path, whose access list was restored without some of its entries,
// to the report and to the notes of the record.
func (u *undoRun) addLostAccess(path string) {
	if !u.lostAccess[path] {
		u.lostAccess[path] = true
		u.addNote(lostAccessMark + strconv.Quote(path))
	}
}

// addAlias notes that the file is replaces the recorded one with the inode number was on
// the same device.
func (u *undoRun) addAlias(is fileKey, was int64) {
	u.aliases[is] = uint64(was)
	u.addNote(aliasNote(is, uint64(was)))
}

// aliasNote returns the line of notesName for an alias.
func aliasNote(is fileKey, was uint64) string { return fmt.Sprint(is.ino, " ", was, " ", is.dev) }

// shareAliases adds the aliases to the records of earlier commands in the same roots,
// which name the replaced files. It adds no alias that a record has already.
func (u *undoRun) shareAliases() {
	if len(u.aliases) == 0 {
		return
	}
	for _, r := range New(filepath.Dir(u.dir)).List(u.Roots) {
		if r.ID == u.ID || r.Began.After(u.Began) {
			continue
		}
		var text strings.Builder
		_, _, known := readNotes(r.dir)
		for is, was := range u.aliases {
			if old, ok := known[is]; !ok || old != was {
				fmt.Fprintln(&text, aliasNote(is, was))
			}
		}
		if text.Len() == 0 {
			continue
		}
		dir, err := unix.Open(r.dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err == nil {
			addNotes(dir, text.String())
			unix.Close(dir) //nolint:errcheck // opened only for paths
		}
	}
}

// addNote appends line to the file notesName.
func (u *undoRun) addNote(line string) { addNotes(u.recordDir, line+"\n") }

// addNotes appends lines to the file notesName of the record with the descriptor dir.
// After a failure, an interrupted Undo reports less, and an Undo of an earlier command
// may leave a file where a command has moved it.
func addNotes(dir int, lines string) {
	fd, err := unix.Openat(dir, notesName, unix.O_WRONLY|unix.O_CREAT|unix.O_APPEND|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err == nil {
		unix.Write(fd, []byte(lines)) //nolint:errcheck // see above
		unix.Close(fd)                //nolint:errcheck // see above
	}
}
