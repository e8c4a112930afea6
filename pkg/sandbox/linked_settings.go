package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/projectfile"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
)

const (
	maxParentDirs = 16   // directories above a target that are searched for links
	maxCachedDirs = 1000 // directories whose links are kept
	// minSettledAge is the least age of a directory's last change for its links to be
	// kept: file systems store times in steps.
	minSettledAge = 100 * time.Millisecond
)

// settingNames lists names of project settings that are the same in all projects.
var settingNames = slices.Concat(projectfile.SettingsDirs(), projectfile.SettingsFiles())

// linkedSettings caches the links in directories whose names are those of project
// settings. Only the user creates such links. The zero value is empty.
type linkedSettings struct {
	mu   sync.Mutex
	dirs map[string]settingLink
}

// settingLink is the cached result of linksTo for one directory, valid while
// its time of change is the same.
type settingLink struct {
	changed time.Time
	names   []string // of the links
}

// linksTo returns the names of the links in a directory that are named like project
// settings; nil if the directory cannot be read.
func (l *linkedSettings) linksTo(dir string) (names []string) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := l.dirs[dir]; ok && known.changed.Equal(info.ModTime()) {
		return known.names
	}
	for _, name := range settingNames {
		if _, err := os.Readlink(filepath.Join(dir, name)); err == nil {
			names = append(names, name)
		}
	}
	if time.Since(info.ModTime()) > minSettledAge {
		if l.dirs == nil || len(l.dirs) >= maxCachedDirs {
			l.dirs = map[string]settingLink{}
		}
		l.dirs[dir] = settingLink{info.ModTime(), names}
	}
	return names
}

// linkedSettingsReason returns why the target is a project's settings although its
// name does not show it, or "": a link with such a name in a directory above points to
// it, or to a directory that contains it.
func (t *Target) linkedSettingsReason() string {
	dir := filepath.Dir(t.Path)
	for range maxParentDirs {
		for _, name := range t.fs.linkedSettings.linksTo(dir) {
			target, err := os.Readlink(filepath.Join(dir, name))
			if err == nil && contains(resolveExistingLinks(resolveIn(dir, target)), t.Path) {
				return "is reached through the link " + pathname.Escape(name) + ", a setting by which an agent, editor or shell starts programs"
			}
		}
		if dir == filepath.Dir(dir) || slices.ContainsFunc(t.fs.roots, func(r *openRoot) bool { return r.Path == dir }) {
			break
		}
		dir = filepath.Dir(dir)
	}
	return ""
}
