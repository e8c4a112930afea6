package state

import (
	"path/filepath"
	"time"
)

// spillDir holds whole outputs of commands, a file each. They are plain text
// that view and grep show by its absolute name.
const spillDir = "output-1"

const (
	defaultSpillBytes = 1 << 30
	defaultSpillAge   = 3 * 24 * time.Hour
)

// Spilled returns where whole outputs are kept, which a tool that shows files
// puts into sandbox.Config.Readable; "" when nothing is kept.
func (c *Config) Spilled() string {
	dir := c.Directory()
	if c.Disabled || dir == "" {
		return ""
	}
	return filepath.Join(dir, spillDir)
}

// Spill makes the directory for whole outputs, and removes from it what is
// older than three days, then the oldest beyond a gibibyte. Who fills it calls
// this now and then.
func (s *Store) Spill() (string, error) {
	dir, err := s.sub(spillDir)
	if err != nil {
		return "", err
	}
	return dir, prune(dir, s.config.SpillBytes, s.config.SpillAge)
}

// Caches makes the directory for what commands keep between them, such as
// build caches.
func (s *Store) Caches() (string, error) { return s.sub("cache-1") }
