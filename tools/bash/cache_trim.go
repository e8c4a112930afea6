package main

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// The bounds of the caches that build tools keep between commands: a cache
// unused for a month is removed, and above 20 GiB those unused for longest.
const (
	maxCacheBytes = 20 << 30
	maxCacheAge   = 30 * 24 * time.Hour
	// cacheInUseTime is how recently a cache must have been used to be kept
	// regardless of the bounds: a command, perhaps of another server, may
	// be using it.
	cacheInUseTime = time.Hour
	// cacheTrimInterval is the time between two trims.
	cacheTrimInterval = 24 * time.Hour
)

// projectCache has the caches of a project: an entry of the directory of
// caches.
type projectCache struct {
	name  string
	bytes int64
	used  time.Time
}

// trimCaches removes old and excess caches from dir, at most once in cacheTrimInterval.
// Commands write there, so it works relative to dir's descriptor, and links do not lead
// it out. maxBytes bounds the caches that it keeps.
func trimCaches(ctx context.Context, dir string, maxBytes int64, now time.Time) error {
	mark := dir + ".looked-through" // next to dir, where commands cannot write
	if info, err := os.Stat(mark); err == nil && now.Sub(info.ModTime()) < cacheTrimInterval && !info.ModTime().After(now) {
		return nil
	}
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		return err
	}
	if err := os.Chtimes(mark, now, now); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	caches, err := measureCaches(ctx, root)
	if err != nil {
		return err
	}
	slices.SortFunc(caches, func(a, b projectCache) int { return b.used.Compare(a.used) })
	var kept int64
	for _, c := range caches { // most recently used first
		idle := now.Sub(c.used)
		if kept+c.bytes <= maxBytes && idle < maxCacheAge || idle < cacheInUseTime {
			kept += c.bytes
			continue
		}
		if err := removeCache(ctx, root, c.name); err != nil {
			return err
		}
	}
	return nil
}

// measureCaches returns the size and last use of every cache.
func measureCaches(ctx context.Context, root *os.Root) ([]projectCache, error) {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, err
	}
	var caches []projectCache
	for _, entry := range entries {
		c := projectCache{name: entry.Name()}
		err := fs.WalkDir(root.FS(), c.name, func(_ string, entry fs.DirEntry, err error) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				return nil // gone or unreadable: the cache can still be removed
			}
			if info, err := entry.Info(); err == nil && info.Mode()&fs.ModeSymlink == 0 {
				c.bytes += info.Size()
				if used := lastUse(info); used.After(c.used) {
					c.used = used
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		caches = append(caches, c)
	}
	return caches, nil
}

// removeCache removes one cache, including read-only directories, in which Go
// keeps modules.
func removeCache(ctx context.Context, root *os.Root, name string) error {
	err := fs.WalkDir(root.FS(), name, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			root.Chmod(path, 0o700) //nolint:errcheck // the removal fails then
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	return root.RemoveAll(name)
}

// enableCaches creates the directory of caches and trims it in the background
// until the server ends. Without a state directory, it does nothing.
func (s *bashTool) enableCaches(c *proc.Config) {
	dir, err := s.store.CommandCachesDir()
	if err != nil {
		return
	}
	c.CacheDir = filepath.Clean(dir)
	ctx, cancel := context.WithCancel(context.Background())
	s.endTrim = cancel
	s.trims.Go(func() { trimCaches(ctx, dir, maxCacheBytes, time.Now()) }) //nolint:errcheck // they are only too large, or too old
}
