package state

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// spillDir holds the complete outputs of commands, one file each: plain text,
// which view and grep show by its absolute path.
const spillDir = "output-1"

const (
	defaultSpillBytes = 1 << 30
	defaultSpillAge   = 3 * 24 * time.Hour
)

// emptyAge is the time after which the empty directory of a set of roots is
// removed.
const emptyAge = 30 * 24 * time.Hour

// SpilledFor returns the directory for the complete outputs of commands in
// these roots, which a tool that shows files passes to
// sandbox.Config.ReadableFor; "" if no state is kept. The directory is the same
// for the same set of absolute paths, in any order, so that output from one
// project is not shown in another.
func (c *Config) SpilledFor(roots []string) string {
	dir := c.Directory()
	if c.Disabled || dir == "" {
		return ""
	}
	return filepath.Join(dir, spillDir, spillName(roots))
}

func spillName(roots []string) string {
	sorted := slices.Clone(roots)
	slices.Sort(sorted)
	sum := sha256.Sum256([]byte(strings.Join(slices.Compact(sorted), "\x00")))
	return fmt.Sprintf("%x", sum[:10])
}

// SpillFor creates the directory of SpilledFor. It also removes, from the
// directories of all roots, outputs older than SpillAge, and then the oldest
// ones until the rest has at most SpillBytes. A program that writes outputs
// calls it from time to time.
func (s *Store) SpillFor(roots []string) (string, error) {
	all, err := s.subdir(spillDir)
	if err != nil {
		return "", err
	}
	dir, err := s.subdir(filepath.Join(spillDir, spillName(roots)))
	if err != nil {
		return "", err
	}
	return dir, s.pruneSpilled(all, dir)
}

func (s *Store) pruneSpilled(all, own string) error {
	entries, err := os.ReadDir(all)
	if err != nil {
		return err
	}
	dirs := []string{all} // earlier versions stored the outputs of all roots there
	for _, entry := range entries {
		dir := filepath.Join(all, entry.Name())
		if !entry.IsDir() {
			continue
		}
		if info, err := entry.Info(); err == nil && dir != own && age(info) > emptyAge && os.Remove(dir) == nil {
			continue
		}
		dirs = append(dirs, dir)
	}
	return pruneDirs(dirs, s.config.SpillBytes, s.config.SpillAge)
}

// CommandTemps creates the directory for private temporary directories of commands. It
// is in no root as commands see it, so that commands cannot reach each other's
// files.
func (s *Store) CommandTemps() (string, error) { return s.subdir("tmp-1") }

// HiddenPaths creates the directory for the command runner's records of hidden paths.
func (s *Store) HiddenPaths() (string, error) { return s.subdir("hidden-1") }

// pruneDirs is prune for the files directly in several directories together. A
// missing directory counts as empty.
func pruneDirs(dirs []string, maxBytes int64, maxAge time.Duration) error {
	type file struct {
		path string
		fs.FileInfo
	}
	var files []file
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, entry := range entries {
			info, err := entry.Info()
			if err != nil || !info.Mode().IsRegular() || info.Name() == pruneMark {
				continue // removed in the meantime, or not ours
			}
			files = append(files, file{filepath.Join(dir, info.Name()), info})
		}
	}
	slices.SortFunc(files, func(a, b file) int { return b.ModTime().Compare(a.ModTime()) })
	var total int64
	var errs []error
	for _, f := range files {
		// A file takes at least one block, however small it is.
		total += max(f.Size(), blockSize)
		if total <= maxBytes && age(f) <= maxAge {
			continue
		}
		if err := os.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// PendingChanges creates the directory for changes of commands that nobody has
// applied or discarded yet.
func (s *Store) PendingChanges() (string, error) { return s.subdir("changes-1") }

// RootSnapshots creates the directory for the snapshots with which roots are compared
// after commands.
func (s *Store) RootSnapshots() (string, error) { return s.subdir("watch-1") }

// CommandUndo creates the directory for the undo records of commands.
func (s *Store) CommandUndo() (string, error) { return s.subdir("commands-1") }

// CommandCaches creates the directory for data that commands keep between runs, such
// as build caches.
func (s *Store) CommandCaches() (string, error) { return s.subdir("cache-1") }
