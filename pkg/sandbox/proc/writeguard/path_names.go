package writeguard

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/projectfile"
)

// IsInRepository reports whether a name in a root is in a git repository or is a
// .git file, and has no component that names project settings. It only looks at
// the name.
func IsInRepository(rel string) bool {
	parts := strings.Split(rel, string(filepath.Separator))
	return !slices.ContainsFunc(parts, isProjectSettingsName) &&
		slices.ContainsFunc(parts, func(part string) bool { return strings.HasSuffix(strings.ToLower(part), ".git") })
}

// HasComponent reports whether a component of a relative path has this name,
// ignoring case.
func HasComponent(rel, name string) bool {
	return slices.ContainsFunc(strings.Split(rel, string(filepath.Separator)), func(part string) bool { return strings.EqualFold(part, name) })
}

// firstComponent returns the part of a relative path before the first
// separator, all of it without one.
func firstComponent(rel string) string {
	first, _, _ := strings.Cut(rel, string(filepath.Separator))
	return first
}

// isDefaultHooksDir reports whether dir, a name in a root, names a repository's
// own hooks directory, .git/hooks.
func isDefaultHooksDir(dir string) bool {
	return filepath.Base(dir) == "hooks" && isDotGitName(filepath.Base(filepath.Dir(dir)))
}

// isAtOrBelow reports whether name is dir or below it. Both are relative to the
// root.
func isAtOrBelow(dir, name string) bool {
	return dir == "." || name == dir || strings.HasPrefix(name, dir+string(filepath.Separator))
}

// isDotGitName reports whether name, a single component, is .git, ignoring
// case.
func isDotGitName(name string) bool { return strings.EqualFold(name, ".git") }

// looksLikeRepository reports whether git would treat a directory with these
// entries as a repository, whatever its name is and whatever types the entries
// have.
func looksLikeRepository(entries []os.DirEntry) bool {
	has := map[string]bool{}
	for _, entry := range entries {
		has[entry.Name()] = true
	}
	return has["HEAD"] && (has["objects"] && has["refs"] || has["commondir"])
}

// isGitDir reports whether the directory rel of a repository repo belongs to
// git, and is not a work tree in a bare repository: it is the repository
// itself, below a .git, or below a directory that git uses.
func isGitDir(repo, rel string) bool {
	return rel == "." || isDotGitName(filepath.Base(repo)) || slices.Contains([]string{
		"hooks", "info", "logs", "refs", "objects", "modules", "worktrees", "rebase-merge", "rebase-apply", "sequencer", "rr-cache", "branches", "remotes",
	}, firstComponent(rel))
}

// isProjectSettingsName reports whether a file or directory of this name, in
// any directory, holds settings that make agents, editors or shells run
// programs.
func isProjectSettingsName(name string) bool { return projectfile.SettingsDepth("", name) == 1 }

// isWorktreesOfClaude reports whether path is the directory in which Claude
// Code puts work trees, which commands can write at L2.
func isWorktreesOfClaude(path string) bool {
	return filepath.Base(path) == "worktrees" && filepath.Base(filepath.Dir(path)) == ".claude"
}

// settingsTop returns the beginning of a relative path that is the name of
// project settings: .claude, .hg/hgrc, .jj/repo/config.toml. It returns the first
// component if it finds none.
func settingsTop(rel string) string {
	parts := strings.Split(rel, string(filepath.Separator))
	for n := 1; n <= min(3, len(parts)); n++ {
		if projectfile.IsSettingsPath(parts[0], parts[1:n]) || n == 2 && projectfile.IsSettingsPointer(parts[0], parts[1]) && len(parts) == 2 {
			return filepath.Join(parts[:n]...)
		}
	}
	return parts[0]
}

// packageManagerDirs lists directories that package managers fill. Project
// settings in them are not watched: packages contain their developers'
// settings, and nobody opens an editor there.
var packageManagerDirs = []string{"node_modules", "bower_components", "jspm_packages", "site-packages", "dist-packages", "vendor", "Pods"}
