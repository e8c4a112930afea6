package writeguard

import (
	"os"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/gitfile"
)

// UserGitSettings holds the user's git settings that may name paths in a root.
type UserGitSettings struct {
	Files      []string // absolute paths of the files that git reads as settings
	HooksPaths []string // values of core.hooksPath; a relative one applies to each work tree. Also directories whose hooks git copies
	// ExpandHome replaces the ~ or ~USER of a path. It returns several paths
	// if the home is ambiguous, nil for an unknown user.
	ExpandHome func(path string) []string

	runs func(file string) []string // settings of a file that run a program, see RootGuard.userRunningSettings; nil: none
}

// cachedRuns holds the settings of a file that run a program, as read when the
// file had the status info.
type cachedRuns struct {
	info os.FileInfo
	runs []string
}

// userRunningSettings returns the settings of one of the user's files (KEY=VALUE) that
// make git run a program. It leaves out included files and core.hooksPath, which
// UserGitSettings has. It reads the file only after it has changed. It returns nil if
// the file does not exist.
func (w *RootGuard) userRunningSettings(file string) []string {
	info, err := os.Stat(file)
	if err != nil {
		return nil
	}
	if known, ok := w.userSettings[file]; ok && isSameVersion(info, known.info) {
		return known.runs
	}
	config, _ := readRegularFile(resolveExisting(file), maxIncludedBytes)
	runs, _ := gitfile.DangerousSettings(config)
	runs = slices.DeleteFunc(runs, func(setting string) bool {
		return strings.HasPrefix(setting, "include") || strings.HasPrefix(setting, "core.hookspath=")
	})
	if w.userSettings == nil {
		w.userSettings = map[string]cachedRuns{}
	}
	w.userSettings[file] = cachedRuns{info, runs}
	return runs
}

// UserGitSettingsOf returns the git settings of rules that have methods
// UserGitSettings and ExpandHome, as *sandbox.FS has, empty settings of others.
func UserGitSettingsOf(rules any) UserGitSettings {
	git := UserGitSettings{ExpandHome: func(path string) []string { return []string{path} }}
	if f, ok := rules.(interface {
		UserGitSettings() (files, hooksPaths []string)
		ExpandHome(path string) []string
	}); ok {
		git.Files, git.HooksPaths = f.UserGitSettings()
		git.ExpandHome = f.ExpandHome
	}
	return git
}
