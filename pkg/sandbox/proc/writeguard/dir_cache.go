package writeguard

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/gitfile"
	"github.com/toolroom-mcp/toolroom/internal/projectfile"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/fileinfo"
)

// dirCache caches the entries of one directory of an inventory. The names are
// relative to the root.
type dirCache struct {
	dir, path        string   // name in the root, absolute path
	state            DirState // as read
	readAt           time.Time
	role             dirRole
	entryCount       int
	isRepo           bool
	isProjectTop     bool                   // it has a .git, or is the root
	ofPackageManager bool                   // it is in one of packageManagerDirs
	key              uint64                 // dirKey of dir
	outerRepo        string                 // the repository that the directory above is or is in, "" in a work tree
	inRepo           string                 // the repository that dir is or is in, "" in a work tree
	files            map[string]watchedFile // the watched files directly in it
	indexes          []string               // index files of a repository
	links            []foundLink            // symbolic links, except in repositories and in directories of package managers
	subdirs          []*dirCache
}

// readEntries reads a directory, and keeps the cached entries of its
// subdirectories. It skips no directory: a repository may be among the objects
// of another, and any project may use the names of a repository's parts. If the
// directory has more entries than maxEntries, entryCount is maxEntries+1.
func (v *dirCache) readEntries(maxEntries int) {
	known := make(map[string]*dirCache, len(v.subdirs))
	for _, below := range v.subdirs {
		known[below.dir] = below
	}
	v.readAt, v.files, v.subdirs, v.entryCount, v.isRepo, v.isProjectTop = time.Now(), map[string]watchedFile{}, nil, 0, false, false
	v.indexes, v.links, v.inRepo = nil, nil, v.outerRepo
	d, err := os.Open(v.path)
	if err != nil {
		return
	}
	entries, _ := d.ReadDir(maxEntries + 1)
	d.Close()
	v.entryCount = len(entries)
	kind := v.role.kind
	v.isRepo = kind == gitSettingsKind || (kind == 0 || kind == projectSettingsKind) && isDotGitName(filepath.Base(v.dir)) || kind == 0 && looksLikeRepository(entries)
	isMisplaced := v.isMisplacedRepository(entries)
	v.isProjectTop = v.dir == "." || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return isDotGitName(e.Name()) })
	switch {
	case v.isRepo:
		v.inRepo = v.dir
	case v.isProjectTop && !v.isOfGit():
		v.inRepo = ""
	}
	for _, entry := range entries {
		name := filepath.Join(v.dir, entry.Name())
		switch {
		case isMisplaced && entry.Name() == "HEAD" && !entry.IsDir():
			v.files[name] = watchedFile{misplacedHeadKind, v.dir}
		case isDotGitName(entry.Name()) && !entry.IsDir():
			v.files[name] = watchedFile{gitPointerKind, v.dir}
		case kind == projectSettingsKind && (!v.isRepo || !v.addRepositoryEntry(name, entry)):
			v.addProjectSettings(name, entry, v.role)
		case kind == projectSettingsKind:
		case kind == gitHookKind:
			if entry.IsDir() {
				v.addSubdir(name, dirRole{})
			} else if !strings.HasSuffix(entry.Name(), ".sample") {
				v.files[name] = watchedFile{gitHookKind, v.role.repo}
			}
		case kind == gitAttributesKind:
			if entry.IsDir() {
				v.addSubdir(name, dirRole{})
			} else if entry.Name() == "attributes" {
				v.files[name] = watchedFile{gitAttributesKind, v.role.repo}
			} else {
				v.addRepositoryLink(name, entry)
			}
		case kind == rebaseStepsKind:
			if entry.IsDir() {
				v.addSubdir(name, dirRole{})
			} else if kind := operationKind(entry); kind != 0 {
				v.files[name] = watchedFile{kind, v.role.repo}
			} else {
				v.addRepositoryLink(name, entry)
			}
		case kind == legacyRemoteKind:
			if entry.IsDir() {
				v.addSubdir(name, dirRole{})
			} else {
				v.files[name] = watchedFile{legacyRemoteKind, v.role.repo}
			}
		case kind == gitToolSettingsKind:
			if entry.IsDir() {
				v.addSubdir(name, dirRole{})
			} else if !slices.Contains([]string{"pid", "access.log", "error.log"}, entry.Name()) {
				v.files[name] = watchedFile{gitToolSettingsKind, v.role.repo}
			}
		case v.isRepo && v.addRepositoryEntry(name, entry) || v.addRepositoryLink(name, entry):
		default:
			v.addEntry(name, entry)
		}
	}
	for i, below := range v.subdirs {
		if was := known[below.dir]; was != nil && was.role == below.role && was.outerRepo == below.outerRepo {
			v.subdirs[i] = was
		}
	}
}

// operationKind returns the kind of the file entry in the directory of a
// rebase, am or sequencer, 0 for one that is not watched.
func operationKind(entry os.DirEntry) fileKind {
	switch {
	case entry.Name() == rebaseTodoName && entry.Type()&fs.ModeSymlink == 0:
		return rebaseStepsKind
	case !entry.Type().IsRegular():
	case gitfile.IsOptionsFile(entry.Name()):
		return mergeOptionsKind
	case entry.Name() == autostashName:
		return autostashKind
	}
	return 0
}

// isOfGit reports whether the directory belongs to the repository v.inRepo
// itself, not to a work tree that lies in a bare repository. A .git in it does
// not make it a work tree.
func (v *dirCache) isOfGit() bool {
	rel, err := filepath.Rel(v.inRepo, v.dir)
	return v.inRepo != "" && err == nil && isGitDir(v.inRepo, rel)
}

// isMisplacedRepository reports whether git would treat the directory as a
// repository although it has another role (hooks, info, settings of a project),
// or although its work tree would be a directory of another repository.
func (v *dirCache) isMisplacedRepository(entries []os.DirEntry) bool {
	if isDotGitName(filepath.Base(v.dir)) && (v.role.kind == 0 || v.role.kind == projectSettingsKind) {
		return v.outerRepo != ""
	}
	return v.role.kind != 0 && v.role.kind != gitSettingsKind && looksLikeRepository(entries)
}

// addRepositoryLink adds the entry to the watched files if it is a link in a
// repository, and reports whether it is.
func (v *dirCache) addRepositoryLink(name string, entry os.DirEntry) bool {
	if v.inRepo == "" || entry.Type()&fs.ModeSymlink == 0 {
		return false
	}
	v.files[name] = watchedFile{repositoryLinkKind, v.inRepo}
	return true
}

// addSubdir adds a subdirectory to be searched, unless it is on a pseudo file
// system such as /proc.
func (v *dirCache) addSubdir(name string, as dirRole) {
	path := filepath.Join(v.path, filepath.Base(name))
	if !fileinfo.IsPseudoDir(path) {
		v.subdirs = append(v.subdirs, &dirCache{
			dir: name, path: path, role: as, key: dirKey(name),
			outerRepo: v.inRepo, inRepo: v.inRepo, ofPackageManager: v.ofPackageManager || slices.Contains(packageManagerDirs, filepath.Base(name)),
		})
	}
}

// addRepositoryEntry adds an entry of a repository's directory to the watched
// files or to the subdirectories. It returns false for an entry that has no
// special meaning there.
func (v *dirCache) addRepositoryEntry(name string, entry os.DirEntry) bool {
	dir := v.dir
	if entry.Type().IsRegular() && (entry.Name() == "index" || strings.HasPrefix(entry.Name(), "sharedindex.")) {
		v.indexes = append(v.indexes, name)
	}
	switch entry.Name() {
	case "config", "config.worktree":
		v.files[name] = watchedFile{gitSettingsKind, dir}
	case "commondir", "gitdir":
		v.files[name] = watchedFile{gitPointerKind, dir}
	case reuseListName:
		if entry.Type()&fs.ModeSymlink != 0 {
			return false
		}
		v.files[name] = watchedFile{reuseListKind, dir}
	case mergeAutostashName:
		if !entry.Type().IsRegular() {
			return false
		}
		v.files[name] = watchedFile{autostashKind, dir}
	case "hooks":
		if entry.IsDir() {
			v.addSubdir(name, dirRole{gitHookKind, dir})
		} else {
			v.files[name] = watchedFile{gitHookKind, dir}
		}
	case "info":
		if entry.IsDir() {
			v.addSubdir(name, dirRole{gitAttributesKind, dir})
		} else {
			v.files[name] = watchedFile{gitHookKind, dir} // a link would hide its target
		}
	case "remotes", "branches":
		if !entry.IsDir() {
			return false
		}
		v.addSubdir(name, dirRole{legacyRemoteKind, dir})
	case "lazygit.yml":
		if entry.IsDir() {
			return false
		}
		v.files[name] = watchedFile{gitToolSettingsKind, dir}
	case "gitweb":
		if !entry.IsDir() {
			return false
		}
		v.addSubdir(name, dirRole{gitToolSettingsKind, dir})
	case "rebase-merge", "rebase-apply", "sequencer":
		if entry.IsDir() {
			v.addSubdir(name, dirRole{rebaseStepsKind, dir})
		} else {
			v.files[name] = watchedFile{gitHookKind, dir}
		}
	default:
		return false
	}
	return true
}

// addEntry adds an entry of a directory outside repositories to the watched
// files or the subdirectories, by its name and type.
func (v *dirCache) addEntry(name string, entry os.DirEntry) {
	dir := v.dir
	switch {
	case v.isProjectTop && entry.Name() == ".gitmodules" && !entry.IsDir():
		v.files[name] = watchedFile{gitSettingsKind, dir}
	case !v.isProjectTop && v.ofPackageManager:
		v.addPlainEntry(name, entry)
	case !entry.IsDir() && projectfile.IsJudgedByContent(entry.Name()):
		v.files[name] = watchedFile{judgedSettingsKind, dir}
	case entry.Type()&fs.ModeSymlink != 0 && projectfile.HoldsParentSettings(entry.Name()) && linksToDirOrNothing(filepath.Join(v.path, entry.Name())):
		v.files[name] = watchedFile{projectSettingsKind, dir}
	case !entry.IsDir() && projectfile.IsSettingsPointer(filepath.Base(dir), entry.Name()):
		v.files[name] = watchedFile{projectSettingsKind, filepath.Dir(dir)}
	default:
		switch projectfile.SettingsDepth(filepath.Base(dir), entry.Name()) {
		case 1:
			v.addProjectSettings(name, entry, dirRole{projectSettingsKind, dir})
		case 2:
			v.addProjectSettings(name, entry, dirRole{projectSettingsKind, filepath.Dir(dir)})
		default:
			if up := filepath.Dir(dir); projectfile.IsSettingsThreeUp([2]string{filepath.Base(up), filepath.Base(dir)}, entry.Name()) {
				v.addProjectSettings(name, entry, dirRole{projectSettingsKind, filepath.Dir(up)})
			} else {
				v.addPlainEntry(name, entry)
			}
		}
	}
}

// addPlainEntry adds an entry whose name has no special meaning: a subdirectory
// to be searched, or a link to be remembered.
func (v *dirCache) addPlainEntry(name string, entry os.DirEntry) {
	switch {
	case entry.IsDir():
		v.addSubdir(name, dirRole{})
	case entry.Type()&fs.ModeSymlink != 0 && !v.ofPackageManager:
		target, _ := os.Readlink(filepath.Join(v.path, entry.Name()))
		v.links = append(v.links, foundLink{name, dirKey(name), dirKey(name + "\x00" + target)})
	}
}

// linksToDirOrNothing reports whether the link at path link leads to a
// directory, or to a path where no file is yet.
func linksToDirOrNothing(link string) bool {
	info, err := os.Stat(link)
	return err != nil || info.IsDir()
}

// addProjectSettings adds name, the settings of a project: a file to the
// watched files, or a directory in which all files are watched. as is the role
// of that directory.
func (v *dirCache) addProjectSettings(name string, entry os.DirEntry, as dirRole) {
	switch {
	case !entry.IsDir():
		v.files[name] = watchedFile{projectSettingsKind, as.repo}
	case isWorktreesOfClaude(name):
		v.addSubdir(name, dirRole{})
	default:
		v.addSubdir(name, as)
	}
}
