package sandbox

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/gitfile"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
)

// templateDirs returns the directories from which git copies hooks and settings
// into the user's new repositories (git-init(1), "TEMPLATE DIRECTORY").
func (f *FS) templateDirs() []string {
	dirs := f.environmentTemplate()
	for _, file := range f.withIncludedFiles(slices.Clone(f.writes().git)) {
		dirs = append(dirs, f.templatesOf(readSmallFile(file))...)
	}
	return dirs
}

// environmentTemplate returns the template directory of the environment, if it is set.
func (f *FS) environmentTemplate() (dirs []string) {
	if dir := f.writes().template; filepath.IsAbs(dir) {
		dirs = append(dirs, filepath.Clean(dir))
	}
	return dirs
}

// templatesOf returns the values of init.templateDir in the user's settings. It omits
// relative paths, which git looks up in the new repository.
func (f *FS) templatesOf(config []byte) (dirs []string) {
	for _, path := range gitfile.TemplateDirs(config) {
		for _, dir := range f.ExpandHome(path) {
			if dir = filepath.Clean(filepath.FromSlash(dir)); filepath.IsAbs(dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}

// templateEntries lists the entries of a template directory that git runs or follows
// in a new repository.
var templateEntries = append([]string{"config", "config.worktree"}, gitEntries...)

// templateReason returns why the target is part of the user's template for new
// repositories, or "". If the template directory contains a root, only entries that
// git runs or follows count.
func (t *Target) templateReason() string {
	for _, dir := range t.fs.templateDirs() {
		for _, dir := range []string{dir, resolveExistingLinks(dir)} {
			rel, ok := relativeTo(dir, t.Path)
			if !ok {
				continue
			}
			hasRoot := slices.ContainsFunc(t.fs.roots, func(r *openRoot) bool { return contains(dir, r.Path) })
			if !hasRoot || slices.Contains(templateEntries, strings.ToLower(pathname.Fold(splitPath(rel)[0]))) {
				return "is copied by git into new repositories, whose hooks and settings it becomes"
			}
		}
	}
	return ""
}
