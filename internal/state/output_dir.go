package state

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// outputDir holds the complete outputs of commands, one file each: plain text,
// which view and grep show by its absolute path.
const outputDir = "output-1"

const (
	defaultOutputBytes = 1 << 30
	defaultOutputAge   = 3 * 24 * time.Hour
)

// maxEmptyAge is the time after which the empty directory of a set of roots is
// removed.
const maxEmptyAge = 30 * 24 * time.Hour

// OutputDir returns the directory for the complete outputs of commands in
// these roots, which a tool that shows files passes to
// sandbox.Config.ReadableFor; "" if no state is kept. The directory is the same
// for the same set of absolute paths, in any order, so that output from one
// project is not shown in another.
func (c *Config) OutputDir(roots []string) string {
	dir := c.Directory()
	if c.Disabled || dir == "" {
		return ""
	}
	return filepath.Join(dir, outputDir, rootsHash(roots))
}

func rootsHash(roots []string) string {
	sorted := slices.Clone(roots)
	slices.Sort(sorted)
	sum := sha256.Sum256([]byte(strings.Join(slices.Compact(sorted), "\x00")))
	return fmt.Sprintf("%x", sum[:10])
}

// MakeOutputDir creates the directory of SpilledFor. It also removes, from the
// directories of all roots, outputs older than SpillAge, and then the oldest
// ones until the rest has at most SpillBytes. A program that writes outputs
// calls it from time to time.
func (s *Store) MakeOutputDir(roots []string) (string, error) {
	all, err := s.makeSubdir(outputDir)
	if err != nil {
		return "", err
	}
	dir, err := s.makeSubdir(filepath.Join(outputDir, rootsHash(roots)))
	if err != nil {
		return "", err
	}
	return dir, s.pruneOutputs(all, dir)
}

func (s *Store) pruneOutputs(all, own string) error {
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
		if info, err := entry.Info(); err == nil && dir != own && fileAge(info) > maxEmptyAge && os.Remove(dir) == nil {
			continue
		}
		dirs = append(dirs, dir)
	}
	return pruneDirs(dirs, s.config.OutputBytes, s.config.OutputAge)
}
