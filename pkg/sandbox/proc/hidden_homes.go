package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/fileinfo"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/secret"
)

// Bounds of the search for credential stores and keys in deeper directories of
// a home. If one is reached, the gaps say so.
const (
	maxHomeDepth   = 4      // levels of directories, the home included
	maxHomeDirs    = 300    // directories, in all homes together
	maxHomeEntries = 10_000 // directory entries
	maxHomeMasks   = 200    // hidden files
	maxHomeKeys    = 300    // files whose names suggest a private key
)

// homeCacheTime is how long the state of a directory below a dot directory of a
// home, or of a key in a home, is taken for current without a look at it. Homes
// have hundreds of such directories, and commands may follow each other fast.
const homeCacheTime = time.Second

// homeSearch is the state of the search of all homes for the hidden files of
// one command.
type homeSearch struct {
	*Runner
	s           *spec
	isHidden    func(path string) bool
	isStore     func(path string) bool // hidden for another reason than settings with secrets
	isAllowed   func(path string) bool
	listed      map[string]*dirCache      // directories of this search
	keyChecks   map[string]cachedKeyCheck // files of this search, see Runner.homeKeyChecks
	entriesLeft int
	hidden      []string
	incomplete  bool // a bound was reached
}

// searchHomes returns the hidden files of all homes: those in the directories
// of credential stores, and those in the first levels of the homes. It sets
// s.homeDirs, and adds to s.gaps if a bound was reached.
//
// Settings with secrets are hidden, too, except those that build tools read
// while there is no network.
func (r *Runner) searchHomes(s *spec, rules Rules) []string {
	isHidden := func(path string) bool {
		return rules.Denied(path) || rules.Masked(path) && (r.config.hasNetwork() || !secret.IsBuildSettings(path))
	}
	h := &homeSearch{
		Runner: r, s: s, isHidden: isHidden, isStore: rules.Denied, isAllowed: rules.ExplicitlyAllowed, entriesLeft: maxHomeEntries,
		listed: map[string]*dirCache{}, keyChecks: map[string]cachedKeyCheck{},
	}
	for _, home := range s.homes {
		for _, dir := range homeStoreDirs {
			h.addHidden(h.list(filepath.Join(home, dir)))
		}
	}
	for _, home := range s.homes {
		h.descend(home)
	}
	h.addKeys()
	if h.incomplete {
		s.gaps = append(s.gaps, homeTooLargeGap)
	}
	return h.hidden
}

// homeTooLargeGap describes the gap for homes that are too large to search.
var homeTooLargeGap = fmt.Sprintf("credentials in the home directory outside their usual places, since it has more than %d directories in its first three levels", maxHomeDirs)

// addHidden adds the hidden files of a directory to h.hidden. Without network, it
// leaves out settings that are in a root under any name: builds in the root may
// need them.
func (h *homeSearch) addHidden(f *dirCache) {
	for _, path := range f.hidden {
		if h.config.hasNetwork() || h.isStore(path) || !h.isInRoot(path) {
			h.hidden = append(h.hidden, path)
		}
	}
}

// isInRoot reports whether a file is in a root, leads to one in a root, or may be
// one by another hard link.
func (h *homeSearch) isInRoot(path string) bool {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	info, err := os.Lstat(resolved)
	return err == nil && info.Mode().IsRegular() && fileinfo.Links(info) > 1 ||
		slices.ContainsFunc(h.s.Roots, func(root supervise.Root) bool { return supervise.IsBeneath(root.Path, resolved) })
}

// list returns the content of a directory in a home. The result is cached until
// the directory's time of change differs. It is empty if the directory cannot
// be read.
func (h *homeSearch) list(dir string) *dirCache {
	if f := h.listed[dir]; f != nil {
		return f
	}
	f := h.listHomeDir(dir, h.isHidden)
	h.listed[dir] = f
	return f
}

// listBelow returns the content of a directory below a home, as list does. It
// takes a directory below a dot directory for unchanged for homeCacheTime.
func (h *homeSearch) listBelow(home, dir string) *dirCache {
	if h.listed[dir] == nil && strings.Contains(strings.TrimPrefix(dir, home), "/.") {
		h.mu.Lock()
		f := h.homeDirCache[dir]
		if f != nil && time.Since(f.seenAt) < homeCacheTime {
			h.listed[dir] = f
		}
		h.mu.Unlock()
	}
	return h.list(dir)
}

// listHomeDir returns the content of a directory in a home, from the cache while the
// directory's time of change is the same. It is empty if the directory cannot be read.
// isHidden reports whether a path must be hidden.
func (r *Runner) listHomeDir(dir string, isHidden func(string) bool) *dirCache {
	info, err := os.Stat(dir)
	if err != nil {
		return &dirCache{}
	}
	changed := fileinfo.ChangeTime(info)
	now := &dirCache{readAt: time.Now(), changed: changed}
	r.mu.Lock()
	known := r.homeDirCache[dir]
	current := known != nil && known.isCurrent(changed)
	if current {
		known.seenAt = now.readAt
	}
	r.mu.Unlock()
	if current {
		return known
	}
	entries := r.config.HomeListings.read(dir, changed)
	now.entryCount = len(entries)
	for _, entry := range entries {
		name, path := entry.Name(), filepath.Join(dir, entry.Name())
		switch {
		case isHidden(path):
			now.hidden = append(now.hidden, path)
		case entry.IsDir():
			switch {
			case name == "node_modules" || name == ".git" || name == ".cache":
			case name[0] == '.':
				now.dotDirs = append(now.dotDirs, path)
			default:
				now.subdirs = append(now.subdirs, path)
			}
		case entry.Type().IsRegular() && secret.MaybeKeyName(name):
			now.keyCandidates = append(now.keyCandidates, path)
		}
	}
	r.mu.Lock()
	r.homeDirCache[dir] = now
	r.mu.Unlock()
	return now
}

// descend searches the directories of a home breadth first and within the
// bounds, on each level the visible ones first. It adds them to s.homeDirs. It
// skips roots, which are searched separately.
func (h *homeSearch) descend(home string) {
	top := h.list(home)
	queue := slices.Concat(top.subdirs, top.dotDirs)
	for depth := 1; depth < maxHomeDepth; depth++ {
		var visible, dotted []string
		for _, dir := range queue {
			if slices.ContainsFunc(h.s.Roots, func(root supervise.Root) bool { return root.Path == dir }) {
				continue
			}
			if len(h.s.homeDirs) >= maxHomeDirs || h.entriesLeft < 0 || len(h.hidden) >= maxHomeMasks {
				h.incomplete = true
				return
			}
			h.s.homeDirs = append(h.s.homeDirs, dir)
			f := h.listBelow(home, dir)
			h.entriesLeft -= f.entryCount
			h.addHidden(f)
			visible = append(visible, f.subdirs...)
			dotted = append(dotted, f.dotDirs...)
		}
		queue = append(visible, dotted...)
	}
}

// addKeys adds the private keys in the listed directories to h.hidden.
func (h *homeSearch) addKeys() {
	h.keysMu.Lock()
	defer h.keysMu.Unlock()
	fresh := time.Since(h.homeKeysAt) < homeCacheTime
	if !fresh {
		h.homeKeysAt = time.Now()
	}
	for _, f := range h.listed {
		for _, path := range f.keyCandidates {
			if len(h.keyChecks) >= maxHomeKeys {
				h.incomplete = true
				break
			}
			earlier, had := h.homeKeyChecks[path]
			isKey, err := earlier.secret, error(nil)
			if had && fresh {
				h.keyChecks[path] = earlier
			} else {
				_, isKey, err = isPrivateKeyFile(path, h.homeKeyChecks, h.keyChecks)
			}
			if err == nil && isKey && !h.isAllowed(path) {
				h.hidden = append(h.hidden, path)
			}
		}
	}
	h.homeKeyChecks = h.keyChecks
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
