package proc

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/fileinfo"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// Bounds of the search for credential stores in deeper directories of a home.
const (
	maxHomeDepth   = 4      // levels of directories, the home included
	maxHomeDirs    = 300    // directories, in all homes together
	maxHomeEntries = 10_000 // directory entries
	maxHomeMasks   = 200    // hidden files
)

// listHomeDir returns the hidden entries and the subdirectories of a directory
// in a home. The result is cached until the directory's time of change differs.
// It is empty if the directory cannot be read.
func (r *Runner) listHomeDir(dir string, isHidden func(string) bool) *dirCache {
	info, err := os.Stat(dir)
	if err != nil {
		return &dirCache{}
	}
	changed := fileinfo.ChangeTime(info)
	r.mu.Lock()
	known := r.homeDirCache[dir]
	r.mu.Unlock()
	if known != nil && known.isCurrent(changed) {
		return known
	}
	now := &dirCache{readAt: time.Now(), changed: changed}
	entries, _ := os.ReadDir(dir)
	now.entryCount = len(entries)
	for _, entry := range entries {
		name, path := entry.Name(), filepath.Join(dir, entry.Name())
		switch {
		case isHidden(path):
			now.hidden = append(now.hidden, path)
		case entry.IsDir() && name[0] == '.':
			now.dotDirs = append(now.dotDirs, path)
		case entry.IsDir() && name != "node_modules":
			now.subdirs = append(now.subdirs, path)
		}
	}
	r.mu.Lock()
	r.homeDirCache[dir] = now
	r.mu.Unlock()
	return now
}

// hiddenDeepInHome lists the hidden files in the visible directories of a home,
// breadth first and within the bounds, and then those directly in its dot
// directories. It adds the searched directories to s.homeDirs. It skips roots,
// which are searched separately.
func (r *Runner) hiddenDeepInHome(s *spec, home string, isHidden func(string) bool) (hidden []string) {
	queue := slices.Clone(r.listHomeDir(home, isHidden).subdirs)
	entriesLeft := maxHomeEntries
	for depth := 1; depth < maxHomeDepth; depth++ {
		var next []string
		for _, dir := range queue {
			root := slices.ContainsFunc(s.Roots, func(root supervise.Root) bool { return root.Path == dir })
			if root || len(s.homeDirs) >= maxHomeDirs || entriesLeft < 0 || len(hidden) >= maxHomeMasks {
				continue
			}
			s.homeDirs = append(s.homeDirs, dir)
			f := r.listHomeDir(dir, isHidden)
			entriesLeft -= f.entryCount
			hidden = append(hidden, f.hidden...)
			next = append(next, f.subdirs...)
		}
		queue = next
	}
	return append(hidden, r.hiddenInDotDirs(s, home, isHidden, &entriesLeft)...)
}

// hiddenInDotDirs lists the hidden files directly in the dot directories of a
// home, while entriesLeft, which it decreases, is not negative.
func (r *Runner) hiddenInDotDirs(s *spec, home string, isHidden func(string) bool, entriesLeft *int) (hidden []string) {
	for _, dir := range r.listHomeDir(home, isHidden).dotDirs {
		if len(s.homeDirs) >= maxHomeDirs || *entriesLeft < 0 {
			break
		}
		s.homeDirs = append(s.homeDirs, dir)
		f := r.listHomeDir(dir, isHidden)
		*entriesLeft -= f.entryCount
		hidden = append(hidden, f.hidden...)
	}
	return hidden
}

// realHomes returns the homes of this user with links resolved (all), and the
// home that the environment names (envHome), "" if it names none.
func (r *Runner) realHomes() (envHome string, all []string) {
	for _, pair := range r.config.Environ {
		if home, ok := strings.CutPrefix(pair, "HOME="); ok && filepath.IsAbs(home) {
			if resolved, err := filepath.EvalSymlinks(home); err == nil {
				envHome = resolved
			}
		}
	}
	for _, home := range r.accountHomes() {
		if resolved, err := filepath.EvalSymlinks(home); err == nil && !slices.Contains(all, resolved) {
			all = append(all, resolved)
		}
	}
	if envHome != "" && !slices.Contains(all, envHome) {
		all = append(all, envHome)
	}
	return envHome, all
}
