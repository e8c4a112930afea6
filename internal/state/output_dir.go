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

// outputDir holds the complete outputs of commands, one file each. They are
// plain text, which view and grep show by their absolute paths.
const outputDir = "output-1"

// maxEmptyAge is the age at which the empty output directory of a set of roots
// is removed.
const maxEmptyAge = 30 * 24 * time.Hour

// OutputDir returns the path of the directory for the complete outputs of
// commands in these roots; "" if no state is kept. A tool that shows files
// passes it to sandbox.Config.ReadableFor. The path depends on the set of
// absolute root paths, not their order, so that output from one project is not
// shown in another.
func (c *Config) OutputDir(roots []string) string {
	dir := c.Directory()
	if c.Disabled || dir == "" {
		return ""
	}
	return filepath.Join(dir, outputDir, rootsHash(roots))
}

// rootsHash returns a name for a set of roots, a hash of their paths regardless
// of order.
func rootsHash(roots []string) string {
	sorted := slices.Clone(roots)
	slices.Sort(sorted)
	sum := sha256.Sum256([]byte(strings.Join(slices.Compact(sorted), "\x00")))
	return fmt.Sprintf("%x", sum[:10])
}

// MakeOutputDir creates the directory Config.OutputDir and returns its path. It
// then removes, in the directories of all roots, outputs older than OutputAge,
// and then the oldest until the rest has at most OutputBytes. A program that
// writes outputs calls it from time to time. If only the removal fails, it
// returns the path and an error.
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

// pruneOutputs applies OutputAge and OutputBytes to the outputs of all roots
// together, in parent and its subdirectories. It removes subdirectories that
// have been empty for maxEmptyAge, except current.
func (s *Store) pruneOutputs(parent, current string) error {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return err
	}
	dirs := []string{parent} // earlier versions stored the outputs of all roots there
	for _, entry := range entries {
		dir := filepath.Join(parent, entry.Name())
		if !entry.IsDir() {
			continue
		}
		if info, err := entry.Info(); err == nil && dir != current && fileAge(info) > maxEmptyAge && os.Remove(dir) == nil {
			continue
		}
		dirs = append(dirs, dir)
	}
	return pruneDirs(dirs, s.config.OutputBytes, s.config.OutputAge)
}
