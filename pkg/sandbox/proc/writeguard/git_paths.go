package writeguard

import (
	"io/fs"
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
	hookDirs      []string // directories that core.hooksPath names, or to which links in place of project settings lead
	settingsFiles []string // files with settings that the user's or the repositories' include
	programs      []string // programs that other settings name, links on the way to all of these, files to which links in place of project settings lead

	root  string
	tops  map[string]bool // as in baseline
	repos map[string]bool // as in baseline
	user  UserGitSettings
}

// gitPaths finds the paths that the settings of the user and of the root's
// repositories name. Its lists are sorted.
func (b *baseline) gitPaths(root string, user UserGitSettings) *gitPaths {
	p := &gitPaths{root: root, tops: b.Tops, repos: b.Repos, user: user}
	for _, path := range user.Files {
		inRoot := appendIfInRoot(nil, root, path)
		p.settingsFiles = append(p.settingsFiles, inRoot...)
		if len(inRoot) == 0 && user.runs != nil {
			p.addSettings(path, user.runs(path), b.Tops, "", 0)
		}
	}
	pointers := b.workTreePointers(root)
	for _, path := range user.HooksPaths {
		p.addHooksDir(path, b.Tops, "")
	}
	for name, it := range b.Items {
		isLink := it.Mode&fs.ModeSymlink != 0
		if isLink && it.Spot == projectSettingsKind && !slices.Contains(b.Programs, name) || isLink && it.Spot == gitHookKind && isHook(name) {
			p.addLinkedSettings(filepath.Join(root, name))
		}
		if it.Spot != gitSettingsKind {
			continue
		}
		if slices.Contains(b.Included, name) {
			p.addSettings(filepath.Join(root, name), it.Runs, b.Tops, "", 0)
		} else {
			tops := map[string]bool{workTreeOf(it.Repo): true}
			for top, repo := range pointers {
				if repo == it.Repo || isAtOrBelow(filepath.Join(it.Repo, "worktrees"), repo) {
					tops[top] = true
				}
			}
			p.addSettings(filepath.Join(root, name), it.Runs, tops, it.Repo, 0)
		}
	}
	p.hookDirs = slices.DeleteFunc(p.hookDirs, isDefaultHooksDir)
	for _, list := range []*[]string{&p.hookDirs, &p.settingsFiles, &p.programs} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return p
}

// addSettings adds the paths that the settings runs (KEY=VALUE) of a file name,
// for the work trees of tops. repo is the file's repository, "" for an included
// file. depth counts the includes that led to the file.
func (p *gitPaths) addSettings(file string, runs []string, tops map[string]bool, repo string, depth int) {
	for _, program := range gitfile.Programs(runs) {
		for _, path := range p.user.ExpandHome(program) {
			for top := range tops {
				path := joinIfRelative(p.root, top, path)
				p.programs = appendIfInRoot(appendLinks(p.programs, p.root, path), p.root, path)
			}
		}
	}
	for _, setting := range runs {
		key, value, _ := strings.Cut(setting, "=")
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
			p.programs = appendLinks(p.programs, p.root, path)
			for _, dir := range appendIfInRoot(nil, p.root, path) {
				for ; dir != "."; dir = filepath.Dir(dir) {
					p.programs = append(p.programs, dir)
				}
			}
		case strings.HasPrefix(key, "include") && strings.HasSuffix(key, ".path"):
			for _, path := range p.user.ExpandHome(value) {
				if path = filepath.FromSlash(path); !filepath.IsAbs(path) {
					path = filepath.Join(filepath.Dir(file), path)
				}
				p.addIncluded(path, depth)
			}
		}
	}
}

// addHooksDir adds a directory of hooks for the work trees of tops. A relative
// path is also one below repo, "" for all repositories: git receive-pack runs
// hooks there. Of a directory that contains a project, it adds the hooks only.
func (p *gitPaths) addHooksDir(path string, tops map[string]bool, repo string) {
	repos := p.repos
	if repo != "" {
		repos = map[string]bool{repo: true}
	}
	for _, dirs := range []map[string]bool{tops, repos} {
		for dir := range dirs {
			path := joinIfRelative(p.root, dir, path)
			p.programs = appendLinks(p.programs, p.root, path)
			for _, dir := range appendIfInRoot(nil, p.root, path) {
				p.addHooksDirInRoot(dir)
			}
		}
	}
}

// addHooksDirInRoot adds a directory of hooks, a name in the root.
func (p *gitPaths) addHooksDirInRoot(dir string) {
	contains := func(known map[string]bool) bool {
		for name := range known {
			if isAtOrBelow(dir, name) {
				return true
			}
		}
		return false
	}
	if !contains(p.tops) && !contains(p.repos) {
		p.hookDirs = append(p.hookDirs, dir)
		return
	}
	for _, hook := range gitfile.HookNames {
		p.programs = append(p.programs, filepath.Join(dir, hook))
	}
}

// isHook reports whether a name is that of a repository's hook, or of its
// directory of hooks.
func isHook(name string) bool {
	return filepath.Base(name) == "hooks" || filepath.Base(filepath.Dir(name)) == "hooks"
}

// workTreePointers returns the repositories that the .git files of the baseline
// name, by the directories of these files.
func (b *baseline) workTreePointers(root string) map[string]string {
	repos := map[string]string{}
	for name, it := range b.Items {
		if it.Spot != gitPointerKind || !isDotGit(filepath.Base(name)) {
			continue
		}
		path, ok := gitfile.Pointer(".git", it.Content)
		if !ok || path == "" {
			continue
		}
		if rel, err := filepath.Rel(root, joinIfRelative(root, filepath.Dir(name), path)); err == nil && filepath.IsLocal(rel) {
			repos[filepath.Dir(name)] = rel
		}
	}
	return repos
}

// addLinkedSettings adds the target of a link in place of project settings.
func (p *gitPaths) addLinkedSettings(link string) {
	resolved := resolveExisting(link)
	info, err := os.Lstat(resolved)
	switch {
	case projectfile.IsParent(filepath.Base(link)):
	case err == nil && info.IsDir():
		p.hookDirs = appendIfInRoot(p.hookDirs, p.root, resolved)
	default:
		if err != nil { // a command may make a directory there
			p.hookDirs = appendIfInRoot(p.hookDirs, p.root, resolved)
		}
		_, target := firstLink(link) // the link itself is watched already
		p.programs = appendIfInRoot(appendLinks(p.programs, p.root, target), p.root, target)
	}
}

// addIncluded adds an included settings file. It adds the paths that the file
// names only if the file is outside the root: those of a file in the root are
// added once it is in the baseline.
func (p *gitPaths) addIncluded(path string, depth int) {
	p.programs = appendLinks(p.programs, p.root, path)
	if names := appendIfInRoot(nil, p.root, path); len(names) > 0 {
		p.settingsFiles = append(p.settingsFiles, names...)
		return
	}
	if depth == maxIncludeDepth {
		return
	}
	if config, err := readRegularFile(resolveExisting(path), maxIncludedBytes); err == nil {
		runs, _ := gitfile.Runs(config)
		p.addSettings(path, runs, p.tops, "", depth+1)
	}
}

// maxIncludedBytes bounds a settings file outside the root. A larger file is
// ignored.
const maxIncludedBytes = 1 << 20

// joinIfRelative returns path if it is absolute, else root/dir/path.
func joinIfRelative(root, dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(root, dir, path)
}

// workTreeOf returns the top directory of a repository's work tree, the
// repository itself if it is not called .git.
func workTreeOf(repo string) string {
	if isDotGit(filepath.Base(repo)) {
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
