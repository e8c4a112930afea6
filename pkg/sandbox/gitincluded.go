package sandbox

import (
	"os/user"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/gitfile"
)

// maxIncluded bounds the files with settings that are looked at for one write.
const maxIncluded = 64

// gitSettings returns the files whose settings hold in the worktree at top, or
// in every one if there is no repository: its own, the user's, and what they
// include, whatever the condition. A file need not exist.
func (f *FS) gitSettings(top string) []string {
	files := slices.Clone(f.writes().git)
	if dir, common := gitDirectories(top); dir != "" {
		files = append(files, filepath.Join(common, "config"), filepath.Join(dir, "config.worktree"))
	}
	return f.withIncluded(files)
}

// UserGitSettings returns the files with the user's and the system's settings
// for git and all files that they include, whatever the condition, and the
// values of core.hooksPath in them. Paths are absolute, except for values that
// git resolves in each work tree. Files need not exist. The settings and
// directories of the user's templates for new repositories are among them.
func (f *FS) UserGitSettings() (files, hooksPaths []string) {
	files = f.withIncluded(slices.Clone(f.writes().git))
	templates := f.environmentTemplate()
	for _, file := range files {
		config := readSmall(file)
		templates = append(templates, f.templatesOf(config)...)
		for _, path := range gitfile.HooksPaths(config) {
			if strings.HasPrefix(path, "~/") {
				hooksPaths = append(hooksPaths, f.gitPaths("", path)...)
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

// withIncluded adds the files that settings files include.
func (f *FS) withIncluded(files []string) []string {
	for i := 0; i < len(files) && len(files) < maxIncluded; i++ {
		for _, included := range gitfile.IncludePaths(readSmall(files[i])) {
			for _, path := range f.gitPaths(filepath.Dir(files[i]), included) {
				if !slices.Contains(files, path) {
					files = append(files, path)
				}
			}
		}
	}
	return files
}

// gitPaths returns where a path in git's settings leads, relative to dir; ~ is
// any home.
func (f *FS) gitPaths(dir, path string) (paths []string) {
	for _, path := range f.ExpandHome(path) {
		paths = append(paths, relativeIn(dir, path))
	}
	return paths
}

// ExpandHome replaces the ~ or ~USER at the beginning of a path in git's
// settings. ~ stands for each home directory of this user. The result is the
// path itself if it begins with neither, and nil for an unknown user.
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

// isIncludedConfig reports whether git reads the target as settings although its
// name does not tell: a file that other settings include, or that a link of
// their usual name leads to.
func (t *Target) isIncludedConfig() bool {
	for top := filepath.Dir(t.Path); ; top = filepath.Dir(top) {
		for _, file := range t.fs.gitSettings(top) {
			if file == t.Path || withoutLinks(file) == t.Path {
				return true
			}
		}
		if top == filepath.Dir(top) {
			return false
		}
	}
}

// withoutLinks returns a path without links, as far as it exists.
func withoutLinks(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path))
	}
	return path
}

// gitProgramReason tells why git runs the target, or "": the settings of a
// repository above it name it as a program, or as a script of one.
func (t *Target) gitProgramReason() string {
	for top := filepath.Dir(t.Path); ; top = filepath.Dir(top) {
		if dir, _ := gitDirectories(top); dir != "" {
			for _, file := range t.fs.gitSettings(top) {
				settings, _ := gitfile.Runs(readSmall(file))
				for _, program := range gitfile.Programs(settings) {
					for _, path := range t.fs.gitPaths(top, program) {
						if path == t.Path || withoutLinks(path) == t.Path {
							return "is a program that settings of git run"
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
