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
	deepDepth   = 4
	deepDirs    = 300
	deepEntries = 10_000
	deepMasks   = 200
)

// inHome returns the hidden entries and the subdirectories of a directory in a
// home. The result is cached until the directory's time of change differs.
func (r *Runner) inHome(dir string, hide func(string) bool) *folder {
	info, err := os.Stat(dir)
	if err != nil {
		return &folder{}
	}
	changed := fileinfo.ChangeTime(info)
	r.mu.Lock()
	known := r.home[dir]
	r.mu.Unlock()
	if known != nil && known.current(changed) {
		return known
	}
	now := &folder{read: time.Now(), changed: changed}
	entries, _ := os.ReadDir(dir)
	now.entries = len(entries)
	for _, entry := range entries {
		name, path := entry.Name(), filepath.Join(dir, entry.Name())
		switch {
		case hide(path):
			now.hidden = append(now.hidden, path)
		case entry.IsDir() && name[0] == '.':
			now.dotted = append(now.dotted, path)
		case entry.IsDir() && name != "node_modules":
			now.below = append(now.below, path)
		}
	}
	r.mu.Lock()
	r.home[dir] = now
	r.mu.Unlock()
	return now
}

// deepInHome lists the hidden files in the visible directories of a home,
// breadth first and within the bounds above, and then those directly in its
// dot directories. It skips roots, which are searched separately.
func (r *Runner) deepInHome(s *spec, home string, hide func(string) bool) (hidden []string) {
	queue := slices.Clone(r.inHome(home, hide).below)
	left := deepEntries
	for depth := 1; depth < deepDepth; depth++ {
		var next []string
		for _, dir := range queue {
			root := slices.ContainsFunc(s.Roots, func(root supervise.Root) bool { return root.Path == dir })
			if root || len(s.deep) >= deepDirs || left < 0 || len(hidden) >= deepMasks {
				continue
			}
			s.deep = append(s.deep, dir)
			f := r.inHome(dir, hide)
			left -= f.entries
			hidden = append(hidden, f.hidden...)
			next = append(next, f.below...)
		}
		queue = next
	}
	return append(hidden, r.hiddenBelow(s, home, hide, &left)...)
}

// hiddenBelow lists the hidden files directly in the dot directories of a home.
func (r *Runner) hiddenBelow(s *spec, home string, hide func(string) bool, left *int) (hidden []string) {
	for _, dir := range r.inHome(home, hide).dotted {
		if len(s.deep) >= deepDirs || *left < 0 {
			break
		}
		s.deep = append(s.deep, dir)
		f := r.inHome(dir, hide)
		*left -= f.entries
		hidden = append(hidden, f.hidden...)
	}
	return hidden
}

// realHomes returns the homes of this user with links resolved, and separately
// the home of the environment, "" if it names none.
func (r *Runner) realHomes() (env string, all []string) {
	for _, pair := range r.config.Environ {
		if home, ok := strings.CutPrefix(pair, "HOME="); ok && filepath.IsAbs(home) {
			if real, err := filepath.EvalSymlinks(home); err == nil {
				env = real
			}
		}
	}
	for _, home := range r.homes() {
		if real, err := filepath.EvalSymlinks(home); err == nil && !slices.Contains(all, real) {
			all = append(all, real)
		}
	}
	if env != "" && !slices.Contains(all, env) {
		all = append(all, env)
	}
	return env, all
}
