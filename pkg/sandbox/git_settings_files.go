package sandbox

import (
	"os/user"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/gitfile"
)

// maxIncluded bounds the settings files that are read for one write.
const maxIncluded = 64

// gitSettingsFiles returns the files whose settings apply in the work tree at top, or,
// without a repository, in every work tree: the repository's, the user's, and all
// files that they include, regardless of conditions. The files need not exist.
func (f *FS) gitSettingsFiles(top string) []string {
	files := slices.Clone(f.writes().git)
	if dir, common := gitDirectories(top); dir != "" {
		files = append(files, filepath.Join(common, "config"), filepath.Join(dir, "config.worktree"))
	}
	return f.withIncludedFiles(files)
}

// UserGitSettings returns the files with the user's and the system's git settings and
// all files that they include, regardless of conditions, and the values of
// core.hooksPath in them. The settings and directories of the user's templates for new
// repositories are included. Paths are absolute, except for values that git resolves
// in each work tree. The files need not exist.
func (f *FS) UserGitSettings() (files, hooksPaths []string) {
	files = f.withIncludedFiles(slices.Clone(f.writes().git))
	templates := f.environmentTemplate()
	for _, file := range files {
		config := readSmallFile(file)
		templates = append(templates, f.templatesOf(config)...)
		for _, path := range gitfile.HooksPaths(config) {
			if strings.HasPrefix(path, "~/") {
				hooksPaths = append(hooksPaths, f.possibleGitPaths("", path)...)
			} else {
				hooksPaths = append(hooksPaths, filepath.FromSlash(path))
			}
		}
	}
	for _, dir := range templates {
		files = append(files, filepath.Join(dir, "config"), filepath.Join(dir, "config.worktree"))
		hooksPaths = append(hooksPaths, dir, filepath.Join(dir, "hooks"), filepath.Join(dir, "info")) // if dir is a root, only these two are watched
	}
	return files, hooksPaths
}

// withIncludedFiles adds the files that settings files include, also indirectly. Above
// maxIncluded files it follows no more includes.
func (f *FS) withIncludedFiles(files []string) []string {
	for i := 0; i < len(files) && len(files) < maxIncluded; i++ {
		for _, included := range gitfile.IncludePaths(readSmallFile(files[i])) {
			for _, path := range f.possibleGitPaths(filepath.Dir(files[i]), included) {
				if !slices.Contains(files, path) {
					files = append(files, path)
				}
			}
		}
	}
	return files
}

// possibleGitPaths returns the absolute paths that a path in git's settings can mean, relative
// to dir. ~ can be any home directory of the user.
func (f *FS) possibleGitPaths(dir, path string) (paths []string) {
	for _, path := range f.ExpandHome(path) {
		paths = append(paths, resolveIn(dir, path))
	}
	return paths
}

// ExpandHome replaces ~ or ~USER at the beginning of a path in git's settings. ~ means
// each home directory of this user. It returns the path itself if it begins with
// neither, and nil for an unknown user.
func (f *FS) ExpandHome(path string) (paths []string) {
	name, rest, _ := strings.Cut(path, "/")
	switch {
	case !strings.HasPrefix(name, "~"):
		return []string{path}
	case name != "~":
		account, err := user.Lookup(name[1:])
		if err != nil {
			return nil
		}
		return []string{filepath.Join(account.HomeDir, rest)}
	}
	for _, home := range f.writes().homes {
		paths = append(paths, filepath.Join(home, rest))
	}
	return paths
}

// isIncludedConfig reports whether git reads the target as settings although its name
// does not show it: other settings include it, or the usual name is a link to it.
func (t *Target) isIncludedConfig() bool {
	for top := filepath.Dir(t.Path); ; top = filepath.Dir(top) {
		for _, file := range t.fs.gitSettingsFiles(top) {
			if file == t.Path || resolveExistingLinks(file) == t.Path {
				return true
			}
		}
		if top == filepath.Dir(top) {
			return false
		}
	}
}

// resolveExistingLinks resolves the links of path or, if it does not exist, of its
// directory. It returns path unchanged if the directory does not exist either.
func resolveExistingLinks(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path))
	}
	return path
}

// gitProgramReason returns why git runs the target, or "": the settings of a
// repository above it name it as a program or as the script of one.
func (t *Target) gitProgramReason() string {
	for top := filepath.Dir(t.Path); ; top = filepath.Dir(top) {
		if dir, _ := gitDirectories(top); dir != "" {
			for _, file := range t.fs.gitSettingsFiles(top) {
				settings, _ := gitfile.DangerousSettings(readSmallFile(file))
				for _, program := range gitfile.ProgramPaths(settings) {
					for _, path := range t.fs.possibleGitPaths(top, program) {
						if path == t.Path || resolveExistingLinks(path) == t.Path {
							return "is a program that git's settings run"
						}
					}
				}
			}
		}
		if top == filepath.Dir(top) {
			return ""
		}
	}
}
