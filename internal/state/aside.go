package state

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// asideDir is where, below a directory of records, new ones are written
// before they are renamed into it. Who writes there shares a lock on it, so
// whoever has it alone knows that what is in it was left by killed processes.
const asideDir = "aside"

// maxCleared bounds what one write clears.
const maxCleared = 64

// replaceWhole writes a file aside and renames it, so that a reader finds the
// old or the new one. It clears what killed processes left aside.
func replaceWhole(dir, name string, data []byte) error {
	aside := filepath.Join(dir, asideDir)
	if err := os.MkdirAll(aside, 0o700); err != nil {
		return err
	}
	clearAside(aside)
	release, err := share(aside)
	if err != nil {
		return err
	}
	defer release()
	// CreateTemp makes files 0600. Nothing is synced: a record lost in a
	// crash is only slower.
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

// clearAside removes what nobody is writing any more. What it cannot remove
// another write will.
func clearAside(aside string) {
	names := list(aside)
	if len(names) == 0 {
		return
	}
	release, alone := claim(aside)
	if !alone {
		return
	}
	defer release()
	for _, name := range names { // those seen before it was locked: what is written now comes after
		path := filepath.Join(aside, name)
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && abandoned(info) {
			_ = os.Remove(path)
		}
	}
}

// list returns some of the names in a directory.
func list(dir string) []string {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, err := f.Readdirnames(maxCleared)
	if err != nil { // io.EOF, mostly
		return nil
	}
	return names
}

// abandoned reports whether a file that is written aside was left there.
func abandoned(info fs.FileInfo) bool { return locksTell || age(info) > pruneEvery }
