package writeguard

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// maxScanEntries bounds the directory entries of a root that are searched for
// repositories and project settings.
const maxScanEntries = 1_000_000

// fileKind says which changes of a watched file are allowed.
type fileKind uint8

const (
	gitSettingsKind     fileKind = iota + 1 // git's settings: a setting that runs a program must not be added
	gitPointerKind                          // .git or commondir: must name a watched repository; gitdir: must name a .git
	gitHookKind                             // of a repository
	gitAttributesKind                       // of a repository
	projectSettingsKind                     // settings of agents, editors and other programs; files in core.hooksPath's directory
	rebaseStepsKind                         // of an unfinished rebase: a step that runs a command must not be added
	repositoryLinkKind                      // a link in a repository, through which git would write elsewhere
	mergeOptionsKind                        // of an unfinished rebase or cherry-pick: the merge strategy must not be a path
)

// watchedFile is a watched file: other programs run programs because of its content.
type watchedFile struct {
	kind fileKind
	// repo is the directory of its repository, or the top directory of the
	// project for project settings.
	repo string
}

// dirRole says how a directory is watched, as its parent directory requires.
type dirRole struct {
	kind fileKind // hookKind: hooks; attributesKind: info; stepsKind: rebase-merge, sequencer; projectKind: every file in it is watched
	repo string
}

// inventory finds the files in a root that make other programs run something.
// It reads a directory again only after its time of change differs.
type inventory struct {
	root            string
	topDir          *dirCache
	roleDirs        map[string]*dirCache                              // directories watched in another way than their parents require
	entriesLeft     int                                               // remaining entries to examine
	dirChanged      func(dir string) (changed int64, closed, ok bool) // see Command.Begin; nil: nothing was read
	harmlessIndexes map[string]fileState                              // indexes found harmless, in the state of that check
	lastIndexes     []string                                          // that take found last
	madeReadable    []*addedMode                                      // directories made readable, until shut
}

// scanResult is the result of an inventory.
type scanResult struct {
	files    map[string]watchedFile
	indexes  []string        // of repositories, by names in the root
	links    []string        // by names in the root
	tooDeep  []string        // directories whose files have too long paths to be examined, by names in the root
	repos    map[string]bool // directories that git treats as a repository
	tops     map[string]bool // directories that have a .git, and the root
	dirKeys  []uint64        // keys of the directories outside repositories
	complete bool            // the bounds were not reached
}

// scan searches the root. It follows no link, except from a .git to its
// repository. Directories that this process cannot read are made readable
// until shut. hookDirs, names in the root, are watched with everything below,
// and so are the files and directories of guard, which are absolute paths.
// included are names of files with git's settings, programs those of files that
// git runs.
func (v *inventory) scan(hookDirs, included, programs, protected []string) *scanResult {
	s := &scanResult{files: map[string]watchedFile{}, repos: map[string]bool{}, tops: map[string]bool{".": true}}
	known := v.roleDirs
	v.roleDirs, v.entriesLeft = map[string]*dirCache{}, maxScanEntries
	for _, dir := range hookDirs { // first, so that the walk does not treat them as other directories
		v.walkWithRole(s, known, dir, dirRole{projectSettingsKind, dir})
	}
	for _, path := range protected {
		v.addProtected(s, known, path)
	}
	for _, name := range included {
		if info, err := os.Lstat(filepath.Join(v.root, name)); err == nil && !info.IsDir() {
			s.files[name] = watchedFile{gitSettingsKind, filepath.Dir(name)}
		}
	}
	for _, name := range programs {
		if info, err := os.Lstat(filepath.Join(v.root, name)); err == nil && !info.IsDir() {
			s.files[name] = watchedFile{projectSettingsKind, filepath.Dir(name)}
		}
	}
	if v.topDir == nil {
		v.topDir = &dirCache{dir: ".", path: v.root, key: dirKey(".")}
	}
	v.walk(s, v.topDir)
	for seen := -1; seen != len(s.files) && v.entriesLeft >= 0; { // repositories in git's own directories
		seen = len(s.files)
		for name, at := range s.files {
			if at.kind != gitPointerKind {
				continue
			}
			if dir, ok := v.pointedDir(name); ok && dir != "." && !s.repos[dir] && v.roleDirs[dir] == nil {
				v.walkWithRole(s, known, dir, dirRole{gitSettingsKind, ""})
			}
		}
	}
	s.complete = v.entriesLeft >= 0
	v.lastIndexes = s.indexes
	return s
}

// markIndexesHarmless takes the indexes as they are for the user's.
func (v *inventory) markIndexesHarmless() {
	for _, name := range v.lastIndexes {
		if info, err := os.Lstat(filepath.Join(v.root, name)); err == nil {
			v.harmlessIndexes[name] = stateWithoutContent(info, watchedFile{})
		}
	}
}

// walkWithRole searches a directory that is watched in its own role.
func (v *inventory) walkWithRole(s *scanResult, known map[string]*dirCache, dir string, as dirRole) {
	one := known[dir]
	if one == nil || one.role != as {
		one = &dirCache{dir: dir, path: filepath.Join(v.root, dir), role: as}
	}
	if v.roleDirs[dir] == nil {
		v.walk(s, one)
		v.roleDirs[dir] = one
	}
}

// addProtected adds a protected file, or a directory with everything below. Files of
// repositories are skipped: they are found with their repository.
func (v *inventory) addProtected(s *scanResult, known map[string]*dirCache, path string) {
	name, err := filepath.Rel(v.root, path)
	if err != nil || !filepath.IsLocal(name) || name == "." || slices.Contains([]string{".git", "hooks", "attributes", "commondir", "gitdir"}, filepath.Base(name)) {
		return
	}
	info, err := os.Lstat(path)
	switch {
	case err != nil:
	case info.IsDir():
		v.walkWithRole(s, known, name, dirRole{projectSettingsKind, filepath.Dir(name)})
	default:
		s.files[name] = watchedFile{projectSettingsKind, filepath.Dir(name)}
	}
}

// maxDirPath bounds the path of a directory in bytes, so that each of its
// entries has a path that the kernel takes (PATH_MAX, NAME_MAX).
const maxDirPath = 4095 - 1 - 255

// walk searches a directory and everything below.
func (v *inventory) walk(s *scanResult, at *dirCache) {
	if len(at.path) > maxDirPath {
		s.tooDeep, s.dirKeys = append(s.tooDeep, at.dir), append(s.dirKeys, at.key)
		return
	}
	changed, closed, ok := v.changeTimeOf(at.path)
	if closed && isUnreadable(at.path) {
		if l, err := addMode(v.root, at.dir, 0o500); err == nil {
			v.madeReadable = append(v.madeReadable, l)
		}
	}
	if !ok {
		at.subdirs, at.files, at.indexes, at.links, at.changed, at.readAt = nil, nil, nil, nil, 0, time.Time{}
		return
	}
	if changed != at.changed || at.readAt.Sub(time.Unix(0, changed)) < supervise.SettledAfter {
		at.readEntries(v.entriesLeft)
		at.changed = changed
	}
	if v.entriesLeft -= at.entryCount; v.entriesLeft < 0 {
		return
	}
	if at.isRepo {
		s.repos[at.dir] = true
	}
	if at.isProjectTop {
		s.tops[at.dir] = true
	}
	if at.role.kind == 0 && !at.isRepo {
		s.dirKeys = append(s.dirKeys, at.key)
	}
	for name, found := range at.files {
		s.files[name] = found
	}
	s.indexes = append(s.indexes, at.indexes...)
	s.links = append(s.links, at.links...)
	for _, below := range at.subdirs {
		if len(v.roleDirs) == 0 || v.roleDirs[below.dir] == nil {
			v.walk(s, below)
		}
	}
}

// changeTimeOf returns a directory's time of change in nanoseconds since 1970,
// whether its permissions keep this process out, and whether it exists. It
// reuses the result of the search for secrets, which runs just before a
// command starts.
func (v *inventory) changeTimeOf(path string) (changed int64, closed, ok bool) {
	if v.dirChanged != nil {
		if changed, closed, ok := v.dirChanged(path); ok {
			return changed, closed, true
		}
	}
	return dirChangeTime(path)
}

// isUnreadable reports whether this process cannot list or enter a directory.
func isUnreadable(path string) bool {
	d, err := os.Open(path)
	if err == nil {
		d.Close()
		_, err = os.Lstat(path + "/.")
	}
	return errors.Is(err, fs.ErrPermission)
}

// restoreModes restores the permissions of the directories that take made readable.
func (v *inventory) restoreModes() {
	for _, l := range slices.Backward(v.madeReadable) {
		l.restore()
	}
	v.madeReadable = nil
}
