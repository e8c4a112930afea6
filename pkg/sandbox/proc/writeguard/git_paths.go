package writeguard

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/gitfile"
	"github.com/toolroom-mcp/toolroom/internal/projectfile"
)

// gitPaths are the paths that git's settings name, as names in the root. They
// need not exist.
type gitPaths struct {
	namedPaths

	pathResolver

	baseline *baseline
	tops     map[string]bool // the work trees of the root, as names in it, and absolute paths of those outside that contain the root
	user     UserGitSettings
	outer    []outerRepository // repositories outside the root that apply in it
	cache    *settingsCache
}

// namedPaths are names in a root. As part of the baseline, it is stored with
// encoding/gob.
type namedPaths struct {
	HookDirs      []string // directories that core.hooksPath names, or to which links in place of project settings lead
	SettingsFiles []string // files with settings that the user's or the repositories' include
	Programs      []string // programs that other settings name, links on the way to all of these, files to which links in place of project settings lead
}

// newGitPaths returns a gitPaths for a root that has no paths yet: findGitPaths adds
// them. Its work trees are those of the baseline, and those of the repositories outer
// that contain the root.
func (b *baseline) newGitPaths(root string, user UserGitSettings, outer []outerRepository, cache *settingsCache) *gitPaths {
	p := &gitPaths{pathResolver: pathResolver{root: root}, baseline: b, tops: b.Tops, user: user, outer: outer, cache: cache}
	if len(outer) > 0 {
		p.tops = maps.Clone(b.Tops)
		for _, repo := range outer {
			for _, top := range repo.tops {
				if !isAtOrBelowPath(root, top) {
					p.tops[top] = true
				}
			}
		}
	}
	return p
}

// findGitPaths finds the paths that the settings of the user, of the root's
// repositories and of those around it name, and those that the settings of other
// roots name. Its lists are sorted.
func (b *baseline) findGitPaths(root string, user UserGitSettings, cache *settingsCache) *gitPaths {
	outer := b.outerRepositoriesOf(root, cache)
	p := b.newGitPaths(root, user, outer, cache)
	for _, path := range user.Files {
		if name, _ := p.resolve(path); name != "" {
			p.SettingsFiles = append(p.SettingsFiles, name)
		} else if user.runs != nil {
			p.addSettings(path, user.runs(path), p.tops, "", 0)
		}
	}
	for _, path := range user.HooksPaths {
		p.addHooksDir(path, p.tops, "")
	}
	for name, it := range b.Items {
		isLink := it.Mode&fs.ModeSymlink != 0
		if isLink && it.Spot == projectSettingsKind && !slices.Contains(b.Programs, name) || isLink && it.Spot == gitHookKind && isHook(name) {
			p.addLinkedSettings(filepath.Join(root, name))
		}
	}
	for _, s := range b.settingsSources(root, outer, cache) {
		p.addSource(s)
	}
	for _, repo := range outer {
		p.addOuterHooks(repo)
	}
	for _, other := range b.Named {
		p.HookDirs = append(p.HookDirs, other.HookDirs...)
		p.SettingsFiles = append(p.SettingsFiles, other.SettingsFiles...)
		p.Programs = append(p.Programs, other.Programs...)
	}
	p.sortLists()
	return p
}

// sortLists sorts the lists of p and removes duplicates, and from HookDirs the
// directories that are watched with their repository.
func (p *gitPaths) sortLists() {
	p.HookDirs = slices.DeleteFunc(p.HookDirs, func(dir string) bool {
		return isDefaultHooksDir(dir) || filepath.Base(dir) == "hooks" && p.baseline.Repos[filepath.Dir(dir)]
	})
	for _, list := range []*[]string{&p.HookDirs, &p.SettingsFiles, &p.Programs} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
}

// addSource adds the paths that the settings of the file s name.
func (p *gitPaths) addSource(s settingsSource) {
	tops := p.tops
	if s.repo != "" {
		tops = make(map[string]bool, len(s.tops))
		for _, top := range s.tops {
			tops[top] = true
		}
	}
	p.addSettings(s.file, s.runs, tops, s.repo, 0)
}

// addOuterHooks adds the hooks of a repository outside the root that are in the
// root, or links to files in it, and its attributes.
func (p *gitPaths) addOuterHooks(repo outerRepository) {
	p.addHooksDir(filepath.Join(repo.common, "hooks"), nil, repo.common)
	p.addProgram(filepath.Join(repo.common, "info", "attributes"))
}

// addProgram adds the file at path, which git runs, to Programs if it is in the
// root, and the links on the way to it.
func (p *gitPaths) addProgram(path string) {
	name, links := p.resolve(path)
	if p.Programs = append(p.Programs, links...); name != "" {
		p.Programs = append(p.Programs, name)
	}
}

// addSettings adds the paths that the settings runs (KEY=VALUE) of a file name,
// for the work trees of tops. repo is the file's repository, "" for an included
// file. depth counts the includes that led to the file.
func (p *gitPaths) addSettings(file string, runs []string, tops map[string]bool, repo string, depth int) {
	for _, program := range gitfile.ProgramPaths(runs) {
		for _, path := range p.user.ExpandHome(program) {
			for top := range tops {
				p.addProgram(joinIfRelative(p.root, top, path))
			}
		}
	}
	for _, setting := range runs {
		key, value, _ := strings.Cut(setting, "=")
		p.addShellCommand(key, value, tops)
		switch {
		case value == "":
		case key == "core.hookspath":
			for _, path := range p.user.ExpandHome(value) {
				p.addHooksDir(filepath.FromSlash(path), tops, repo)
			}
		case key == "core.worktree": // another link in its place leads elsewhere
			path := filepath.FromSlash(value)
			if !filepath.IsAbs(path) {
				path = filepath.Join(filepath.Dir(file), path)
			}
			dir, links := p.resolve(path)
			for p.Programs = append(p.Programs, links...); dir != "" && dir != "."; dir = filepath.Dir(dir) {
				p.Programs = append(p.Programs, dir)
			}
		case strings.HasPrefix(key, "include") && strings.HasSuffix(key, ".path"):
			for _, path := range p.user.ExpandHome(value) {
				if path = filepath.FromSlash(path); !filepath.IsAbs(path) {
					path = filepath.Join(filepath.Dir(file), path)
				}
				p.addIncluded(path, tops, repo, depth)
			}
		}
	}
}

// addHooksDir adds a directory of hooks for the work trees of tops. A relative
// path is also one below repo, "" for all repositories: git receive-pack runs
// hooks there. Of a directory that contains a project, it adds the hooks only,
// of one outside the root the files in the root to which its links lead.
func (p *gitPaths) addHooksDir(path string, tops map[string]bool, repo string) {
	repos := p.baseline.Repos
	if repo != "" {
		repos = map[string]bool{repo: true}
	}
	for _, dirs := range []map[string]bool{tops, repos} {
		for dir := range dirs {
			path := joinIfRelative(p.root, dir, path)
			name, links := p.resolve(path)
			if p.Programs = append(p.Programs, links...); name != "" {
				p.addHooksDirInRoot(name)
				continue
			}
			for _, link := range p.cache.readDir(path).links {
				p.addProgram(link)
			}
		}
	}
}

// addHooksDirInRoot adds dir, a name in the root, to HookDirs. If dir contains
// a project, it adds the hooks in it to Programs instead.
func (p *gitPaths) addHooksDirInRoot(dir string) {
	contains := func(known map[string]bool) bool {
		for name := range known {
			if isAtOrBelow(dir, name) {
				return true
			}
		}
		return false
	}
	if !contains(p.baseline.Tops) && !contains(p.baseline.Repos) {
		p.HookDirs = append(p.HookDirs, dir)
		return
	}
	for _, hook := range gitfile.HookNames {
		p.Programs = append(p.Programs, filepath.Join(dir, hook))
	}
}

// isHook reports whether name, the path of a file in a root, is the name of a
// hook of a repository, or of its directory of hooks.
func isHook(name string) bool {
	return filepath.Base(name) == "hooks" || filepath.Base(filepath.Dir(name)) == "hooks"
}

// workTreePointers returns the repositories that the .git files of the baseline
// name, by the directories of these files.
func (b *baseline) workTreePointers(root string) map[string]string {
	repos := map[string]string{}
	for name, it := range b.Items {
		if it.Spot != gitPointerKind || !isDotGitName(filepath.Base(name)) {
			continue
		}
		path, ok := gitfile.PointerTarget(".git", it.Content)
		if !ok || path == "" {
			continue
		}
		if rel, err := filepath.Rel(root, joinIfRelative(root, filepath.Dir(name), path)); err == nil && filepath.IsLocal(rel) {
			repos[filepath.Dir(name)] = rel
		}
	}
	return repos
}

// addLinkedSettings adds the target of link, which is in place of project
// settings, to Programs or, if it is a directory, to HookDirs.
func (p *gitPaths) addLinkedSettings(link string) {
	name, _ := p.resolve(link)
	info, err := os.Stat(link)
	isDir := err == nil && info.IsDir()
	if projectfile.HoldsParentSettings(filepath.Base(link)) {
		return
	}
	if name != "" && (isDir || err != nil) { // a command may make a directory at a missing target
		p.HookDirs = append(p.HookDirs, name)
	}
	if !isDir {
		if _, target := p.firstLink(link); target != "" { // the link itself is watched already
			p.addProgram(target)
		}
	}
}

// addIncluded adds a file that the settings of a repository include, for the work trees
// of tops. The settings of a file in the root are those in the baseline. depth counts the
// files that include it, at most maxIncludeDepth.
func (p *gitPaths) addIncluded(path string, tops map[string]bool, repo string, depth int) {
	name, links := p.resolve(path)
	p.Programs = append(p.Programs, links...)
	if name != "" {
		p.SettingsFiles = append(p.SettingsFiles, name)
	}
	switch it, ok := p.baseline.Items[name]; {
	case depth == maxIncludeDepth:
	case name == "":
		p.addSettings(path, p.cache.settingsThatRun(path), tops, repo, depth+1)
	case ok && it.Spot == gitSettingsKind:
		p.addSettings(path, it.Runs, tops, repo, depth+1)
	}
}

// maxIncludedBytes bounds a settings file outside the root. A larger file is
// ignored.
const maxIncludedBytes = 1 << 20

// joinIfRelative returns path if it is absolute, else dir/path, or root/dir/path
// if dir is relative.
func joinIfRelative(root, dir, path string) string {
	switch {
	case filepath.IsAbs(path):
		return path
	case filepath.IsAbs(dir):
		return filepath.Join(dir, path)
	}
	return filepath.Join(root, dir, path)
}

// workTreeOf returns the top directory of a repository's work tree, repo itself
// if it is not called .git.
func workTreeOf(repo string) string {
	if isDotGitName(filepath.Base(repo)) {
		return filepath.Dir(repo)
	}
	return repo
}

// appendIfInRoot resolves the links of path, and appends its name in the root
// to names if it is in the root.
func appendIfInRoot(names []string, root, path string) []string {
	rel, err := filepath.Rel(root, resolveExisting(path))
	if err != nil || !filepath.IsLocal(rel) {
		return names
	}
	return append(names, rel)
}
