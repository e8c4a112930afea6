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

// spillDir holds whole outputs of commands, a file each. They are plain text
// that view and grep show by its absolute name.
const spillDir = "output-1"

const (
	defaultSpillBytes = 1 << 30
	defaultSpillAge   = 3 * 24 * time.Hour
)

// emptyAge is how long the directory of a set of roots stays without a file.
const emptyAge = 30 * 24 * time.Hour

// SpilledFor returns where whole outputs of commands in these roots are kept, which a
// tool that shows files gives to sandbox.Config.ReadableFor; "" when nothing is kept.
// The directory is the same for the same set of absolute paths, in any order, so that
// what was printed in one project is not shown in another.
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

// SpillFor makes the directory of SpilledFor. It also removes from the directories of
// all roots what is older than three days, then the oldest beyond a gibibyte in all.
// A program that fills it calls this now and then.
func (s *Store) SpillFor(roots []string) (string, error) {
	all, err := s.sub(spillDir)
	if err != nil {
		return "", err
	}
	dir, err := s.sub(filepath.Join(spillDir, spillName(roots)))
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
	dirs := []string{all} // earlier versions kept the outputs of all roots there
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

// Temps makes the directory for private temporary directories of commands: no root
// holds it as it is seen by a command, so that commands do not reach each other's.
func (s *Store) Temps() (string, error) { return s.sub("tmp-1") }

// Records makes the directory where the runner of commands notes what it hid.
func (s *Store) Records() (string, error) { return s.sub("hidden-1") }

// pruneDirs is prune for the files directly in several directories together. One that
// is gone is empty.
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
				continue // gone meanwhile, or not ours
			}
			files = append(files, file{filepath.Join(dir, info.Name()), info})
		}
	}
	slices.SortFunc(files, func(a, b file) int { return b.ModTime().Compare(a.ModTime()) })
	var total int64
	var errs []error
	for _, f := range files {
		// A file takes a block at least, however little it holds.
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

// PendingChanges makes the directory for changes of commands that nobody has applied
// or discarded yet.
func (s *Store) PendingChanges() (string, error) { return s.sub("changes-1") }

// Watched makes the directory for what roots are compared with after commands.
func (s *Store) Watched() (string, error) { return s.sub("watch-1") }

// CommandUndo makes the directory for the undo records of commands.
func (s *Store) CommandUndo() (string, error) { return s.sub("commands-1") }

// Caches makes the directory for what commands keep between them, such as
// build caches.
func (s *Store) Caches() (string, error) { return s.sub("cache-1") }
