package state

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// stagingDir is the subdirectory, of a directory of records, in which new
// records are written before they are renamed. A writer holds a shared lock on
// it. So a process that gets the exclusive lock knows that the files in it were
// left by killed processes.
const stagingDir = "aside"

// maxListed bounds the abandoned files that one write removes.
const maxListed = 64

// replaceAtomically replaces the record dir/name by data. It writes a temporary
// file in stagingDir and renames it, so that a reader finds the old or the new
// record. It also removes temporary files of killed processes.
func replaceAtomically(dir, name string, data []byte) error {
	aside := filepath.Join(dir, stagingDir)
	if err := os.MkdirAll(aside, 0o700); err != nil {
		return err
	}
	removeAbandoned(aside)
	release, err := lockDirShared(aside)
	if err != nil {
		return err
	}
	defer release()
	// CreateTemp makes files with mode 0600. Nothing is synced: losing a record
	// in a crash only costs time.
	f, err := os.CreateTemp(aside, "*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// removeAbandoned removes the files in aside, a staging directory, that no
// process is writing. Files that it cannot remove are left to a later write.
func removeAbandoned(aside string) {
	names := listSomeNames(aside)
	if len(names) == 0 {
		return
	}
	release, locked := tryLockDirExclusive(aside)
	if !locked {
		return
	}
	defer release()
	for _, name := range names { // the names listed before locking: later files belong to active writers
		path := filepath.Join(aside, name)
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && isAbandoned(info) {
			_ = os.Remove(path)
		}
	}
}

// listSomeNames returns at most maxListed names in a directory, in any order; nil
// if there are none or dir cannot be read.
func listSomeNames(dir string) []string {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, err := f.Readdirnames(maxListed)
	if err != nil { // mostly io.EOF
		return nil
	}
	return names
}

// isAbandoned reports whether a temporary file was left by a killed process. The
// caller holds the exclusive lock of its directory.
func isAbandoned(info fs.FileInfo) bool { return dirLocksWork || fileAge(info) > pruneInterval }
