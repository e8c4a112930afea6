package changes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/toolroom-mcp/toolroom/internal/filelock"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/nofollow"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// maxLayers bounds the layers of a set: overlayfs takes their names in one
// option value of 255 bytes.
const maxLayers = 12

// A Set holds pending changes to its roots, in the layers of finished commands.
// It is safe for concurrent use by goroutines and processes.
type Set struct {
	dir string
	id  string

	mu            sync.Mutex
	cachedEntries entryCache
}

// ID returns the id of the set, for Store.Open.
func (s *Set) ID() string { return s.id }

// Roots returns the roots that the set may have changes to.
func (s *Set) Roots() ([]string, error) {
	r, err := s.loadFile()
	if err != nil {
		return nil, err
	}
	return r.Roots, nil
}

// Commands returns the commands that made the changes, the oldest first.
func (s *Set) Commands() ([]string, error) {
	r, err := s.loadFile()
	if err != nil {
		return nil, err
	}
	return r.Commands, nil
}

// loadFile reads set.json. It returns fs.ErrNotExist if the set was applied or
// discarded.
func (s *Set) loadFile() (*setFile, error) {
	data, err := os.ReadFile(filepath.Join(s.dir, "set.json"))
	if err != nil {
		return nil, err
	}
	var r setFile
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("changes %s: %w", s.id, err)
	}
	r = r.convertPaths(decodePath)
	return &r, nil
}

// saveFile replaces set.json atomically.
func (s *Set) saveFile(r *setFile) error {
	data, err := json.Marshal(r.convertPaths(encodePath))
	if err != nil {
		return err
	}
	name := filepath.Join(s.dir, "set.json")
	f, err := os.OpenFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(name+".new", name)
	}
	return err
}

// withFinishedLayers calls change as withLock does, after it has finished the
// layers of killed processes.
func (s *Set) withFinishedLayers(change func(*setFile) error) error {
	return s.withLock(func(r *setFile) error {
		if err := s.finishAbandonedLayers(r); err != nil {
			return err
		}
		return change(r)
	})
}

// withLock calls use with the content of set.json while it holds the lock of
// the set. It returns NOT_FOUND if the set was applied or discarded, and
// otherwise the error of use.
func (s *Set) withLock(use func(*setFile) error) error {
	lock, err := os.OpenFile(filepath.Join(s.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return toolerr.New(toolerr.NotFound, "changes %s are no longer pending: they were applied or discarded", s.id)
		}
		return err
	}
	defer lock.Close() //nolint:errcheck // releases the lock
	if err := waitForLock(lock); err != nil {
		return err
	}
	defer filelock.Unlock(lock)
	r, err := s.loadFile()
	if errors.Is(err, fs.ErrNotExist) {
		return toolerr.New(toolerr.NotFound, "changes %s are no longer pending: they were applied or discarded", s.id)
	}
	if err != nil {
		return err
	}
	return use(r)
}

// Changes returns the differences between the roots and the set, sorted by root
// and path.
func (s *Set) Changes() (list []Change, err error) {
	err = s.withFinishedLayers(func(r *setFile) error {
		list, err = s.diffRoots(r)
		return err
	})
	return list, err
}

// diffRoots returns the result of Changes. The caller holds the lock of the set.
func (s *Set) diffRoots(r *setFile) (list []Change, err error) {
	for i, root := range r.Roots {
		tree, err := nofollow.Open(root)
		if err != nil {
			return nil, err
		}
		part, err := diffRoot(r, i, tree, s.upperDirs(r, i))
		tree.Close() //nolint:errcheck // only read
		if err != nil {
			return nil, err
		}
		list = append(list, part...)
	}
	return list, nil
}

// HasDir reports whether the set contains the directory at path, because a
// command created it or changed something below it. path is absolute. It
// returns false if the set cannot be read.
func (s *Set) HasDir(path string) bool {
	r, err := s.loadFile()
	if err != nil {
		return false
	}
	for i, root := range r.Roots {
		rel, err := filepath.Rel(root, path)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		for _, upper := range s.upperDirs(r, i) {
			at, found := upper, true
			for _, part := range strings.Split(rel, string(filepath.Separator)) {
				closed := isOpaque(at)
				at = filepath.Join(at, part)
				info, err := os.Lstat(at)
				if err == nil && !info.IsDir() || err != nil && closed {
					return false
				}
				if found = err == nil; !found {
					break
				}
			}
			if found {
				return true
			}
		}
	}
	return false
}

// Discard removes the set without applying it. It returns CONFLICT while a
// command runs over the set, and NOT_FOUND if the set was applied or discarded.
// It writes no data, so that it works on a full disk.
func (s *Set) Discard() error {
	err := s.withLock(func(r *setFile) error {
		if err := s.checkIdle(r); err != nil {
			return err
		}
		return os.Rename(filepath.Join(s.dir, "set.json"), filepath.Join(s.dir, "discarded.json"))
	})
	if err == nil {
		removeTree(s.dir)
	}
	return err
}

// checkIdle returns a CONFLICT error while a command runs over the set.
func (s *Set) checkIdle(r *setFile) error {
	for _, l := range r.Layers {
		if s.isRunning(l) {
			return toolerr.New(toolerr.Conflict, "a command still runs over the changes %s: wait for it to end, or end it", s.id)
		}
	}
	return nil
}

// removeTree removes a directory, including directories whose permissions
// commands removed. It ignores errors.
func removeTree(dir string) {
	if os.RemoveAll(dir) == nil {
		return
	}
	filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error { //nolint:errcheck // remaining files are removed with the set
		if entry != nil && entry.IsDir() {
			os.Chmod(name, 0o700) //nolint:errcheck // before WalkDir reads it
			if err != nil {
				return nil
			}
		}
		return nil
	})
	os.RemoveAll(dir) //nolint:errcheck // remaining files are in the state directory
}
