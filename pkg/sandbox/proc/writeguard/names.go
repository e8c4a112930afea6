package writeguard

import (
	"path/filepath"
	"slices"
	"strings"
)

// isPlanted reports whether a file of this name in a directory of busyDirs may
// make other programs run something.
func isPlanted(name string) bool {
	return isProjectName(name) || isDotGit(name) || slices.Contains([]string{"config", "config.worktree", "commondir", "hooks", ".gitmodules"}, name)
}

// InRepository reports whether a name in a root is in a git repository or is a
// .git file, and contains no name of project settings.
func InRepository(rel string) bool {
	parts := strings.Split(rel, string(filepath.Separator))
	return !slices.ContainsFunc(parts, isProjectName) &&
		slices.ContainsFunc(parts, func(part string) bool { return strings.HasSuffix(strings.ToLower(part), ".git") })
}

// HasComponent reports whether a component of a relative path has this name,
// ignoring case.
func HasComponent(rel, name string) bool {
	return slices.ContainsFunc(strings.Split(rel, string(filepath.Separator)), func(part string) bool { return strings.EqualFold(part, name) })
}

func firstPart(rel string) string {
	first, _, _ := strings.Cut(rel, string(filepath.Separator))
	return first
}
