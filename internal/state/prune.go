package state

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// The default limits of Config: how much is kept of seen records, the undo journal
// and outputs, and for how long.
const (
	defaultMaxBytes    = 32 << 20
	defaultMaxAge      = 30 * 24 * time.Hour
	defaultUndoBytes   = 64 << 20
	defaultUndoAge     = 7 * 24 * time.Hour
	defaultOutputBytes = 1 << 30
	defaultOutputAge   = 3 * 24 * time.Hour
)

const (
	// pruneInterval is the interval at which a directory is checked for old
	// records.
	pruneInterval = time.Hour
	// pruneWrites is the number of writes of one process after which it prunes,
	// whatever the time.
	pruneWrites = 512
	// pruneStarts is the average number of processes that write their first
	// record for each that prunes, whatever the time.
	pruneStarts = 256
)

// pruneDirs removes files older than maxAge directly in dirs, and then the
// oldest until the rest, of all dirs together, takes at most maxBytes. A
// missing directory counts as empty. It returns the errors of all removals.
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
			if err != nil || !info.Mode().IsRegular() || info.Name() == pruneMarkFile {
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
		if total <= maxBytes && fileAge(f) <= maxAge {
			continue
		}
		if err := os.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

const (
	// blockSize is the disk space of the smallest file, in bytes.
	blockSize = 4 << 10
	// pruneMarkFile names the file whose modification time records the last
	// pruning of its directory.
	pruneMarkFile = ".pruned"
)

// pruneIfDue prunes dir, and the records of the previous format, if dir has not
// been pruned for pruneInterval. Only the first write of a process looks; after
// many writes, and by chance, it prunes at once.
func (s *Store) pruneIfDue(dir string) error {
	s.mu.Lock()
	s.writes++
	// Programs that write once and exit are counted by chance.
	first := s.writes == 1
	due := s.writes%pruneWrites == 0 || first && rand.IntN(pruneStarts) == 0
	s.mu.Unlock()
	if !due && !first {
		return nil
	}
	if err := s.pruneOlderFormat(); err != nil {
		return err
	}
	return pruneUnlessRecent(dir, due, s.config.MaxBytes, s.config.MaxAge)
}

// pruneOlderFormat removes the expired records of the previous format, which
// another version of a tool may still use.
func (s *Store) pruneOlderFormat() error {
	dir, err := s.open()
	if err != nil {
		return err
	}
	dir = filepath.Join(dir, olderSeenDir)
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() || !isOwnedByUser(info) {
		return nil
	}
	return pruneUnlessRecent(dir, false, s.config.MaxBytes, s.config.MaxAge)
}

// pruneUnlessRecent prunes dir if due is set or pruneInterval has passed since the
// last time. The file pruneMarkFile has the time of the last pruning.
func pruneUnlessRecent(dir string, due bool, maxBytes int64, maxAge time.Duration) error {
	mark := filepath.Join(dir, pruneMarkFile)
	if info, err := os.Stat(mark); !due && err == nil && fileAge(info) < pruneInterval {
		return nil
	}
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		return err
	}
	now := time.Now()
	if err := os.Chtimes(mark, now, now); err != nil {
		return err
	}
	return pruneDir(dir, maxBytes, maxAge)
}

// fileAge returns the time since a file was modified; 0 if that is in the
// future.
func fileAge(info fs.FileInfo) time.Duration { return max(0, time.Since(info.ModTime())) }

// pruneDir prunes one directory as pruneDirs does. It returns an error if the
// directory does not exist.
func pruneDir(dir string, maxBytes int64, maxAge time.Duration) error {
	if _, err := os.Stat(dir); err != nil {
		return err
	}
	return pruneDirs([]string{dir}, maxBytes, maxAge)
}
