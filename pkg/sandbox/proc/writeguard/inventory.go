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

// fileKind says what a watched file is, and so what a command must not do to
// it. checkChanged has the rules for its changes.
type fileKind uint8

const (
	gitSettingsKind     fileKind = iota + 1 // git's settings: a setting that runs a program must not be added
	gitPointerKind                          // .git or commondir: must name a watched repository; gitdir: must name a .git
	gitHookKind                             // a hook of a repository, or a file in place of a directory of git
	gitAttributesKind                       // info/attributes of a repository
	projectSettingsKind                     // settings of agents, editors and other programs; files in core.hooksPath's directory
	rebaseStepsKind                         // steps of an unfinished rebase: a step that runs a command must not be added
	repositoryLinkKind                      // a link in a repository, through which git would write elsewhere
	mergeOptionsKind                        // options of an unfinished rebase, am or cherry-pick, which may name a program or a path
	misplacedHeadKind                       // HEAD of a repository in a directory that has another role: must not be new
	legacyRemoteKind                        // an address of a remote in remotes or branches: must not be new
	reuseListKind                           // MERGE_RR: its paths must lead to ordinary files of the work tree
	judgedSettingsKind                      // .npmrc and other files in which some lines run a program: these must not be added
	autostashKind                           // names the stash that git applies at the end of an operation: held back while no command runs
	gitToolSettingsKind                     // what git instaweb and lazygit run in a repository: must not be new
)

// watchedFile is a file because of whose content other programs run programs.
type watchedFile struct {
	kind fileKind
	// repo is the directory of its repository, or the top directory of the
	// project for project settings, relative to the root.
	repo string
}

// dirRole says why a directory is watched, as its parent directory requires.
// The zero value is a directory without a special role.
type dirRole struct {
	// kind is gitHookKind for hooks, gitAttributesKind for info,
	// rebaseStepsKind for rebase-merge, rebase-apply and sequencer,
	// legacyRemoteKind for remotes and branches, gitToolSettingsKind for gitweb,
	// gitSettingsKind for a
	// repository that a .git names. With projectSettingsKind every file in the
	// directory is watched.
	kind fileKind
	repo string // as watchedFile.repo
}

// inventory finds the watched files of a root. It reads a directory again only
// after its time of change or its inode differs.
type inventory struct {
	root            string
	topDir          *dirCache
	roleDirs        map[string]*dirCache                       // directories watched in another role than their parents require, by names
	entriesLeft     int                                        // number of directory entries that the scan may still examine
	dirState        func(dir string) (state DirState, ok bool) // see Command.Begin; nil: nothing was read
	harmlessIndexes map[string]fileState                       // indexes found harmless while no command ran, in the state of that check
	// runningIndexes are those found harmless while a command ran. They are
	// checked again when no command runs: a command can write through a memory
	// map without a new time of change.
	runningIndexes map[string]fileState
	lastIndexes    []string     // indexes found by the last scan
	keepModes      bool         // no directory is made readable
	madeReadable   []*addedMode // directories made readable, until restoreModes
}

// scanResult is the result of a scan of a root. All names are relative to the
// root.
type scanResult struct {
	files    map[string]watchedFile
	indexes  []string        // index files of repositories
	links    []foundLink     // symbolic links outside repositories
	tooDeep  []string        // directories whose files have too long paths to be examined
	repos    map[string]bool // directories that git treats as a repository
	tops     map[string]bool // directories that have a .git, and the root
	dirKeys  []uint64        // keys of the directories and links outside repositories
	dirTimes []dirTime       // of the directories outside repositories
	complete bool            // the whole root was examined: maxScanEntries was not reached
}

// scan finds the watched files of the root. It follows no link, except from a
// .git to its repository. It makes directories readable that this process
// cannot read, until restoreModes. Everything in hookDirs, names in the root,
// is watched, and so are the files and directories of protected, which are
// absolute paths. included are the names of files with git's settings, programs
// the names of files that git runs.
func (v *inventory) scan(hookDirs, included, programs, protected []string) *scanResult {
	s := &scanResult{files: map[string]watchedFile{}, repos: map[string]bool{}, tops: map[string]bool{".": true}}
	known := v.roleDirs
	v.roleDirs, v.entriesLeft = map[string]*dirCache{}, maxScanEntries
	for _, dir := range hookDirs { // first, so that the walk does not treat them as other directories
		v.walkWithRole(s, known, dir, dirRole{projectSettingsKind, dir})
		if link := v.firstLinkOnPath(dir); link != "" {
			s.files[link] = watchedFile{projectSettingsKind, dir}
		}
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
			if dir, ok := v.gitPointerDir(name); ok && dir != "." && !s.repos[dir] && v.roleDirs[dir] == nil {
				v.walkWithRole(s, known, dir, dirRole{gitSettingsKind, ""})
			}
		}
	}
	s.complete = v.entriesLeft >= 0
	v.lastIndexes = s.indexes
	return s
}

// markIndexesHarmless records that the indexes of the last scan are harmless in
// their current state, because the user made them.
func (v *inventory) markIndexesHarmless() {
	for _, name := range v.lastIndexes {
		if info, err := os.Lstat(filepath.Join(v.root, name)); err == nil {
			v.harmlessIndexes[name] = stateWithoutContent(info, watchedFile{})
		}
	}
}

// walkWithRole searches a directory in a role that its parent does not give it.
// known holds the directories of the last scan.
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

// firstLinkOnPath returns the first link on the way to a directory, which may itself
// be a link, "" if there is none. All are names in the root.
func (v *inventory) firstLinkOnPath(dir string) (link string) {
	for at := 1; at <= len(dir); at++ {
		if at < len(dir) && !os.IsPathSeparator(dir[at]) {
			continue
		}
		info, err := os.Lstat(filepath.Join(v.root, dir[:at]))
		if err != nil {
			return ""
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return dir[:at]
		}
	}
	return ""
}

// addProtected adds to s the protected file at path or, if it is a directory,
// all files below it. It skips missing paths, paths outside the root, and git's
// own files (.git, hooks), which are found with their repository. known holds
// the directories of the last scan.
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

// walk adds the watched files in a directory and below it to s.
func (v *inventory) walk(s *scanResult, at *dirCache) {
	if len(at.path) > maxDirPath {
		s.tooDeep, s.dirKeys = append(s.tooDeep, at.dir), append(s.dirKeys, at.key)
		return
	}
	state, ok := v.stateOf(at.path)
	if state.Closed && !v.keepModes && isUnreadable(at.path) {
		if l, err := addMode(v.root, at.dir, 0o500); err == nil {
			v.madeReadable = append(v.madeReadable, l)
		}
	}
	if !ok {
		at.subdirs, at.files, at.indexes, at.links, at.state, at.readAt = nil, nil, nil, nil, DirState{}, time.Time{}
		return
	}
	// The inode counts, because two directories may have changed at the same time.
	if state.Changed != at.state.Changed || state.Node != at.state.Node || at.readAt.Sub(time.Unix(0, state.Changed)) < supervise.SettledAfter {
		at.readEntries(v.entriesLeft)
		at.state = state
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
		s.dirTimes = append(s.dirTimes, dirTime{at.key, state.Changed})
	}
	for name, found := range at.files {
		s.files[name] = found
	}
	s.indexes = append(s.indexes, at.indexes...)
	s.links = append(s.links, at.links...)
	for _, link := range at.links {
		s.dirKeys = append(s.dirKeys, link.key, link.exactKey)
	}
	for _, below := range at.subdirs {
		if len(v.roleDirs) == 0 || v.roleDirs[below.dir] == nil {
			v.walk(s, below)
		}
	}
}

// DirState is the state of a directory that shows whether its entries changed.
type DirState struct {
	Changed int64     // time of change in nanoseconds since 1970
	Node    [2]uint64 // device and inode
	Closed  bool      // its permissions keep its owner from listing or entering it
}

// stateOf returns the state of the directory at path. ok is false if it does
// not exist. It reuses the result of the search for hidden files, which runs
// just before a command starts.
func (v *inventory) stateOf(path string) (state DirState, ok bool) {
	if v.dirState != nil {
		if state, ok := v.dirState(path); ok {
			return state, true
		}
	}
	return readDirState(path)
}

// isUnreadable reports whether permissions keep this process from listing or
// entering the directory at path.
func isUnreadable(path string) bool {
	d, err := os.Open(path)
	if err == nil {
		d.Close()
		_, err = os.Lstat(path + "/.")
	}
	return errors.Is(err, fs.ErrPermission)
}

// restoreModes restores the permissions of the directories that scan made
// readable.
func (v *inventory) restoreModes() {
	for _, l := range slices.Backward(v.madeReadable) {
		l.restore()
	}
	v.madeReadable = nil
}
