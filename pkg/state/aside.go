package state

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// asideDir is where, below a directory of records, new ones are written
// before they are renamed into it. A file in it is locked by who writes it,
// so the next writer can tell what a killed process left.
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
	err := writeAside(aside, filepath.Join(dir, name), data)
	if errors.Is(err, fs.ErrNotExist) { // taken for left by another process, in the instant before it was locked
		err = writeAside(aside, filepath.Join(dir, name), data)
	}
	return err
}

func writeAside(aside, path string, data []byte) error {
	// CreateTemp makes files 0600. Nothing is synced: a record lost in a
	// crash is only slower.
	f, err := os.CreateTemp(aside, "*")
	if err != nil {
		return err
	}
	if _, err = sandbox.TryLock(f); err == nil {
		_, err = f.Write(data)
	}
	if runtime.GOOS == "windows" { // an open file cannot be renamed there
		err = errors.Join(err, f.Close())
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, ignoreGone(os.Remove(f.Name())))
	}
	if runtime.GOOS != "windows" {
		err = errors.Join(err, f.Close())
	}
	return err
}

// clearAside removes files that nobody writes any more. What it cannot remove
// another write will.
func clearAside(aside string) {
	dir, err := os.Open(aside)
	if err != nil {
		return
	}
	defer dir.Close()
	names, err := dir.Readdirnames(maxCleared)
	if err != nil { // io.EOF, mostly
		return
	}
	for _, name := range names {
		path := filepath.Join(aside, name)
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		if free, err := sandbox.TryLock(f); free && err == nil {
			_ = os.Remove(path)
		}
		f.Close()
	}
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
