package proc

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// userGit holds the user's git settings that may name paths in a root.
type userGit struct {
	files      []string // files that git reads as settings; absolute
	hooksPaths []string // values of core.hooksPath; a relative one applies to each work tree
}

// userGitOf returns the git settings of rules that implement UserGitSettings,
// the zero value for others.
func userGitOf(rules Rules) (git userGit) {
	if f, ok := rules.(interface {
		UserGitSettings() (files, hooksPaths []string)
	}); ok {
		git.files, git.hooksPaths = f.UserGitSettings()
	}
	return git
}

// gitPlaces lists the directories that core.hooksPath names, the files that the
// user's settings or those of the root's repositories include, and the programs
// that the repositories' settings name. They are names in the root, sorted, and
// need not exist.
func (b *baseline) gitPlaces(root string, user userGit) (hookDirs, included, programs []string) {
	for _, path := range user.files {
		included = addName(included, root, path)
	}
	for _, path := range user.hooksPaths {
		if filepath.IsAbs(path) {
			hookDirs = addName(hookDirs, root, path)
			continue
		}
		for top := range b.Tops {
			hookDirs = addName(hookDirs, root, filepath.Join(root, top, path))
		}
	}
	for name, it := range b.Items {
		if it.Spot == settingsKind {
			for _, path := range sandbox.GitPrograms(it.Runs) {
				path = absolute(root, workTree(it.Repo), path)
				programs = addName(addLink(programs, root, path), root, path)
			}
		}
		for _, setting := range it.Runs {
			key, value, _ := strings.Cut(setting, "=")
			value = filepath.FromSlash(value)
			switch {
			case value == "" || value[0] == '~':
			case key == "core.hookspath":
				dirs := addName(nil, root, absolute(root, workTree(it.Repo), value))
				hookDirs = append(hookDirs, slices.DeleteFunc(dirs, func(dir string) bool { return within(dir, it.Repo) })...)
			case strings.HasPrefix(key, "include") && strings.HasSuffix(key, ".path"):
				included = addName(included, root, absolute(root, filepath.Dir(name), value))
			}
		}
	}
	hookDirs = slices.DeleteFunc(hookDirs, func(dir string) bool { return dir == "." || isHooks(dir) })
	slices.Sort(hookDirs)
	slices.Sort(included)
	slices.Sort(programs)
	return slices.Compact(hookDirs), slices.Compact(included), slices.Compact(programs)
}

// absolute returns path, joined with root and dir if it is relative.
func absolute(root, dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(root, dir, path)
}

// workTree returns the top directory of a repository's work tree.
func workTree(repo string) string {
	if isDotGit(filepath.Base(repo)) {
		return filepath.Dir(repo)
	}
	return repo
}

// addName resolves the links of path, and appends its name in the root if it
// is in the root.
func addName(names []string, root, path string) []string {
	rel, err := filepath.Rel(root, realPath(path))
	if err != nil || !filepath.IsLocal(rel) {
		return names
	}
	return append(names, rel)
}

// addLink is addName for a path that may itself be a link: it resolves only
// those above it.
func addLink(names []string, root, path string) []string {
	rel, err := filepath.Rel(root, filepath.Join(realPath(filepath.Dir(path)), filepath.Base(path)))
	if err != nil || !filepath.IsLocal(rel) || rel == "." {
		return names
	}
	return append(names, rel)
}

// realPath resolves the links of the longest part of path that exists.
func realPath(path string) string {
	path = filepath.Clean(path)
	real, err := filepath.EvalSymlinks(path)
	if parent := filepath.Dir(path); errors.Is(err, fs.ErrNotExist) && parent != path {
		return filepath.Join(realPath(parent), filepath.Base(path))
	}
	if err != nil {
		return path
	}
	return real
}
