package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ReplaceFile writes a file that only its owner can read, completely or not at all. It keeps
// a link and replaces the target. After an error the old content stays.
func ReplaceFile(name string, text []byte) error {
	name, before := resolveAndStat(name)
	return WriteFile(name, text, 0o600, before)
}

// EditFile is ReplaceFile, except that a file that exists keeps its permissions. It is for
// changes without secrets.
func EditFile(name string, text []byte) error {
	name, before := resolveAndStat(name)
	mode := fs.FileMode(0o600)
	if before != nil {
		mode = before.Mode().Perm()
	}
	return WriteFile(name, text, mode, before)
}

// resolveAndStat returns the path of a file after links, and its properties; nil if it does not
// exist.
func resolveAndStat(name string) (string, fs.FileInfo) {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real
	}
	before, err := os.Stat(name)
	if err != nil {
		return name, nil
	}
	return name, before
}

// WriteFile replaces the file atomically: it writes a temporary file next to it, syncs and
// renames it. The file gets the owner of the file before, unless that is nil: otherwise a
// program that root runs (sudo) would take a user's file away. After an error the old
// content stays.
func WriteFile(name string, text []byte, mode fs.FileMode, before fs.FileInfo) error {
	f, err := os.CreateTemp(filepath.Dir(name), temporaryPrefix(name)+"*") // 0600
	if err != nil {
		return err
	}
	if before != nil {
		err = keepOwner(f, before)
	}
	if err == nil {
		_, err = f.Write(text)
	}
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name()) //nolint:errcheck // err is the reason to report
	}
	return err
}

// temporaryPrefix begins the names of the temporary files of WriteFile.
func temporaryPrefix(name string) string { return "." + filepath.Base(name) + ".toolroom-" }

// RemoveTemporary removes the temporary files that WriteFile left next to a file because its
// process was killed. The caller makes sure that no process writes the file.
func RemoveTemporary(name string) {
	entries, err := os.ReadDir(filepath.Dir(name))
	if err != nil {
		return // nothing was written there
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), temporaryPrefix(name)) && entry.Type().IsRegular() {
			os.Remove(filepath.Join(filepath.Dir(name), entry.Name())) //nolint:errcheck // it does no harm
		}
	}
}
